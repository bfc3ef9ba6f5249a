package service

import (
	"errors"
	"mime"
	"net/http"
	"os"
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
		return tooLarge(s.options.MaxBody)
	}
	body := getBuffer()
	defer putBuffer(body) // the object keeps nothing of it
	if _, err := body.ReadFrom(http.MaxBytesReader(nil, c.Body, s.options.MaxBody)); err != nil {
		return unreadable(c.Request, err)
	}
	object, err := request.Parse(body.Bytes())
	if err != nil {
		return malformed(err)
	}
	c.object = object
	return nil
}

// unreadable tells why a body could not be read to its end.
func unreadable(r *http.Request, err error) error {
	if over, is := errors.AsType[*http.MaxBytesError](err); is {
		return tooLarge(over.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &wire.Problem{Kind: wire.RequestTimeout, Detail: "The body did not arrive in time. Send it again.", Cause: err,
			Closing: r.ProtoMajor == 1} // what is left of the body may follow, or never
	}
	return &wire.Problem{Kind: wire.MalformedJSON, Detail: "The body ended before it was complete.", Cause: err}
}

// malformed tells what request.Parse said.
func malformed(err error) error {
	if m, is := errors.AsType[*request.MalformedError](err); is {
		return wire.Refuse(wire.MalformedJSON, "The body is not one JSON object: %s, at byte %d.", m.What, m.Offset)
	}
	return err
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

func tooLarge(limit int64) error {
	return wire.Refuse(wire.PayloadTooLarge, "The body may have %d bytes.", limit)
}
