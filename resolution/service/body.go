package service

import (
	"errors"
	"mime"
	"net/http"
	"strings"

	"github.com/leadetl/leadetl/resolution/service/request"
)

// read reads and parses the body into c.object.
func (s *Service) read(c *call) error {
	if err := checkMedia(c.Header); err != nil {
		return err
	}
	if c.ContentLength > s.options.MaxBody {
		return s.tooLarge()
	}
	body := getBuffer()
	defer putBuffer(body) // the object keeps nothing of it
	if _, err := body.ReadFrom(http.MaxBytesReader(nil, c.Body, s.options.MaxBody)); err != nil {
		if _, is := errors.AsType[*http.MaxBytesError](err); is {
			return s.tooLarge()
		}
		return &problem{kind: malformedJSON, detail: "The body ended before it was complete.", cause: err}
	}
	object, err := request.Parse(body.Bytes())
	if malformed, is := errors.AsType[*request.MalformedError](err); is {
		return refuse(malformedJSON, "The body is not one JSON object: %s, at byte %d.", malformed.What, malformed.Offset)
	}
	c.object = object
	return err
}

// checkMedia accepts JSON in UTF-8 as it is. A body that does not say what it
// is is taken for that: there is nothing else it could be.
func checkMedia(h http.Header) error {
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return refuse(unsupportedMedia, "The body has to come without Content-Encoding.")
	}
	given := h.Get("Content-Type")
	if given == "" || given == "application/json" {
		return nil
	}
	kind, parameters, err := mime.ParseMediaType(given)
	charset, hasCharset := parameters["charset"]
	if err != nil || kind != "application/json" || hasCharset && !strings.EqualFold(charset, "utf-8") {
		return refuse(unsupportedMedia, "The Content-Type has to be application/json, in UTF-8.")
	}
	return nil
}

func (s *Service) tooLarge() error {
	return refuse(payloadTooLarge, "The body may have %d bytes.", s.options.MaxBody)
}
