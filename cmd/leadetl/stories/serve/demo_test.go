//go:build unix

package serve

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/resolution/service/openapi/openapitest"
)

// shownCall takes a printed call apart.
var shownCall = regexp.MustCompile(`^curl -s (http://[^/ ]+)(/\S+) -H 'Authorization: Bearer (\S+)' -H 'Content-Type: application/json' -d '(.*)'$`)

// TestServeDemo: the lines the demo prints work as they are printed, and it
// leaves nothing behind.
func TestServeDemo(t *testing.T) {
	t.Parallel()
	temporary := t.TempDir()
	p := &clitest.Place{TB: t, Environ: []string{"TMPDIR=" + temporary}}
	s := p.Start("--demo", "--dashboard")
	s.Await()
	clitest.Until(t, "the demo has said everything", func() bool { return strings.Contains(s.Printed.String(), "/docs") })
	if !regexp.MustCompile(`(?m)^  dashboard        http://\S+/account, sign in with the key$`).MatchString(s.Printed.String()) {
		t.Errorf("it does not say where the dashboard is:\n%s", s.Printed.String())
	}
	var lines []string
	for line := range strings.Lines(s.Printed.String()) {
		if strings.HasPrefix(line, "curl") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	if len(lines) != 3 {
		t.Fatalf("%d lines with curl:\n%s", len(lines), s.Printed.String())
	}
	for i, want := range []string{"Ada Example", "Sample Bakery", "processing"} {
		shown := shownCall.FindStringSubmatch(lines[i])
		if shown == nil {
			t.Fatalf("a line of another form: %s", lines[i])
		}
		url, path, key, body := shown[1], shown[2], shown[3], shown[4]
		c := clitest.NewCaller(t, url, key)
		p.Private = append(p.Private, key)
		a := c.Post(path, body)
		if _, err := exec.LookPath("curl"); err == nil {
			a = runShown(t, lines[i], path, body)
		}
		if a.Status != http.StatusOK || !strings.Contains(string(a.Raw), want) {
			t.Errorf("%s\n%d %s, want %s", lines[i], a.Status, a.Raw, want)
		}
		if id := a.Text("resolution", "id"); want == "processing" {
			if list := c.Result("", id); list.At("data") != true || !strings.Contains(string(list.Raw), "full_name") {
				t.Errorf("the search finds %s", list.Raw)
			}
		}
	}
	if code := s.Stop(syscall.SIGINT); code != cli.ExitDone {
		t.Errorf("exit code %d, want %d", code, cli.ExitDone)
	}
	if left, err := filepath.Glob(filepath.Join(temporary, "*")); err != nil || len(left) > 0 {
		t.Errorf("it left %q", left)
	}
}

// TestServeDemoAfterAKill: a demo removes what killed ones left, and nothing that
// somebody uses.
func TestServeDemoAfterAKill(t *testing.T) {
	t.Parallel()
	temporary := t.TempDir()
	p := &clitest.Place{TB: t, Environ: []string{"TMPDIR=" + temporary}}
	folders := func() []string {
		names, err := filepath.Glob(filepath.Join(temporary, "leadetl-demo-*"))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	killed := p.Start("--demo")
	killed.Await()
	if code := killed.Stop(syscall.SIGKILL); code != -1 || len(folders()) != 1 {
		t.Fatalf("exit code %d, %q", code, folders())
	}
	left := folders()[0]
	running := p.Start("--demo") // the other is too young
	running.Await()
	if len(folders()) != 2 {
		t.Fatalf("%q, want two", folders())
	}
	long := time.Now().Add(-time.Hour)
	for _, folder := range folders() {
		if err := os.Chtimes(folder, long, long); err != nil {
			t.Fatal(err)
		}
	}
	third := p.Start("--demo")
	third.Await()
	if now := folders(); len(now) != 2 || slices.Contains(now, left) {
		t.Errorf("%q are there, and %q is that of the killed one", now, left)
	}
	for _, s := range []*clitest.Served{running, third} {
		if code := s.Stop(syscall.SIGINT); code != cli.ExitDone {
			t.Errorf("exit code %d", code)
		}
	}
	if len(folders()) != 0 {
		t.Errorf("they left %q", folders())
	}
}

// runShown runs a line as it is printed, and holds the answer to the document.
func runShown(t *testing.T, line, path, body string) (a clitest.Answer) {
	t.Helper()
	head := filepath.Join(t.TempDir(), "head")
	out, err := exec.Command("sh", "-c", line+" -D "+head).Output() // besides, the answer's header into a file
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	text, err := os.ReadFile(head)
	if err != nil {
		t.Fatal(err)
	}
	status, rest, _ := bytes.Cut(text, []byte("\r\n"))
	header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(rest))).ReadMIMEHeader()
	if err != nil {
		t.Fatal(err)
	}
	a = clitest.Answer{Header: http.Header(header), Raw: out, Status: http.StatusInternalServerError}
	if string(status) == "HTTP/1.1 200 OK" {
		a.Status = http.StatusOK
	}
	if err := json.Unmarshal(out, &a.Body); err != nil {
		t.Errorf("%s: %v", line, err)
	}
	r, err := http.NewRequest(http.MethodPost, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	clitest.Documented(t, openapitest.Exchange{Request: r, Sent: []byte(body), Status: a.Status, Header: a.Header, Body: a.Raw})
	return a
}
