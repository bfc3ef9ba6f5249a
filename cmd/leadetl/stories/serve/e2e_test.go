//go:build unix

package serve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
)

// TestServeAnswers asks the real program everything there is to ask.
func TestServeAnswers(t *testing.T) {
	t.Parallel()
	p := clitest.NewPlace(t)
	c := clitest.NewCaller(t, "", p.Customer("Example Rockets", "10000"))
	s := p.Serve("--callback-allow", "127.0.0.0/8")
	c.URL = s.Public
	r := clitest.NewReceiver(t, p.Admin("secret", "show", "Example Rockets"))
	hook := func(path, ref string) string { return `"callback_url":"` + r.Hook(path, ref) + `"` }

	for i, f := range []struct {
		path, body string
		callback   bool
		want       string // the path to a text of the answer, and the text
	}{
		{"/lead/resolution/email_to_hem", `{"email":"ada.example@bakery.example"}`, true, "lead.network_url network.example/in/ada-example"},
		{"/lead/resolution/network_to_hem", clitest.AskAda, true, "lead.network_url network.example/in/ada-example"},
		{"/lead/resolution/network_to_phone", clitest.AskAda, true, "lead.phone +12025550100"},
		{"/lead/resolution/ip_to_company", `{"ip":"192.31.196.5"}`, false, "lead.company.name Sample Bakery"},
		{"/lead/enrichment", clitest.AskAda, false, "lead.full_name Ada Example"},
		{"/lead/enrichment/", clitest.AskAda, true, "lead.full_name Ada Example"},
		{"/lead/enrichment", clitest.AskNobody, true, "resolution.status completed"},
		{"/lead/deanonymization", `{"ip":"192.31.196.5"}`, true, "lead.match_level person"},
		{"/lead/resolution/deanonymization", `{"ip":"192.31.196.6"}`, true, "lead.match_level company"},
		{"/resolve/keyword_to_lead", clitest.AskTea, true, "resolution.status processing"},
		{"/resolve/keyword_to_lead/count", clitest.AskTea, true, "resolution.status queued"},
	} {
		ref, body := fmt.Sprint(i), f.body
		if f.callback {
			body = strings.TrimSuffix(body, "}") + "," + hook(strings.TrimSuffix(f.path, "/"), ref) + "}"
		}
		a := c.Post(f.path, body)
		at, text, _ := strings.Cut(f.want, " ")
		if a.Status != http.StatusOK || a.Text(strings.Split(at, ".")...) != text {
			t.Errorf("%s: %d %s, want %s", f.path, a.Status, a.Raw, f.want)
		}
		if f.callback {
			came := r.Wait(ref, 1)[0]
			if came.Kind != "resolution.completed" || came.Resolution != a.Text("resolution", "id") {
				t.Errorf("%s: the callback is %s about %s", f.path, came.Kind, came.Resolution)
			}
		}
	}
	started := c.Post("/resolve/keyword_to_lead", clitest.AskTea)
	if list := c.Result("", started.Text("resolution", "id")); list.At("lead", "pagination", "total") != 6.0 || list.At("credits", "spent") != 6.0 {
		t.Errorf("list: %d %s", list.Status, list.Raw)
	}
	started = c.Post("/resolve/keyword_to_lead/count", clitest.AskTea)
	if count := c.Result("/count", started.Text("resolution", "id")); count.At("lead", "count") != 6.0 {
		t.Errorf("count: %d %s", count.Status, count.Raw)
	}
	for _, f := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/healthz", 200}, {"GET", "/readyz", 200}, {"GET", "/openapi.json", 200}, {"GET", "/docs", 200}, {"HEAD", "/healthz", 200},
		{"GET", "/lead/enrichment", 405}, {"DELETE", "/healthz", 405}, {"GET", "/", 404}, {"POST", "/lead", 404}, {"GET", "/metrics", 404},
	} {
		if a := c.Do(f.method, f.path, ""); a.Status != f.status {
			t.Errorf("%s %s: %d, want %d", f.method, f.path, a.Status, f.status)
		}
	}
	if code := s.Stop(syscall.SIGTERM); code != cli.ExitDone {
		t.Errorf("exit code %d\n%s", code, s.Said)
	}
}

// TestServeLastCredit: of ten calls that are made at once with the credit for
// one, one is answered.
func TestServeLastCredit(t *testing.T) {
	t.Parallel()
	p := clitest.NewPlace(t)
	keys := map[string]string{}
	for _, f := range []struct{ path, credits string }{
		{"/lead/resolution/ip_to_company", "1"}, {"/lead/enrichment", "2"}, {"/resolve/keyword_to_lead/count", "1"}, {"/resolve/keyword_to_lead", "3"},
	} {
		keys[f.path] = p.Customer("Customer of "+f.path, f.credits)
	}
	s := p.Serve(clitest.Unlimited...)
	for path, body := range map[string]string{
		"/lead/resolution/ip_to_company": `{"ip":"192.31.196.5"}`,
		"/lead/enrichment":               clitest.AskAda,
		"/resolve/keyword_to_lead/count": clitest.AskTea,
		"/resolve/keyword_to_lead":       `{"keywords":["tea"],"date_start":"2026-11-01","date_end":"2026-11-13","limit":3}`,
	} {
		c := clitest.NewCaller(t, s.Public, keys[path])
		answers := make([]clitest.Answer, 10)
		var calls sync.WaitGroup
		for i := range answers {
			calls.Go(func() {
				var err error
				if answers[i], err = c.Try(context.Background(), http.MethodPost, path, body); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		succeeded := 0
		for _, a := range answers {
			switch {
			case a.Status == http.StatusOK:
				succeeded++
			case a.Status != http.StatusBadRequest || a.Code() != "insufficient_credits" || a.At("lead") != nil:
				t.Errorf("%s: %d %s", path, a.Status, a.Raw)
			}
		}
		if succeeded != 1 {
			t.Errorf("%s: %d of %d calls on the last credit were answered", path, succeeded, len(answers))
		}
	}
}

// TestServeRefusesToStart: what must not be started is not, and says why.
func TestServeRefusesToStart(t *testing.T) {
	t.Parallel()
	p := clitest.NewPlace(t)
	p.Customer("Example Rockets", "1")
	other := t.TempDir()
	clitest.Run(t, "admin", "org", "create", "Sample Bakery", "--state", other)
	s := p.Serve()
	for _, f := range []struct {
		name  string
		flags []string
		want  string
		code  int
	}{
		{"a second service on the state", []string{"--state", p.State, "--directory", p.Directory}, "in use", cli.ExitTryAgain},
		{"the internal listener for everybody", []string{"--directory", p.Directory, "--state", t.TempDir(), "--internal-listen", "0.0.0.0:0"}, "--internal-listen 0.0.0.0:0 can be reached from other machines", cli.ExitUsage},
		{"the internal listener for everybody by IPv6", []string{"--directory", p.Directory, "--state", t.TempDir(), "--internal-listen", "[::]:0"}, "--internal-listen [::]:0 can be reached", cli.ExitUsage},
		{"the internal listener on every address", []string{"--directory", p.Directory, "--state", t.TempDir(), "--internal-listen", ":0"}, "--internal-listen :0 can be reached", cli.ExitUsage},
		{"no address to serve on", []string{"--directory", p.Directory, "--state", t.TempDir(), "--listen", ""}, "--listen is empty", cli.ExitUsage},
		{"a port that is taken", []string{"--directory", p.Directory, "--state", t.TempDir(), "--listen", strings.TrimPrefix(s.Public, "http://")}, "--listen", cli.ExitUsage},
		{"not a directory of reference data", []string{"--state", t.TempDir(), "--directory", t.TempDir()}, "is not a directory of reference data", cli.ExitUsage},
		{"a certificate without key", []string{"--directory", p.Directory, "--state", t.TempDir(), "--tls-cert", "cert.pem"}, "--tls-key", cli.ExitUsage},
		{"another service's pepper", []string{"--directory", p.Directory, "--state", copyOf(t, p.State), "--pepper-file", filepath.Join(other, wire.PepperName)}, "is not the secret that the keys of this state are hashed under", cli.ExitUsage},
	} {
		refused := p.Start(f.flags...)
		if code := refused.Code(); code != f.code || !strings.Contains(refused.Said.String(), f.want) {
			t.Errorf("%s: exit code %d, want %d; it said\n%swant %q", f.name, code, f.code, refused.Said, f.want)
		}
	}
	if a := clitest.NewCaller(t, s.Public, "").Do("GET", "/readyz", ""); a.Status != http.StatusOK {
		t.Errorf("the service that was there before: %d", a.Status)
	}
}

// TestServeWithoutInternalListener: none and an empty address open no internal
// listener. To net.Listen, an empty address is every address of the machine.
func TestServeWithoutInternalListener(t *testing.T) {
	t.Parallel()
	for _, none := range []string{"none", ""} {
		s := clitest.NewPlace(t).Serve("--internal-listen", none)
		if s.Internal != "" {
			t.Errorf("--internal-listen %q: it listens on %s", none, s.Internal)
		}
		if code := s.Stop(os.Interrupt); code != 0 && code != cli.ExitInterrupted {
			t.Errorf("--internal-listen %q: exit code %d\n%s", none, code, s.Said)
		}
	}
}

// copyOf copies a folder.
func copyOf(t testing.TB, folder string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(to, wire.PepperName), 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestServeSystemKey: only the internal listener knows the system key, and
// only the system key opens it.
func TestServeSystemKey(t *testing.T) {
	t.Parallel()
	p := clitest.NewPlace(t)
	key := p.Customer("Example Rockets", "10")
	file := filepath.Join(t.TempDir(), "system-key")
	const system = "sys_0123456789abcdef0123456789abcdef"
	if err := os.WriteFile(file, []byte(system+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Private = append(p.Private, system)
	s := p.Serve("--system-key-file", file)
	public, internal := clitest.NewCaller(t, s.Public, ""), clitest.NewOperator(t, s.Internal)
	for _, f := range []struct {
		name    string
		on      *clitest.Caller
		method  string
		path    string
		headers []string
		status  int
	}{
		{"right", internal, "GET", "/internal/organizations", []string{"x-sys-key", system}, 200},
		{"wrong", internal, "GET", "/internal/organizations", []string{"x-sys-key", system + "0"}, 401},
		{"a part of it", internal, "GET", "/internal/organizations", []string{"x-sys-key", system[:8]}, 401},
		{"empty", internal, "GET", "/internal/organizations", []string{"x-sys-key", " "}, 401},
		{"missing", internal, "GET", "/internal/organizations", nil, 401},
		{"an API key", internal, "GET", "/internal/organizations", []string{"Authorization", "Bearer " + key}, 401},
		{"as a bearer", internal, "GET", "/internal/organizations", []string{"Authorization", "Bearer " + system}, 401},
		{"metrics need none", internal, "GET", "/metrics", nil, 200},
		{"nothing there, for who knows it", internal, "GET", "/internal/nothing", []string{"x-sys-key", system}, 404},
		{"operations are not on the internal listener", internal, "POST", "/lead/enrichment", []string{"Authorization", "Bearer " + key}, 404},
		{"the public listener has no such path", public, "GET", "/internal/organizations", []string{"x-sys-key", system}, 404},
		{"the public listener does not look at it", public, "POST", "/lead/enrichment", []string{"x-sys-key", system}, 401},
		{"the public listener does not take it as a bearer", public, "POST", "/lead/enrichment", []string{"Authorization", "Bearer " + system}, 401},
		{"beside an API key it does no harm", public, "POST", "/lead/enrichment", []string{"x-sys-key", "wrong", "Authorization", "Bearer " + key}, 200},
	} {
		if a := f.on.Do(f.method, f.path, clitest.AskAda, f.headers...); a.Status != f.status {
			t.Errorf("%s: %d %s, want %d", f.name, a.Status, a.Raw, f.status)
		}
	}
	granted := internal.Post("/internal/organizations/Example%20Rockets/credits", `{"credits":5}`, "x-sys-key", system)
	if granted.At("balance", "available") != 13.0 { // an enrichment was 2
		t.Errorf("credits granted: %d %s", granted.Status, granted.Raw)
	}
}

// TestServeHostileCallbacks: an address that leads anywhere but to the public
// Internet is refused before anything is looked up or billed, and --callback-allow
// opens what it names.
func TestServeHostileCallbacks(t *testing.T) {
	t.Parallel()
	p := clitest.NewPlace(t)
	key := p.Customer("Example Rockets", "1000")
	hostile := []string{
		"http://127.0.0.1/hook", "https://127.0.0.1/hook", "https://127.1/hook", "https://2130706433/hook", "https://0x7f000001/hook", "https://0177.0.0.1/hook",
		"https://[::1]/hook", "https://[::ffff:127.0.0.1]/hook", "https://[64:ff9b::7f00:1]/hook", "https://[2002:7f00:1::]/hook",
		"https://169.254.169.254/latest/meta-data", "https://10.0.0.1/hook", "https://192.168.1.1/hook", "https://100.64.0.1/hook", "https://0.0.0.0/hook",
		"https://[fe80::1]/hook", "https://[fd00::1]/hook", "https://user:word@example.com/hook", "https://example.com:22/hook", "ftp://example.com/hook",
		"https://localhost/hook", "https://service.internal/hook", "http://example.com/hook", "https://example.com/hook#part",
	}
	s := p.Serve(clitest.Unlimited...)
	c := clitest.NewCaller(t, s.Public, key)
	for _, path := range []string{"/lead/enrichment", "/lead/resolution/network_to_phone", "/resolve/keyword_to_lead", "/resolve/keyword_to_lead/count"} {
		for _, address := range hostile {
			body := fmt.Sprintf(`{"network_url":"https://network.example/in/ada-example","keywords":["tea"],"callback_url":%q}`, address)
			a := c.Post(path, body)
			if a.Status != http.StatusBadRequest || a.Code() != "callback_url_not_allowed" || bytes.Contains(a.Raw, []byte(address)) {
				t.Errorf("%s to %s: %d %s", path, address, a.Status, a.Raw)
			}
		}
	}
	if a := c.Post("/lead/enrichment", clitest.AskAda); a.Header.Get("X-Credits-Remaining") != "998" {
		t.Errorf("%s credits are left, want 998: refusals are free", a.Header.Get("X-Credits-Remaining"))
	}
	s.Stop(syscall.SIGTERM)

	s = p.Serve("--callback-allow", "127.0.0.0/8")
	c.URL = s.Public
	r := clitest.NewReceiver(t, p.Admin("secret", "show", "Example Rockets"))
	a := c.Post("/lead/enrichment", strings.Replace(clitest.AskAda, "}", `,"callback_url":"`+r.Hook("/lead/enrichment", "open")+`"}`, 1))
	if a.Status != http.StatusOK {
		t.Fatalf("an address that was opened: %d %s", a.Status, a.Raw)
	}
	r.Wait("open", 1)
	url, hungUp := chattyReceiver(t, "ada-example") // which no log may hold
	if a := c.Post("/lead/enrichment", strings.Replace(clitest.AskAda, "}", `,"callback_url":"`+url+`/hook"}`, 1)); a.Status != http.StatusOK {
		t.Fatalf("a receiver that says more: %d %s", a.Status, a.Raw)
	}
	if err := <-hungUp; errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a connection on which more was said stays open")
	}
	if a := c.Post("/lead/enrichment", strings.Replace(clitest.AskAda, "}", `,"callback_url":"https://10.0.0.1/hook"}`, 1)); a.Code() != "callback_url_not_allowed" {
		t.Errorf("an address beside those that were opened: %d %s", a.Status, a.Raw)
	}
	if line := s.Said.Line("callbacks may reach this network, also over plain http; use this only for tests"); line["network"] != netip.MustParsePrefix("127.0.0.0/8").String() {
		t.Error("that addresses were opened is not said")
	}
}

// chattyReceiver is a receiver that takes one callback, and says more after its
// answer. hungUp gets the error that ends its connection.
func chattyReceiver(t *testing.T, more string) (url string, hungUp <-chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	ended := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			ended <- err
			return
		}
		defer conn.Close()
		r := bufio.NewReader(conn)
		request, err := http.ReadRequest(r)
		if err == nil {
			_, err = io.Copy(io.Discard, request.Body)
		}
		if err == nil {
			_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"+more)
		}
		if err == nil {
			_ = conn.SetReadDeadline(time.Now().Add(clitest.Patience)) // an error shows below
			_, err = r.ReadByte()
		}
		ended <- err
	}()
	return "http://" + l.Addr().String(), ended
}
