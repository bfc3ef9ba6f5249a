package service

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/resolution/service/request"
)

// interfaceVersion is that of the interface. A caller may ask for its major, and gets
// what was added since.
const interfaceVersion = "1.0.0"

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

// reply is an answer with status 200.
type reply struct {
	body       []byte        // may lie in call.out
	retryAfter time.Duration // 0: no header
	billed     bool          // spent and remaining are told
	spent      int64         // credits
	remaining  int64
	replayed   bool // the body was stored under the Idempotency-Key
}

// answer takes a call through the checks, in their order, to its handler. The
// order is a promise: what an earlier check refuses has cost nothing, and a
// 429 is never billed. The handlers go on with validation, the callback
// address and credits.
func (s *Service) answer(c *call) (*reply, error) {
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
		return refuse(unsupportedVersion, "This service speaks version %s. Leave out API-Version, or ask for 1.", interfaceVersion)
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

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
