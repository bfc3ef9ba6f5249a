package wire

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
)

// minCompressed is the smallest body that is compressed, in bytes. Answers
// about one record are smaller: compressing them would take longer than sending
// them.
const minCompressed = 4 << 10

var (
	vary    = []string{"Accept-Encoding"}
	zipped  = []string{"gzip"}
	noCache = []string{"no-cache"}
)

// compressing is the writer for a client that accepts gzip.
type compressing struct{ http.ResponseWriter }

// Unwrap is for http.ResponseController.
func (c compressing) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Compressing returns a writer for WriteBody. Large bodies are written to it
// with gzip, if the client accepts that.
func Compressing(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if len(r.Header["Accept-Encoding"]) == 0 || !acceptsGzip(r.Header) {
		return w
	}
	return compressing{w}
}

var zippers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return z
}}

// compress returns body as gzip. Writing to memory cannot fail.
func compress(body []byte) []byte {
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	var b bytes.Buffer
	b.Grow(len(body) / 4)
	z.Reset(&b)
	_, _ = z.Write(body)
	_ = z.Close()
	return b.Bytes()
}

// Page is a body that never changes and is the same for all callers.
type Page struct {
	body, zipped []byte
	etag         string
}

// NewPage makes a page of a body. The body must not be changed afterwards.
func NewPage(body []byte) *Page {
	sum := sha256.Sum256(body)
	// A weak tag, because the compressed form has the same one.
	return &Page{body: body, zipped: compress(body), etag: `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
}

// Write answers with a page, or with 304 if the client has it.
// Source: RFC 9110, 13.1.2.
func (p *Page) Write(w http.ResponseWriter, r *http.Request, contentType []string) {
	h := w.Header()
	h["Etag"], h["Cache-Control"], h["Vary"] = []string{p.etag}, noCache, vary
	if p.isKnown(r.Header) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := p.body
	if acceptsGzip(r.Header) {
		h["Content-Encoding"] = zipped
		body = p.zipped
	}
	writePlain(w, http.StatusOK, contentType, body)
}

// isKnown reports whether If-None-Match has the page's tag.
func (p *Page) isKnown(h http.Header) bool {
	for _, value := range h["If-None-Match"] {
		for tag := range strings.SplitSeq(value, ",") {
			tag = strings.TrimSpace(tag)
			if tag == "*" || strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(p.etag, "W/") {
				return true
			}
		}
	}
	return false
}
