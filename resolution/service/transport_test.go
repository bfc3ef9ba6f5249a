package service

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// raw sends bytes over a connection of its own, all of them before it reads.
func (f *fixture) raw(text string) (a *http.Response, body string, closed bool) {
	f.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.public, "http://"))
	f.must(err)
	defer conn.Close()
	f.must(conn.SetDeadline(time.Now().Add(30 * time.Second)))
	if _, err := io.WriteString(conn, text); err != nil {
		f.Fatalf("cut off before all was sent: %v", err)
	}
	from := bufio.NewReader(conn)
	a, err = http.ReadResponse(from, nil)
	f.must(err)
	all, err := io.ReadAll(a.Body)
	f.must(err)
	f.must(conn.SetReadDeadline(time.Now().Add(time.Second)))
	_, err = from.ReadByte()
	return a, string(all), err == io.EOF
}

// TestRefusedTransport: requests that two servers may read differently are
// refused, and clients that send first see why.
func TestRefusedTransport(t *testing.T) {
	f := &fixture{TB: t, client: &http.Client{}}
	f.client.Transport = f.transport()
	f.prepare()
	stop := f.run()
	head := "POST " + enrichment + " HTTP/1.1\r\nHost: service.example\r\nAuthorization: Bearer " + f.key + "\r\nContent-Type: application/json\r\n"
	chunked := "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(askAda), askAda)
	large := `{"network_url":"` + strings.Repeat("a", 8<<20) + `"}`
	for _, c := range []struct {
		name, text string
		status     int
		part       string
		closed     bool
	}{
		{"chunks", head + chunked, 200, "Ada Example", false},
		{"a length and chunks", head + fmt.Sprintf("Content-Length: %d\r\n", len(askAda)) + chunked, 400, "both Content-Length and Transfer-Encoding", true},
		{"8 MiB", head + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(large)) + large, 413, "payload_too_large", false},
		{"8 MiB without credentials", strings.Replace(head, "Bearer ", "Basic ", 1) + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(large)) + large, 401, "missing_credentials", false},
		{"a header of 100 KiB", head + "X-Large: " + strings.Repeat("a", 100<<10) + "\r\n\r\n", 431, "431", true},
		{"an encoding that is not known", head + "Transfer-Encoding: gzip\r\n\r\n", 501, "Unsupported transfer encoding", true},
		{"an expectation", head + "Expect: a miracle\r\nContent-Length: 0\r\n\r\n", 417, "", true},
		{"another HTTP", "GET / HTTP/3.7\r\nHost: service.example\r\n\r\n", 505, "505", true},
		{"no HTTP", "hello\r\n\r\n", 400, "400 Bad Request", true},
		{"every method of the server", "OPTIONS * HTTP/1.1\r\nHost: service.example\r\n\r\n", 404, "not_found", false},
	} {
		a, body, closed := f.raw(c.text)
		if a.StatusCode != c.status || !strings.Contains(body, c.part) || closed != c.closed && c.closed {
			t.Errorf("%s: %d %.200s, closed: %t", c.name, a.StatusCode, body, closed)
		}
		for _, name := range []string{"X-Request-Id", "Api-Version", "Cache-Control", "X-Content-Type-Options"} {
			if len(a.Header[name]) != 1 {
				t.Errorf("%s: headers %v", c.name, a.Header)
			}
		}
	}
	if got := f.balance().Available; got != plenty-2 {
		t.Errorf("%d credits left", got)
	}
	f.must(stop())
}
