package service

import (
	"mime"
	"net/http"
	"strings"

	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// read reads and parses the body into c.object.
func (s *Service) read(c *call) error {
	if err := checkMedia(c.Header); err != nil {
		return err
	}
	if c.ContentLength > s.options.MaxBody {
		return wire.TooLarge(s.options.MaxBody)
	}
	body := getBuffer()
	defer putBuffer(body) // the object keeps nothing of it
	if _, err := body.ReadFrom(http.MaxBytesReader(nil, c.Body, s.options.MaxBody)); err != nil {
		return wire.Unreadable(c.Request, err)
	}
	object, err := request.Parse(body.Bytes())
	if err != nil {
		return wire.Malformed(err)
	}
	c.object = object
	return nil
}

// checkMedia accepts JSON in UTF-8 as it is. A body that does not say what it
// is is taken for that: there is nothing else it could be.
func checkMedia(h http.Header) error {
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return wire.Refuse(wire.UnsupportedMedia, "The body has to come without Content-Encoding.")
	}
	given := h.Get("Content-Type")
	if given == "" || given == "application/json" {
		return nil
	}
	kind, parameters, err := mime.ParseMediaType(given)
	charset, hasCharset := parameters["charset"]
	if err != nil || kind != "application/json" || hasCharset && !strings.EqualFold(charset, "utf-8") {
		return wire.Refuse(wire.UnsupportedMedia, "The Content-Type has to be application/json, in UTF-8.")
	}
	return nil
}
