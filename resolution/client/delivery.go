package client

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/leadetl/leadetl/resolution"
)

// Delivery is what a callback says beside its data, whatever operation it is
// about. Its body reads, with the operation, as a kept answer with the status
// 200 does: see Read and ReadSearch.
type Delivery struct {
	// ID is the resolution's id, and ClientRef the metadata.client_ref that
	// was sent with its call; "" where the callback does not say.
	ID, ClientRef string
	// Kind is completed, failed or cancelled, or a word of the service's own;
	// "" where it does not say.
	Kind string
	// RequestID is the service's name for the callback: that of the request,
	// or else of the webhook.
	RequestID string
	// Spent is what the answer cost in credits, nil when the callback does not
	// say.
	Spent *int64
}

// ReadDelivery reads a callback, whose signature is the caller's business.
// A body that is not a JSON object is resolution.ErrInvalid.
func ReadDelivery(h http.Header, body []byte) (Delivery, error) {
	e := answer{status: http.StatusOK, header: h, body: body}.envelope()
	m := e.body
	if m == nil {
		return Delivery{}, fmt.Errorf("%w: the callback is not a JSON object", resolution.ErrInvalid)
	}
	d := Delivery{ID: e.about.ID, RequestID: e.about.RequestID, Spent: e.about.Spent, Kind: e.status}
	if kind, is := strings.CutPrefix(strings.ToLower(text(m.get("type"))), "resolution."); is {
		d.Kind = kind
	}
	for _, at := range []value{m, object(m.get("payload")), object(m.get("resolution")), object(m.get("data"))} {
		if d.ClientRef == "" {
			d.ClientRef = text(object(at.get("metadata")).get("client_ref"))
		}
	}
	for _, name := range []string{"Webhook-Id", "Svix-Id"} {
		if id := h.Get(name); d.RequestID == "" && isWord(id, 128) {
			d.RequestID = id
		}
	}
	return d, nil
}
