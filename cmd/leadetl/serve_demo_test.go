//go:build unix

package main

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
	"github.com/leadetl/leadetl/resolution/service/openapi/openapitest"
)

// shownCall takes a printed call apart.
var shownCall = regexp.MustCompile(`^curl -s (http://[^/ ]+)(/\S+) -H 'Authorization: Bearer (\S+)' -H 'Content-Type: application/json' -d '(.*)'$`)

// TestServeDemo: the lines the demo prints work as they are printed, and it
// leaves nothing behind.
func TestServeDemo(t *testing.T) {
	t.Parallel()
	temporary := t.TempDir()
	p := &place{TB: t, environ: []string{"TMPDIR=" + temporary}}
	s := p.start("--demo", "--dashboard")
	s.await()
	until(t, "the demo has said everything", func() bool { return strings.Contains(s.printed.String(), "/docs") })
	if !regexp.MustCompile(`(?m)^  dashboard        http://\S+/account, sign in with the key$`).MatchString(s.printed.String()) {
		t.Errorf("it does not say where the dashboard is:\n%s", s.printed.String())
	}
	var lines []string
	for line := range strings.Lines(s.printed.String()) {
		if strings.HasPrefix(line, "curl") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	if len(lines) != 3 {
		t.Fatalf("%d lines with curl:\n%s", len(lines), s.printed.String())
	}
	for i, want := range []string{"Ada Example", "Sample Bakery", "processing"} {
		shown := shownCall.FindStringSubmatch(lines[i])
		if shown == nil {
			t.Fatalf("a line of another form: %s", lines[i])
		}
		url, path, key, body := shown[1], shown[2], shown[3], shown[4]
		c := newCaller(t, url, key)
		p.private = append(p.private, key)
		a := c.post(path, body)
		if _, err := exec.LookPath("curl"); err == nil {
			a = runShown(t, lines[i], path, body)
		}
		if a.status != http.StatusOK || !strings.Contains(string(a.raw), want) {
			t.Errorf("%s\n%d %s, want %s", lines[i], a.status, a.raw, want)
		}
		if id := a.text("resolution", "id"); want == "processing" {
			if list := c.result("", id); list.at("data") != true || !strings.Contains(string(list.raw), "full_name") {
				t.Errorf("the search finds %s", list.raw)
			}
		}
	}
	if code := s.stop(syscall.SIGINT); code != cli.ExitDone {
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
	p := &place{TB: t, environ: []string{"TMPDIR=" + temporary}}
	folders := func() []string {
		names, err := filepath.Glob(filepath.Join(temporary, "leadetl-demo-*"))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	killed := p.start("--demo")
	killed.await()
	if code := killed.stop(syscall.SIGKILL); code != -1 || len(folders()) != 1 {
		t.Fatalf("exit code %d, %q", code, folders())
	}
	left := folders()[0]
	running := p.start("--demo") // the other is too young
	running.await()
	if len(folders()) != 2 {
		t.Fatalf("%q, want two", folders())
	}
	long := time.Now().Add(-time.Hour)
	for _, folder := range folders() {
		if err := os.Chtimes(folder, long, long); err != nil {
			t.Fatal(err)
		}
	}
	third := p.start("--demo")
	third.await()
	if now := folders(); len(now) != 2 || slices.Contains(now, left) {
		t.Errorf("%q are there, and %q is that of the killed one", now, left)
	}
	for _, s := range []*served{running, third} {
		if code := s.stop(syscall.SIGINT); code != cli.ExitDone {
			t.Errorf("exit code %d", code)
		}
	}
	if len(folders()) != 0 {
		t.Errorf("they left %q", folders())
	}
}

// runShown runs a line as it is printed, and holds the answer to the document.
func runShown(t *testing.T, line, path, body string) (a answer) {
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
	a = answer{header: http.Header(header), raw: out, status: http.StatusInternalServerError}
	if string(status) == "HTTP/1.1 200 OK" {
		a.status = http.StatusOK
	}
	if err := json.Unmarshal(out, &a.body); err != nil {
		t.Errorf("%s: %v", line, err)
	}
	r, err := http.NewRequest(http.MethodPost, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	documented(t, openapitest.Exchange{Request: r, Sent: []byte(body), Status: a.status, Header: a.header, Body: a.raw})
	return a
}
