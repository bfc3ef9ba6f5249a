//go:build unix

package serve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// slowCall is a call whose body its caller holds back.
type slowCall struct {
	testing.TB
	conn net.Conn
	read *bufio.Reader
	body string
	r    *http.Request
}

// beginCall sends the head of a call, and waits until the service wants the
// body: from then on the call is under way.
func beginCall(t testing.TB, url, key, path, body string) *slowCall {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(clitest.Patience)); err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodPost, url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer " + key}, "Content-Type": {"application/json"}, "Expect": {"100-continue"}, "Content-Length": {fmt.Sprint(len(body))}}
	c := &slowCall{TB: t, conn: conn, read: bufio.NewReader(conn), body: body, r: r}
	var head strings.Builder
	fmt.Fprintf(&head, "POST %s HTTP/1.1\r\nHost: %s\r\n", path, r.Host)
	if err := r.Header.Write(&head); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, head.String()+"\r\n"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"HTTP/1.1 100 Continue\r\n", "\r\n"} {
		if line, err := c.read.ReadString('\n'); line != want || err != nil {
			t.Fatalf("read %q, %v; want %q", line, err, want)
		}
	}
	return c
}

// finish sends the body and returns the status and the body of the answer.
func (c *slowCall) finish() (status int, body string) {
	c.Helper()
	if _, err := io.WriteString(c.conn, c.body); err != nil {
		c.Fatal(err)
	}
	return clitest.ReadAnswer(c, c.read, c.r, c.body)
}

// TestServeDrain: who stops the service breaks no promise. Calls under way are
// answered, and keyword searches that were accepted are finished, by this run
// or the next.
func TestServeDrain(t *testing.T) {
	t.Parallel()
	p := clitest.NewPlace(t)
	key := p.Customer("Example Rockets", "100000")
	s := p.Serve(append(clitest.Unlimited, "--job-workers", "1")...)
	c := clitest.NewCaller(t, s.Public, key)

	var calls []*slowCall
	for range 20 {
		calls = append(calls, beginCall(t, s.Public, key, "/lead/enrichment", clitest.AskAda))
	}
	creation := beginCall(t, s.Public, key, "/resolve/keyword_to_lead", clitest.AskTea)
	kept, err := net.Dial("tcp", strings.TrimPrefix(s.Public, "http://")) // asks nothing
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	var jobs []string
	for range 20 {
		jobs = append(jobs, c.Post("/resolve/keyword_to_lead", clitest.AskTea).Text("resolution", "id"))
	}
	if err := s.Process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	operator := clitest.NewOperator(t, s.Internal)
	clitest.Until(t, "the internal listener says that the service stops", func() bool {
		return operator.Do("GET", "/readyz", "").Status == http.StatusServiceUnavailable
	})
	clitest.Until(t, "no caller is let in any more", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.Public, "http://"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	for _, call := range calls {
		if status, body := call.finish(); status != http.StatusOK || !strings.Contains(body, "Ada Example") {
			t.Errorf("a call under way: %d %s", status, body)
		}
	}
	if status, body := creation.finish(); status != http.StatusOK {
		t.Errorf("a creation under way: %d %s", status, body)
	} else {
		id := body[strings.Index(body, "res_"):]
		jobs = append(jobs, id[:len("res_")+32])
	}
	if code := s.Code(); code != cli.ExitDone {
		t.Errorf("exit code %d, want %d\n%s", code, cli.ExitDone, s.Said)
	}

	c.URL = p.Serve(clitest.Unlimited...).Public
	for _, id := range jobs {
		if a := c.Result("", id); a.Text("resolution", "status") != "completed" || a.At("lead", "pagination", "total") != 6.0 {
			t.Errorf("a search of before: %d %s", a.Status, a.Raw)
		}
	}
	// An answer that costs nothing tells a balance of a moment ago.
	clitest.Until(t, "all is paid, once", func() bool {
		return c.Post("/lead/enrichment", clitest.AskNobody).Header.Get("X-Credits-Remaining") == fmt.Sprint(100000-2*len(calls)-6*len(jobs))
	})
}

// TestServeInterruptedTwice: a second Ctrl-C does not wait.
func TestServeInterruptedTwice(t *testing.T) {
	t.Parallel()
	p := clitest.NewPlace(t)
	key := p.Customer("Example Rockets", "10")
	s := p.Serve()
	beginCall(t, s.Public, key, "/lead/enrichment", clitest.AskAda) // and never ends
	if err := s.Process.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	clitest.Until(t, "the service drains", func() bool { return s.Said.Line("draining") != nil })
	clitest.Until(t, "another Ctrl-C ends it", func() bool {
		_ = s.Process.Process.Signal(syscall.SIGINT) // one that comes at once may count as the first
		return s.Ended()
	})
	if code := s.Code(); code != -1 {
		t.Errorf("exit code %d, want to be ended by the signal", code)
	}
}
