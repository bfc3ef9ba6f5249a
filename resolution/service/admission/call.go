// Package admission decides who may call: credentials, scopes, rates, stored
// bytes and Idempotency-Keys.
//
// The one thing to know before using it: a refused call costs nothing, so every
// check here comes before the first look-up.
package admission

import (
	"bytes"
	"log/slog"
	"mime"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/account"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/metrics"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// Call is one request on its way through the checks. It belongs to one
// goroutine.
type Call struct {
	Request   *http.Request
	Header    http.Header // of the answer
	ID        string      // X-Request-Id
	Path      string      // without trailing slash
	Began     time.Time
	Operation resolution.Operation // the scope that a key needs
	Class     Class

	Caller account.Caller // set by Admit
	Body   request.Object // set by Read
	Key    *Key           // its Idempotency-Key; nil if it has none
	Out    *bytes.Buffer  // buffer for the answer
}

// Handler answers a call that was admitted.
type Handler func(*Call) (*wire.Reply, error)

// Gate holds what calls are checked against. New fills in the unexported fields.
type Gate struct {
	Replies Replies
	Roster  *account.Roster
	Pepper  credential.Pepper
	Tokens  *credential.Tokens // nil accepts none
	Limits  Limits
	MaxBody int64          // of a request, in bytes
	Proxies []netip.Prefix // the only peers whose X-Forwarded-For counts
	Metrics *metrics.Metrics
	Log     *slog.Logger
	Now     func() time.Time
	// Complaints bounds the log lines about refused requests.
	Complaints *rate.Limiter

	rates   [classes]*limit.Buckets
	guesses *limit.Buckets // failed authentications
	keys    *keysHeld
}

// New makes a gate of g. It panics on limits that Validate refuses.
func New(g Gate) *Gate {
	g.rates = [classes]*limit.Buckets{
		Single: limit.New(g.Limits.Single), Create: limit.New(g.Limits.Create), Result: limit.New(g.Limits.Result),
	}
	g.guesses = limit.New(g.Limits.FailedAuth)
	g.keys = &keysHeld{held: map[[32]byte][32]byte{}}
	return &g
}

// Admit finds the caller of a call, or refuses it.
func (g *Gate) Admit(c *Call) error {
	if err := checkVersion(c); err != nil {
		return err
	}
	if err := g.authenticate(c); err != nil {
		return err
	}
	return g.takeRate(c)
}

// checkVersion refuses a request whose API-Version header names another major
// version. Without the header, the current version applies.
func checkVersion(c *Call) error {
	asked := c.Request.Header.Get("API-Version")
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

// GetBuffer returns an empty buffer.
func GetBuffer() *bytes.Buffer { return buffers.Get().(*bytes.Buffer) }

// PutBuffer gives a buffer back for others to use.
func PutBuffer(b *bytes.Buffer) {
	if b.Cap() <= largestPooled {
		b.Reset()
		buffers.Put(b)
	}
}

// Read reads and parses the body of a call.
func (g *Gate) Read(c *Call) error {
	if err := checkMedia(c.Request.Header); err != nil {
		return err
	}
	if c.Request.ContentLength > g.MaxBody {
		return wire.TooLarge(g.MaxBody)
	}
	body := GetBuffer()
	defer PutBuffer(body) // the object does not refer to it
	if _, err := body.ReadFrom(http.MaxBytesReader(nil, c.Request.Body, g.MaxBody)); err != nil {
		return wire.Unreadable(c.Request, err)
	}
	object, err := request.Parse(body.Bytes())
	if err != nil {
		return wire.Malformed(err)
	}
	c.Body = object
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
