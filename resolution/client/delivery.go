package client

import (
	"fmt"
	"net/http"

	"github.com/leadetl/leadetl/resolution"
)

// ReadDelivery reads a callback, whose signature is the caller's business.
// A body that is not a JSON object is resolution.ErrInvalid.
func ReadDelivery(h http.Header, body []byte) (resolution.Delivery, error) {
	body, err := decode(h, body, maxCallback)
	e := answer{status: http.StatusOK, header: h, body: body}.envelope()
	m := e.body
	if m == nil && err != nil {
		return resolution.Delivery{}, fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
	}
	if m == nil {
		return resolution.Delivery{}, fmt.Errorf("%w: the callback is not a JSON object", resolution.ErrInvalid)
	}
	d := resolution.Delivery{ID: e.about.ID, RequestID: e.about.RequestID, Spent: e.about.Spent, Body: body}
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
