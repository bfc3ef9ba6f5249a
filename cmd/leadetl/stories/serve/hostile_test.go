//go:build unix

package serve

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// besieged is a service that is attacked, with a customer who only wants an
// answer.
type besieged struct {
	*clitest.Served
	address  string
	customer *clitest.Caller
	operator *clitest.Caller
}

func besiege(t *testing.T, flags ...string) *besieged {
	t.Helper()
	p := clitest.NewPlace(t)
	key := p.Customer("Example Rockets", "1000000")
	s := p.Serve(append(clitest.Unlimited, flags...)...)
	return &besieged{s, strings.TrimPrefix(s.Public, "http://"), clitest.NewCaller(t, s.Public, key), clitest.NewOperator(t, s.Internal)}
}

// stands makes sure that the service still serves.
func (b *besieged) stands() {
	b.Helper()
	if a := b.customer.Post("/lead/enrichment", clitest.AskAda); a.Status != http.StatusOK || a.Text("lead", "full_name") != "Ada Example" {
		b.Errorf("a customer is answered %d %s", a.Status, a.Raw)
	}
	if a := b.operator.Do("GET", "/readyz", ""); a.Status != http.StatusOK {
		b.Errorf("the service is not ready: %d %s", a.Status, a.Raw)
	}
	if b.Ended() {
		b.Fatalf("the service is gone:\n%s", b.Said)
	}
}

func (b *besieged) dial() *net.TCPConn {
	b.Helper()
	conn, err := net.Dial("tcp", b.address)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(clitest.Patience)); err != nil {
		b.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// gauge is a number of the service's metrics, 0 where the platform has none.
func (b *besieged) gauge(name string) float64 {
	b.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(b.operator.Do("GET", "/metrics", "").Raw)
	if found == nil && runtime.GOOS != "linux" {
		return 0
	}
	if found == nil {
		b.Fatalf("no metric %s", name)
	}
	value, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return value
}

// head is the head of a call, up to its last line.
func (b *besieged) head(length int) string {
	return fmt.Sprintf("POST /lead/enrichment HTTP/1.1\r\nHost: service.example\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", b.customer.Key, length)
}

// request is a call as its answer is read.
func (b *besieged) request() *http.Request {
	b.Helper()
	r, err := http.NewRequest(http.MethodPost, b.Public+"/lead/enrichment", nil)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// TestServeSlowClients: who sends a request drop by drop is cut off in time,
// and delays no other caller.
func TestServeSlowClients(t *testing.T) {
	t.Parallel()
	const forHeaders, forBodies = 4 * time.Second, clitest.Patience // what is cut off in 300 ms and in 5 s, on a busy machine
	b := besiege(t, "--timeout", "header=300ms", "--timeout", "read=5s", "--timeout", "idle=500ms")
	var clients sync.WaitGroup
	for _, f := range []struct {
		name, begun string
		answered    bool
		limit       time.Duration
	}{
		{"nothing at all", "", false, forHeaders},
		{"half a line", "POST /lead/enr", false, forHeaders},
		{"half a header", b.head(len(clitest.AskAda)), false, forHeaders},
		{"a call, then quiet", b.head(len(clitest.AskNobody)) + "\r\n" + clitest.AskNobody, true, forHeaders},
		{"no body", b.head(len(clitest.AskAda)) + "\r\n", false, forBodies},
		{"half a body", b.head(len(clitest.AskAda)) + "\r\n" + clitest.AskAda[:20], false, forBodies},
		{"half a chunk", strings.Replace(b.head(0), "Content-Length: 0", "Transfer-Encoding: chunked", 1) + "\r\n40\r\n{", false, forBodies},
	} {
		for range 20 {
			conn, began, r := b.dial(), time.Now(), b.request()
			clients.Go(func() {
				if _, err := io.WriteString(conn, f.begun); err != nil {
					t.Errorf("%s: %v", f.name, err)
				}
				said, err := io.ReadAll(conn) // to the end that the service makes
				if took := time.Since(began); took > f.limit || err != nil && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("%s: cut off after %s: %v", f.name, took, err)
				}
				status := 0
				if bytes.Contains(said, []byte("application/json")) { // of the service
					status, _ = clitest.ReadAnswer(t, bufio.NewReader(bytes.NewReader(said)), r, clitest.AskNobody)
				}
				if answered := status == http.StatusOK; answered != f.answered {
					t.Errorf("%s: answered %.60q", f.name, said)
				}
			})
		}
	}
	// Drop by drop: none of them comes late enough to look idle.
	trickling := b.dial()
	clients.Go(func() {
		drops := time.NewTicker(50 * time.Millisecond)
		defer drops.Stop()
		for i := range 80 {
			if _, err := io.WriteString(trickling, (b.head(0) + strings.Repeat("X-Drop: 1\r\n", 20))[i:i+1]); err != nil {
				return
			}
			<-drops.C
		}
		t.Error("a header was taken for 4 s, want 300 ms")
	})
	b.stands()
	clients.Wait()
	b.stands()
}

// TestServeOversized: what is too large, too deep or no HTTP at all is refused,
// and costs the service little.
func TestServeOversized(t *testing.T) {
	t.Parallel()
	b := besiege(t)
	b.stands()
	resident := b.gauge("process_resident_memory_bytes")
	const deep = 100_000
	mebibyte := strings.Repeat("a", 1<<20)
	for range 2 {
		for _, f := range []struct {
			name, body string
			status     int
			code       string
		}{
			{"a body of more than 1 MiB", `{"network_url":"` + mebibyte + `"}`, 413, "payload_too_large"},
			{"one of spaces", mebibyte + "  ", 413, "payload_too_large"},
			{"the largest body", `{"network_url":"network.example/in/a-stranger","x":"` + mebibyte[60:] + `"}`, 200, ""},
			{"deep arrays", strings.Repeat("[", deep), 400, "malformed_json"},
			{"a deep object", strings.Repeat(`{"a":`, deep) + "1" + strings.Repeat("}", deep), 400, "malformed_json"},
			{"a deep member", `{"metadata":` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + "}", 400, "malformed_json"},
			{"many members", "{" + strings.Repeat(`"a":1,`, 100_000) + `"a":1}`, 400, "malformed_json"},
			{"a long number", `{"network_url":` + strings.Repeat("9", 1_000_000) + "}", 400, "validation_error"},
			{"bytes that are no UTF-8", "{\"network_url\":\"\xff\xfe\"}", 400, "malformed_json"},
			{"NUL", "{\"network_url\":\"\x00\"}", 400, "malformed_json"},
			{"nothing", "", 400, "malformed_json"},
		} {
			if a := b.customer.Post("/lead/enrichment", f.body); a.Status != f.status || a.Code() != f.code {
				t.Errorf("%s: %d %s, want %d %s", f.name, a.Status, a.Code(), f.status, f.code)
			}
		}
		// The same without saying how long it is.
		if status, code := b.chunked(`{"network_url":"` + mebibyte + `"}`); status != 413 || code != "payload_too_large" {
			t.Errorf("chunks of more than 1 MiB: %d %s", status, code)
		}
	}
	if now := b.gauge("process_resident_memory_bytes"); now > resident+256<<20 {
		t.Errorf("the service holds %.0f MiB, and held %.0f before", now/(1<<20), resident/(1<<20))
	}
	b.stands()
}

// chunked posts a body in chunks.
func (b *besieged) chunked(body string) (status int, code string) {
	b.Helper()
	r := b.request()
	r.Body = io.NopCloser(strings.NewReader(body)) // of unknown length
	r.Header.Set("Authorization", "Bearer "+b.customer.Key)
	response, err := b.customer.HTTP.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	if found := regexp.MustCompile(`"code":"([a-z_]+)"`).FindSubmatch(text); found != nil {
		code = string(found[1])
	}
	return response.StatusCode, code
}

var statusLine = regexp.MustCompile(`^HTTP/1\.[01] ([0-9]{3}) `)

// TestServeRawBytes: what comes over a connection need not be HTTP, and a
// client need not behave.
func TestServeRawBytes(t *testing.T) {
	t.Parallel()
	b := besiege(t)
	random := rand.New(rand.NewPCG(3, 3))
	garbage := make([]byte, 64<<10)
	for i := range garbage {
		garbage[i] = byte(random.Uint32())
	}
	call := b.head(len(clitest.AskNobody)) + "\r\n" + clitest.AskNobody
	for _, f := range []struct {
		name, text string
		want       string // the status it is refused with; "" is 400 or none at all
	}{
		{"garbage", string(garbage), ""},
		{"zeros", strings.Repeat("\x00", 1000), ""},
		{"line ends", strings.Repeat("\r\n", 10_000), ""},
		{"a TLS handshake", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + string(garbage[:500]), ""},
		{"a header of 100 KiB", b.head(0) + "X-Long: " + strings.Repeat("a", 100<<10) + "\r\n\r\n", "431"},
		{"100 KiB of headers", b.head(0) + strings.Repeat("X-Many: "+strings.Repeat("a", 92)+"\r\n", 1024) + "\r\n", "431"},
		{"an address of 100 KiB", "GET /" + strings.Repeat("a", 100<<10) + " HTTP/1.1\r\nHost: service.example\r\n\r\n", "431"},
		{"two lengths", strings.Replace(call, "Content-Type", "Content-Length: 7\r\nContent-Type", 1), "400"},
		{"a length and chunks", strings.Replace(call, "Content-Type", "Transfer-Encoding: chunked\r\nContent-Type", 1), "400"},
		{"a negative length", strings.Replace(call, "Content-Length: ", "Content-Length: -", 1), "400"},
		{"an unknown encoding", strings.Replace(call, "Content-Length: ", "Transfer-Encoding: gzip\r\nX-Length: ", 1), "501"},
		{"no host", "GET /healthz HTTP/1.1\r\n\r\n", "400"},
		{"two hosts", "GET /healthz HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n", "400"},
		{"a space in a header's name", strings.Replace(call, "Content-Type:", "Content Type:", 1), "400"},
		{"another HTTP", "GET /healthz HTTP/3.7\r\nHost: service.example\r\n\r\n", "505"},
		{"a word", "hello\r\n", "400"},
		{"an HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "404"},
	} {
		conn := b.dial()
		written := make(chan struct{})
		go func() {
			defer close(written)
			_, _ = io.WriteString(conn, f.text) // it may be cut off
			_ = conn.CloseWrite()
		}()
		said, err := io.ReadAll(conn)
		if err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: %v", f.name, err)
		}
		status := ""
		if found := statusLine.FindSubmatch(said); found != nil {
			status = string(found[1])
		}
		if hungUp := f.want == "" && len(said) == 0; status != cmp.Or(f.want, "400") && !hungUp {
			t.Errorf("%s: answered %.200q, want %s", f.name, said, f.want)
		}
		conn.Close()
		<-written
	}
	b.stands()

	// Requests one behind the other, before the first is answered.
	conn := b.dial()
	const n = 50
	if _, err := io.WriteString(conn, strings.Repeat(call, n)); err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(conn)
	for range n {
		if status, body := clitest.ReadAnswer(t, from, b.request(), clitest.AskNobody); status != http.StatusOK {
			t.Fatalf("a request in a row: %d %s", status, body)
		}
	}

	// Clients that close their half, or all, with a request under way. What
	// they are answered, if they are, is whole.
	for i := range 100 {
		conn := b.dial()
		if _, err := io.WriteString(conn, call[:len(call)-i%3]); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			conn.Close()
			continue
		}
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(conn)
		if err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a half-closed connection: %v", err)
		}
		if len(said) > 0 {
			clitest.ReadAnswer(t, bufio.NewReader(bytes.NewReader(said)), b.request(), clitest.AskNobody)
		}
	}
	b.stands()
	if handshake, err := tls.Dial("tcp", b.address, &tls.Config{InsecureSkipVerify: true}); err == nil {
		handshake.Close()
		t.Error("plain HTTP speaks TLS")
	}
	b.stands()
}

// idleConnections is how many clients connect and then say nothing.
const idleConnections = 10_000

// TestServeIdleConnections: many clients that only hold a connection keep
// nobody from an answer, and each costs little.
func TestServeIdleConnections(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < idleConnections+500 {
		t.Skipf("only %d files may be open", limit.Cur)
	}
	b := besiege(t, "--timeout", "header=5m", "--timeout", "idle=5m")
	b.stands()
	before := b.gauge("process_resident_memory_bytes")
	// Every other one has asked something before; their connections are kept.
	call := "GET /healthz HTTP/1.1\r\nHost: service.example\r\n\r\n"
	held := make([]net.Conn, idleConnections)
	var dialling sync.WaitGroup
	for worker := range 16 {
		dialling.Go(func() {
			for i := worker; i < len(held); i += 16 {
				conn, err := net.Dial("tcp", b.address)
				if err != nil {
					t.Error(err)
					return
				}
				held[i] = conn
				if err := conn.SetDeadline(time.Now().Add(2 * clitest.Patience)); err != nil {
					t.Error(err)
				}
				if i%2 == 0 {
					continue
				}
				if _, err := io.WriteString(conn, call); err != nil {
					t.Error(err)
				}
				if line, err := bufio.NewReaderSize(conn, 1<<10).ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" {
					t.Errorf("connection %d: %q %v", i, line, err)
					return
				}
			}
		})
	}
	defer func() {
		for _, conn := range held {
			if conn != nil {
				conn.Close()
			}
		}
	}()
	dialling.Wait()
	if t.Failed() {
		return
	}
	for range 20 {
		b.stands()
	}
	if files := b.gauge("process_open_fds"); files > 0 && files < idleConnections {
		t.Errorf("the service has %.0f files open: connections were dropped", files)
	}
	// A connection of net/http takes some 20 KiB of stacks and buffers, and the
	// race detector several times that.
	if now := b.gauge("process_resident_memory_bytes"); now > before+idleConnections*200<<10 {
		t.Errorf("the service holds %.0f MiB, and held %.0f before", now/(1<<20), before/(1<<20))
	}
	// They were only idle: those that ask now are answered.
	for i := 0; i < len(held); i += 500 {
		if _, err := io.WriteString(held[i], call); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(held[i]).ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" {
			t.Errorf("one that was idle: %q %v", line, err)
		}
	}
}

// TestServeMaxConnections: beyond the bound a client waits until another has
// gone, and is answered then.
func TestServeMaxConnections(t *testing.T) {
	t.Parallel()
	b := besiege(t, "--max-connections", "4", "--timeout", "header=5m")
	b.customer.HTTP.CloseIdleConnections()
	held := []*slowCall{}
	for range 4 {
		held = append(held, beginCall(t, b.Public, b.customer.Key, "/lead/enrichment", clitest.AskAda))
	}
	late := make(chan clitest.Answer, 1)
	go func() {
		a, err := b.customer.Try(context.Background(), http.MethodPost, "/lead/enrichment", clitest.AskAda)
		if err != nil {
			t.Error(err)
		}
		late <- a
	}()
	if a := b.operator.Do("GET", "/readyz", ""); a.Status != http.StatusOK {
		t.Errorf("the operator is answered %d", a.Status)
	}
	select {
	case a := <-late:
		t.Errorf("a fifth connection was answered %d", a.Status)
	default:
	}
	if status, body := held[0].finish(); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	held[0].conn.Close()
	if a := <-late; a.Status != http.StatusOK {
		t.Errorf("the one that waited: %d %s", a.Status, a.Raw)
	}
}
