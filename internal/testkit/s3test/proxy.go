package s3test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Kind is what is done to a request.
type Kind string

// The kinds.
const (
	Pass    Kind = ""
	Refuse  Kind = "refused"   // Status and Code are the answer; the server gets no request
	Reset   Kind = "reset"     // the connection breaks before the server gets the request
	Lose    Kind = "lost"      // the server does the request, but its answer is lost
	Cut     Kind = "cut"       // the connection breaks in the middle of the answer
	Delayed Kind = "delayed"   // it takes Delay longer
	Swallow Kind = "swallowed" // an answer of 200, but the server gets no request
	Answer  Kind = "answered"  // Status, Type and Text are the answer; the server gets no request
	Forget  Kind = "forgotten" // the answer has no metadata
)

// Fault is what is done to one request.
type Fault struct {
	Kind   Kind
	Status int
	Code   string // the S3 error's
	Text   string // its message, or the whole answer
	Type   string // MIME type
	Delay  time.Duration
}

// Proxy stands in front of a server.
type Proxy struct {
	URL string

	mu     sync.Mutex
	decide func(*http.Request) Fault
	counts map[Kind]int
	seen   int
}

// NewProxy starts a proxy that passes everything on. It ends with the test.
func NewProxy(t testing.TB, s *Server) *Proxy {
	t.Helper()
	p := &Proxy{counts: map[Kind]int{}}
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, target, transport) }))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		transport.CloseIdleConnections()
	})
	p.URL = front.URL
	return p
}

// Do makes decide choose the fault of every later request; nil forwards all.
// decide is called by one goroutine at a time.
func (p *Proxy) Do(decide func(*http.Request) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decide = decide
}

// Counts returns how many requests got each kind of treatment.
func (p *Proxy) Counts() map[Kind]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// Seen is how many requests have come.
func (p *Proxy) Seen() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

func (p *Proxy) fault(r *http.Request) (f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen++
	if p.decide != nil {
		f = p.decide(r)
	}
	p.counts[f.Kind]++
	return f
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, target *url.URL, transport *http.Transport) {
	f := p.fault(r)
	switch f.Kind {
	case Reset:
		hangUp(w)
		return
	case Refuse:
		_, _ = io.Copy(io.Discard, r.Body) // an unread body would cause a reset
		refuse(w, r, f)
		return
	case Swallow:
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusOK)
		return
	case Answer:
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", f.Type)
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Text)
		return
	case Delayed:
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
			return
		}
	}
	out := r.Clone(r.Context())
	out.RequestURI, out.URL.Scheme, out.URL.Host, out.Host = "", target.Scheme, target.Host, r.Host // the host is part of the signature
	response, err := transport.RoundTrip(out)
	if err != nil {
		hangUp(w)
		return
	}
	defer response.Body.Close()
	if f.Kind == Lose {
		_, _ = io.Copy(io.Discard, response.Body)
		hangUp(w)
		return
	}
	maps.Copy(w.Header(), response.Header)
	if f.Kind == Forget {
		maps.DeleteFunc(w.Header(), func(name string, _ []string) bool { return strings.HasPrefix(name, "X-Amz-Meta-") })
	}
	w.WriteHeader(response.StatusCode)
	if f.Kind == Cut {
		_, _ = io.CopyN(w, response.Body, response.ContentLength/2)
		_ = http.NewResponseController(w).Flush()
		hangUp(w)
		return
	}
	_, _ = io.Copy(w, response.Body) // the client is gone
}

// refuse answers as S3 does. Source: Amazon S3 API reference, error responses.
func refuse(w http.ResponseWriter, r *http.Request, f Fault) {
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	w.WriteHeader(f.Status)
	if r.Method != http.MethodHead {
		fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?>`+"\n<Error><Code>%s</Code><Message>%s</Message><RequestId>T0</RequestId><HostId>H0</HostId></Error>", f.Code, f.Text)
	}
}

// hangUp breaks the connection.
func hangUp(w http.ResponseWriter) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a reset
	}
	connection.Close()
}

// Kinds of requests, to choose faults by.

// IsWrite reports whether a request changes something.
func IsWrite(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// IsList reports whether a request lists objects.
func IsList(r *http.Request) bool { return strings.Contains(r.URL.RawQuery, "list-type=2") }
