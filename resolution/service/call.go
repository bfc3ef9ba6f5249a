package service

import (
	"bytes"
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
