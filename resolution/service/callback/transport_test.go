package callback

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// tryOnce makes one attempt at url over the real network of this machine.
func tryOnce(t *testing.T, o Options, url string) result {
	t.Helper()
	return sendTo(t, o)(url)
}

// sendTo returns attempts that share their connections.
func sendTo(t *testing.T, o Options) func(url string) result {
	if o.Policy == nil {
		o.Policy = &Policy{Allow: loopback}
	}
	if o.Secrets == nil {
		o.Secrets = secrets
	}
	s := NewSender(o)
	life, end := context.WithCancel(context.Background())
	transport := s.transport(life)
	t.Cleanup(func() { end(); transport.close() })
	return func(url string) result {
		return s.attempt(life, transport, state.Delivery{ID: 1, WebhookID: "msg_1", Organization: 7, URL: url, Body: []byte(`{"success":true}`)})
	}
}

// rootsOf returns who vouches for a test server, which is example.com.
func rootsOf(s *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}

// discard keeps a test server's complaints about its visitors to itself.
var discard = log.New(io.Discard, "", 0)

func TestStatuses(t *testing.T) {
	code, header := 0, http.Header{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(code)
	}))
	defer server.Close()
	send := sendTo(t, Options{})
	for want, codes := range map[string][]int{
		"":              {200, 201, 202, 204, 206, 226, 299},
		FailureRedirect: {300, 301, 302, 303, 304, 307, 308},
		"status_4xx":    {400, 401, 403, 404, 405, 408, 409, 413, 418, 422, 429, 451},
		FailureGone:     {410},
		"status_5xx":    {500, 501, 502, 503, 504, 599},
	} {
		for _, code = range codes {
			if got := send(server.URL); got != (result{code, want, 0}) {
				t.Errorf("%d: got %+v, want %q", code, got, want)
			}
		}
	}
	code = 503
	header.Set("Retry-After", "7")
	if got := send(server.URL); got != (result{503, "status_5xx", 7 * time.Second}) {
		t.Errorf("503 with Retry-After: got %+v", got)
	}
}

// TestRequest looks at what a receiver gets, over HTTP/1.1 and HTTP/2.
func TestRequest(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		verifier, err := standardwebhooks.NewWebhook(testSecret.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls++
			body, err := io.ReadAll(r.Body)
			if err := errors.Join(err, verifier.Verify(body, r.Header)); err != nil {
				t.Errorf("%s: %v", proto, err)
			}
			if _, err := Verify(r.Header, body, []Secret{testSecret}, time.Now()); err != nil {
				t.Errorf("%s: %v", proto, err)
			}
			if r.Proto != proto || r.Method != http.MethodPost || r.RequestURI != "/a%2Fb/c?d=e%20f" || string(body) != `{"success":true}` {
				t.Errorf("got %s %s %s %q", r.Proto, r.Method, r.RequestURI, body)
			}
			r.Header.Del(HeaderID)
			r.Header.Del(HeaderTimestamp)
			r.Header.Del(HeaderSignature)
			r.Header.Del("Connection")
			want := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"leadetl"}, "Content-Length": {"16"}}
			for name, values := range r.Header {
				if strings.Join(want[name], "") != strings.Join(values, "") {
					t.Errorf("%s: header %s: %q", proto, name, values)
				}
			}
			http.SetCookie(w, &http.Cookie{Name: "id", Value: "1"})
		}))
		server.EnableHTTP2 = proto == "HTTP/2.0"
		server.StartTLS()
		send := sendTo(t, Options{Roots: rootsOf(server)})
		for range 2 { // the second one brings no cookie
			if got := send(server.URL + "/a%2Fb/c?d=e%20f"); got != (result{200, "", 0}) {
				t.Errorf("%s: got %+v", proto, got)
			}
		}
		if calls != 2 {
			t.Errorf("%s: %d calls, want 2", proto, calls)
		}
		server.Close()
	}
}

// TestConnections: connections are kept. A receiver of HTTP/1.1 that closes its
// connection gets another one, with the session of TLS resumed.
func TestConnections(t *testing.T) {
	for _, c := range []struct {
		name   string
		http2  bool
		opened int
	}{
		{"HTTP/2", true, 1},
		{"HTTP/1.1", false, 3}, // the first only shows that it is no HTTP/2
	} {
		var mu sync.Mutex
		var resumed []bool // by delivery
		opened := 0
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			resumed = append(resumed, r.TLS.DidResume)
			if len(resumed) == 2 && !c.http2 {
				w.Header().Set("Connection", "close")
			}
		}))
		server.EnableHTTP2 = c.http2
		server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			mu.Lock()
			defer mu.Unlock()
			if s == http.StateNew {
				opened++
			}
		}
		server.StartTLS()
		send := sendTo(t, Options{Roots: rootsOf(server)})
		for range 4 {
			if got := send(server.URL); got.failure != "" {
				t.Errorf("%s: got %+v", c.name, got)
			}
		}
		mu.Lock()
		want := []bool{false, false, !c.http2, !c.http2}
		if opened != c.opened || !slices.Equal(resumed, want) {
			t.Errorf("%s: %d connections, want %d; deliveries in a resumed session: %v, want %v", c.name, opened, c.opened, resumed, want)
		}
		mu.Unlock()
		server.Close()
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		var visited []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			visited = append(visited, r.URL.Path)
			http.Redirect(w, r, "/inside", code)
		}))
		if got := tryOnce(t, Options{}, server.URL+"/hook"); got != (result{code, FailureRedirect, 0}) {
			t.Errorf("%d: got %+v", code, got)
		}
		if strings.Join(visited, " ") != "/hook" {
			t.Errorf("%d: visited %v", code, visited)
		}
		server.Close()
	}
}

func TestTLS(t *testing.T) {
	names := serveNames(t, func(string, int) []string { return []string{"127.0.0.1"} })
	policy := &Policy{Allow: loopback, Resolver: names.resolver()}
	start := func(config *tls.Config) *httptest.Server {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		s.Config.ErrorLog = discard
		s.TLS = config
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	good := start(nil)
	old := start(&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	exacting := start(&tls.Config{ClientAuth: tls.RequireAnyClientCert})
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("sent in the clear") }))
	plain.Config.ErrorLog = discard
	defer plain.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	port := func(s *httptest.Server) string {
		return s.Listener.Addr().(*net.TCPAddr).AddrPort().String()[len("127.0.0.1"):]
	}
	for _, c := range []struct {
		name, url string
		roots     *x509.CertPool
		want      string
	}{
		{"trusted", "https://example.com" + port(good), rootsOf(good), ""},
		{"trusted for its address", good.URL, rootsOf(good), ""},
		{"an unknown authority", "https://example.com" + port(good), x509.NewCertPool(), FailureTLS},
		{"the system's roots", "https://example.com" + port(good), nil, FailureTLS},
		{"for another name", "https://example.org" + port(good), rootsOf(good), FailureTLS},
		{"TLS 1.1", "https://example.com" + port(old), rootsOf(old), FailureTLS},
		{"wants a certificate", "https://example.com" + port(exacting), rootsOf(exacting), FailureTLS},
		{"no TLS", "https://example.com" + port(plain), rootsOf(good), FailureTLS},
		{"TLS where none is meant", "http://example.com" + port(good), rootsOf(good), "status_4xx"}, // as net/http's server answers
		{"a closed port", "https://" + closed.Addr().String(), rootsOf(good), FailureConnection},
	} {
		if got := tryOnce(t, Options{Policy: policy, Roots: c.roots}, c.url); got.failure != c.want {
			t.Errorf("%s: got %+v, want %q", c.name, got, c.want)
		}
	}
}

func TestNameIsNotFound(t *testing.T) {
	names := serveNames(t, func(string, int) []string { return nil })
	if got := tryOnce(t, Options{Policy: &Policy{Resolver: names.resolver()}}, "https://hooks.example.com/"); got.failure != FailureName {
		t.Errorf("got %+v", got)
	}
}

// TestNameLeadsElsewhereTheSecondTime: a name that was public when it was
// accepted leads inside when it is dialled.
func TestNameLeadsElsewhereTheSecondTime(t *testing.T) {
	for _, inside := range []string{"127.0.0.1", "169.254.169.254", "10.0.0.1", "168.63.129.16", "::1", "fd00:ec2::254", "64:ff9b::7f00:1", "::ffff:127.0.0.1", "::7f00:1"} {
		for _, port := range []string{"443", "8443"} {
			names := serveNames(t, func(_ string, asked int) []string {
				if asked <= 1 {
					return []string{"8.8.8.8"}
				}
				return []string{inside}
			})
			policy := &Policy{Resolver: names.resolver()}
			address := "https://rebound.example.com:" + port + "/"
			if receiver, err := policy.Check(t.Context(), address); err != nil || receiver != "rebound.example.com:"+port {
				t.Fatalf("Check: %q, %v", receiver, err)
			}
			if got := tryOnce(t, Options{Policy: policy}, address); got != (result{failure: FailureRefused}) {
				t.Errorf("%s: got %+v, want it refused", inside, got)
			}
			if n := names.lookups("rebound.example.com"); n != 2 {
				t.Errorf("%s: %d look-ups, want 2", inside, n)
			}
		}
	}
}

// TestDialling: the judgement behind the look-up, by itself.
func TestDialling(t *testing.T) {
	open := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		network, address string
		plain            bool
		allow            []netip.Prefix
		want             error
	}{
		{"tcp4", "8.8.8.8:443", false, nil, nil},
		{"tcp4", "8.8.8.8:8443", false, nil, nil},
		{"tcp6", "[2606:4700:4700::1111]:443", false, nil, nil},
		{"tcp4", "8.8.8.8:80", false, nil, ErrPort},
		{"tcp4", "8.8.8.8:443", true, nil, ErrNotHTTPS},
		{"tcp4", "8.8.8.8:80", true, open, ErrNotHTTPS},
		{"tcp4", "8.8.8.8:9000", false, open, ErrPort},
		{"tcp4", "127.0.0.1:443", false, nil, ErrSpecialAddress},
		{"tcp6", "[::1]:443", false, nil, ErrSpecialAddress},
		{"tcp6", "[::1]:443", false, open, ErrSpecialAddress},
		{"tcp6", "[fe80::1%lo]:443", false, nil, ErrSpecialAddress},
		{"tcp6", "[2606:4700:4700::1111%lo]:443", false, nil, ErrSpecialAddress},
		{"tcp6", "[::ffff:127.0.0.1]:443", false, nil, ErrSpecialAddress},
		{"tcp6", "[::ffff:127.0.0.1]:443", false, open, nil},
		{"tcp4", "127.0.0.1:9000", true, open, nil},
		{"tcp4", "127.0.0.1:9000", false, open, nil},
		{"tcp6", "[fd00::1]:80", true, open, nil},
		{"tcp4", "10.0.0.1:443", false, open, ErrSpecialAddress},
		{"udp4", "8.8.8.8:443", false, nil, ErrSpecialAddress},
		{"unix", "/run/docker.sock", false, open, ErrSpecialAddress},
		{"tcp", "8.8.8.8:443", false, nil, ErrSpecialAddress},
	} {
		p := &Policy{Allow: c.allow}
		if err := p.judge(c.network, c.address, c.plain); !errors.Is(err, c.want) {
			t.Errorf("%s %s, plain %v: got %v, want %v", c.network, c.address, c.plain, err, c.want)
		}
	}
}

// TestPolicyOfTheMoment: what another policy accepted is not called.
func TestPolicyOfTheMoment(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("called") }))
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{server.URL, "https://" + u.Host, "https://127.0.0.1/", "https://2130706433/", "junk", ""} {
		if got := tryOnce(t, Options{Policy: new(Policy)}, address); got != (result{failure: FailureRefused}) {
			t.Errorf("%s: got %+v", address, got)
		}
	}
}

// TestHugeHeaderOverHTTP2: how an answer's header is refused there depends on
// how it is cut into frames.
func TestHugeHeaderOverHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Huge", strings.Repeat("z", 2*maxHeaderBytes))
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = discard
	server.StartTLS()
	defer server.Close()
	got := tryOnce(t, Options{Roots: rootsOf(server)}, server.URL)
	if got.status != 0 || got.failure != FailureTooLarge && got.failure != FailureProtocol {
		t.Errorf("got %+v", got)
	}
}

func TestOldReceiversAreBounded(t *testing.T) {
	tr := &transport{old: map[string]struct{}{}}
	for i := range 2 * maxOld {
		host := fmt.Sprintf("r%d.example.com:443", i)
		if tr.noteOld(host); !tr.isOld(host) {
			t.Fatalf("%s is forgotten at once", host)
		}
	}
	if len(tr.old) != maxOld {
		t.Errorf("%d receivers are known, want %d", len(tr.old), maxOld)
	}
}
