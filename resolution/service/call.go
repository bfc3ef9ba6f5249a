package service

import (
	"bytes"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// call is one request on its way through the checks. It is one goroutine's.
type call struct {
	*http.Request
	header  http.Header // of the answer
	id      string      // X-Request-Id
	route   *route
	path    string // without trailing slash
	began   time.Time
	account *account       // whose call it is
	object  request.Object // the body
	key     *heldKey       // its Idempotency-Key, nil without
	out     *bytes.Buffer  // what the answer may be written in
}

// answer takes a call through the checks, in their order, to its handler. The
// order is a promise: what an earlier check refuses has cost nothing, and a
// 429 is never billed. The handlers go on with validation, the callback
// address and credits.
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
	if err := s.read(c); err != nil {
		return nil, err
	}
	return s.once(c)
}

// checkVersion refuses a request for another major of the interface, in the
// API-Version header. Without the header it is the present one.
func checkVersion(c *call) error {
	asked := c.Header.Get("API-Version")
	if asked == "" {
		return nil
	}
	major, _, _ := strings.Cut(asked, ".")
	if major != "1" {
		return wire.Refuse(wire.UnsupportedVersion, "This service speaks version %s. Leave out API-Version, or ask for 1.", wire.Version)
	}
	return nil
}

// buffers holds what bodies are read into and answers are written in.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// largestPooled keeps the rare long list from staying in memory.
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
