package client

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
)

// Read reads the status and body of a stored answer, and returns what Do,
// Start or Poll returned when the answer came: its data depends on these two only.
// The data of a record are added to into, which may get a row without use too; nil is for
// Answers of its own, as a page of a search has them.
func Read(op resolution.Operation, status int, body []byte, into *resolution.Answers) (resolution.Reply, error) {
	return read(response{operation: op, status: status, body: body, into: into})
}

// read reads an answer with a decoder that is used again.
func read(a response) (resolution.Reply, error) {
	a.decoder = decoders.Get().(*jsontree.Decoder)
	defer func() {
		a.decoder.Forget()
		decoders.Put(a.decoder)
	}()
	return a.reply()
}

var decoders = sync.Pool{New: func() any { return new(jsontree.Decoder) }}

// Reader reads the stored answers of a run. As a Client, it gives all answers with
// the same company one record of it. It is safe from many goroutines.
type Reader struct{ companies exchange.Companies }

// Read is as the function.
func (r *Reader) Read(op resolution.Operation, status int, body []byte, into *resolution.Answers) (resolution.Reply, error) {
	return read(response{operation: op, status: status, body: body, companies: &r.companies, into: into})
}

// ReadDelivery reads a callback, whose signature is the caller's business.
// A body that is not a JSON object is resolution.ErrInvalid.
func ReadDelivery(h http.Header, body []byte) (resolution.Delivery, error) {
	body, err := exchange.Unpack(h, body, maxCallback)
	e := response{status: http.StatusOK, header: h, body: body}.envelope()
	m := e.body
	if m == nil && err != nil {
		return resolution.Delivery{}, fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
	}
	if m == nil {
		return resolution.Delivery{}, fmt.Errorf("%w: the callback is not a JSON object", resolution.ErrInvalid)
	}
	d := resolution.Delivery{ID: e.about.ID, RequestID: e.about.RequestID, Spent: e.about.Spent, Body: body}
	for _, at := range []jsontree.Value{m, jsontree.Object(m.Get("payload")), jsontree.Object(m.Get("resolution")), jsontree.Object(m.Get("data"))} {
		if d.ClientRef == "" {
			d.ClientRef = jsontree.Text(jsontree.Object(at.Get("metadata")).Get("client_ref"))
		}
	}
	for _, name := range []string{"Webhook-Id", "Svix-Id"} {
		if id := h.Get(name); d.RequestID == "" && exchange.IsWord(id, 128) {
			d.RequestID = id
		}
	}
	return d, nil
}
