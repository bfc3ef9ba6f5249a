package service

import (
	"bytes"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// call is one request on its way through the checks. It belongs to one
// goroutine.
type call struct {
	request *http.Request
	header  http.Header // of the answer
	id      string      // X-Request-Id
	route   *route
	path    string // without trailing slash
	began   time.Time
	account *account       // of the caller
	apiKey  *state.Key     // of the call; nil if it has a token
	object  request.Object // the body
	key     *heldKey       // its Idempotency-Key; nil if it has none
	out     *bytes.Buffer  // buffer for the answer
}

// answer runs the checks of a call, in this order, and then its handler. The
// order is a promise: a refused call costs nothing, and a 429 is never billed.
// Handlers continue with validation, the callback address and credits.
func (s *Service) answer(c *call) (*wire.Reply, error) {
	if err := checkVersion(c); err != nil {
		return nil, err
	}
	if err := s.authenticate(c); err != nil {
		return nil, err
	}
	if err := s.admit(c); err != nil {
		return nil, err
	}
	if c.request.Method == http.MethodGet {
		return c.route.handle(c)
	}
	if err := s.read(c); err != nil {
		return nil, err
	}
	if err := s.offers(c.route); err != nil {
		return nil, err
	}
	return s.once(c)
}

// offers refuses an operation that the Resolver or the Searcher does not
// support. Results of earlier searches can still be fetched.
func (s *Service) offers(r *route) error {
	var from any = s.options.Resolver
	switch r.class {
	case create:
		from = s.options.Searcher
	case single:
	default:
		return nil
	}
	if can, ok := from.(interface {
		Offers(resolution.Operation) error
	}); ok && can.Offers(r.operation) != nil {
		return wire.Refuse(wire.Unavailable, "This service has no data for this operation.")
	}
	return nil
}

// keyID is the ID of the key that the call was made with, 0 without one.
func (c *call) keyID() int64 {
	if c.apiKey == nil {
		return 0
	}
	return c.apiKey.ID
}

// checkVersion refuses a request whose API-Version header names another major
// version. Without the header, the current version applies.
func checkVersion(c *call) error {
	asked := c.request.Header.Get("API-Version")
	if asked == "" {
		return nil
	}
	major, _, _ := strings.Cut(asked, ".")
	if major != "1" {
		return wire.Refuse(wire.UnsupportedVersion, "This service speaks version %s. Leave out API-Version, or ask for 1.", wire.Version)
	}
	return nil
}

// buffers holds the buffers of bodies and answers.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// largestPooled bounds pooled buffers, so that rare long lists do not stay in
// memory.
const largestPooled = 64 << 10

func getBuffer() *bytes.Buffer { return buffers.Get().(*bytes.Buffer) }

func putBuffer(b *bytes.Buffer) {
	if b.Cap() <= largestPooled {
		b.Reset()
		buffers.Put(b)
	}
}

// read reads and parses the body into c.object.
func (s *Service) read(c *call) error {
	if err := checkMedia(c.request.Header); err != nil {
		return err
	}
	if c.request.ContentLength > s.options.MaxBody {
		return wire.TooLarge(s.options.MaxBody)
	}
	body := getBuffer()
	defer putBuffer(body) // the object does not refer to it
	if _, err := body.ReadFrom(http.MaxBytesReader(nil, c.request.Body, s.options.MaxBody)); err != nil {
		return wire.Unreadable(c.request, err)
	}
	object, err := request.Parse(body.Bytes())
	if err != nil {
		return wire.Malformed(err)
	}
	c.object = object
	return nil
}

// checkMedia accepts JSON in UTF-8 without an encoding. A body without a
// Content-Type counts as JSON.
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
