package serving

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/testkit/certtest"
)

// TestAmbiguousHeads: what is found does not depend on how the bytes arrive.
func TestAmbiguousHeads(t *testing.T) {
	const length, chunks, other = "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "Host: service.example\r\n"
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"a length", "POST / HTTP/1.1\r\n" + other + length + "\r\nhello", false},
		{"chunks", "POST / HTTP/1.1\r\n" + chunks + "\r\n5\r\nhello\r\n0\r\n\r\n", false},
		{"both", "POST / HTTP/1.1\r\n" + length + other + chunks + "\r\n0\r\n\r\n", true},
		{"the other way around, in another case", "POST / HTTP/1.1\ntransfer-encoding:chunked\nCONTENT-LENGTH:5\n\n", true},
		{"one each in two requests", "POST / HTTP/1.1\r\n" + length + "\r\nhelloPOST / HTTP/1.1\r\n" + chunks + "\r\n0\r\n\r\n", false},
		{"in the second request", "GET / HTTP/1.1\r\n" + other + "\r\nPOST / HTTP/1.1\r\n" + chunks + length + "\r\n", true},
		{"unfinished", "POST / HTTP/1.1\r\n" + length + chunks, false},
		{"longer names", "POST / HTTP/1.1\r\nContent-Length-X: 5\r\n" + chunks + "\r\n", false},
	} {
		for _, piece := range []int{1, 2, 7, len(c.text)} {
			var l lines
			found := false
			for rest := []byte(c.text); len(rest) > 0; rest = rest[min(piece, len(rest)):] {
				found = l.ambiguous(rest[:min(piece, len(rest))]) || found
			}
			if found != c.want {
				t.Errorf("%s, in pieces of %d: %t", c.name, piece, found)
			}
		}
	}
}

// TestRequestsOfConnections: over plain HTTP and TLS, ambiguous requests are known,
// a client that sends too much of a header before it reads sees why, and HTTP/2
// continues.
func TestRequestsOfConnections(t *testing.T) {
	certificate, key := certtest.Make(t, 1)
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]*tls.Config{"plain": nil, "TLS": {Certificates: []tls.Certificate{pair}}} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := New("test", Limit(l, 8), &http.Server{
				ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 1 << 10,
				Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					fmt.Fprintf(w, "%s ambiguous=%t", r.Proto, Ambiguous(r))
				}),
			}, func() http.Header { return http.Header{"X-Id": {"1"}} }, config)
			ended := make(chan error, 1)
			go func() { ended <- s.Run() }()
			defer func() {
				if err := s.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}()
			dial := func() net.Conn {
				c, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				if config != nil {
					c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
				}
				if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
					t.Fatal(err)
				}
				return c
			}
			const chunked = "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
			for _, c := range []struct{ head, want string }{
				{"Content-Length: 2\r\n\r\n{}", "HTTP/1.1 ambiguous=false"},
				{chunked, "HTTP/1.1 ambiguous=false"},
				{"Content-Length: 2\r\n" + chunked, "HTTP/1.1 ambiguous=true"},
			} {
				conn := dial()
				fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: service.example\r\n%s", c.head)
				answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				if text, err := io.ReadAll(answer.Body); err != nil || string(text) != c.want {
					t.Errorf("%q: %q, %v, want %q", c.head, text, err, c.want)
				}
				conn.Close()
			}

			conn := dial()
			large := bytes.NewReader([]byte("GET / HTTP/1.1\r\nX-Large: " + strings.Repeat("a", 8<<20) + "\r\n\r\n"))
			if _, err := large.WriteTo(conn); err != nil {
				t.Fatalf("it was cut off before all was sent: %v", err)
			}
			text, err := io.ReadAll(conn)
			if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 431 Request Header Fields Too Large\r\nX-Id: 1\r\nContent-Type: ") {
				t.Errorf("too much of a header: %.100q, %v", text, err)
			}
			conn.Close()

			if config == nil {
				return
			}
			client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
			defer client.CloseIdleConnections()
			answer, err := client.Get("https://" + l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if answer.Proto != "HTTP/2.0" {
				t.Errorf("%s", answer.Proto)
			}
		})
	}
}
