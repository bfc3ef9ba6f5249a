//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/openapi/openapitest"
)

// patience bounds every wait for another process.
const patience = 30 * time.Second

// until waits until something is so, and looks again and again.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); !is(); <-look.C {
		if time.Now().After(end) {
			t.Fatalf("waited %s in vain until %s", patience, what)
		}
	}
}

// leadetl runs a command to its end, in this process, and returns what it
// printed.
func leadetl(t testing.TB, args ...string) string {
	t.Helper()
	var out, said bytes.Buffer
	if code := program.Execute(context.Background(), args, strings.NewReader(""), &out, &said); code != cli.ExitDone {
		t.Fatalf("leadetl %s: exit code %d\n%s", strings.Join(args, " "), code, said.String())
	}
	return strings.TrimSpace(out.String())
}

// place is a test's own state folder and sample directory.
type place struct {
	testing.TB
	state, directory string
	private          []string // what no log may hold
	excused          string   // an error that is part of the test, as the log words it
	environ          []string // of the processes, besides the test's own
}

// newPlace makes a place with an empty state.
func newPlace(t testing.TB) *place {
	t.Helper()
	p := &place{TB: t, state: filepath.Join(t.TempDir(), "state"), directory: filepath.Join(t.TempDir(), "directory")}
	p.private = []string{"ada-example", "ada.example", "bakery.example", "192.31.196.5", "12025550100", "rocket fuel", "whsec_"}
	if err := os.CopyFS(p.directory, importedSample(t)); err != nil {
		t.Fatal(err)
	}
	return p
}

// importedSample is the sample directory, imported once for all tests.
func importedSample(t testing.TB) fstest.MapFS {
	t.Helper()
	sampleOnce.Do(func() {
		folder := filepath.Join(t.TempDir(), "sample")
		leadetl(t, append([]string{"directory", "import", "--directory", folder}, sampleFiles()...)...)
		sampleFS = fstest.MapFS{}
		err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			name, _ := filepath.Rel(folder, path)
			sampleFS[filepath.ToSlash(name)] = &fstest.MapFile{Data: data, Mode: 0o644}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	return sampleFS
}

var (
	sampleOnce sync.Once
	sampleFS   fstest.MapFS
)

// sampleFiles are the flags of an import of the sample.
func sampleFiles() (flags []string) {
	for _, kind := range []string{"people", "companies", "ip-ranges", "searches", "visits"} {
		flags = append(flags, "--"+kind, filepath.Join(samples, "directory", kind+".csv"))
	}
	return flags
}

// admin runs a command of leadetl admin on the state.
func (p *place) admin(args ...string) string {
	p.Helper()
	return leadetl(p, append(append([]string{"admin"}, args...), "--state", p.state)...)
}

// customer makes an organization and returns a key of it.
func (p *place) customer(name, credits string) (key string) {
	p.Helper()
	p.admin("org", "create", name, "--credits", credits)
	key = p.admin("key", "create", name)
	p.private = append(p.private, key)
	return key
}

// served is one run of leadetl serve: the real program, in a process of its
// own.
type served struct {
	testing.TB
	process          *exec.Cmd
	public, internal string        // addresses, as URLs
	printed, said    *output       // standard output, and the log
	gone             chan struct{} // closed when the process has ended
}

// unlimited are the flags of a service that is asked more than its customers
// usually may.
var unlimited = []string{"--limit-single", "0", "--limit-create", "0", "--limit-result", "0", "--limit-failed-auth", "0", "--limit-active-jobs", "0"}

// serve starts the program on ports of its own, and waits until it serves.
func (p *place) serve(flags ...string) *served {
	p.Helper()
	s := p.start(append([]string{"--state", p.state, "--directory", p.directory}, flags...)...)
	s.await()
	return s
}

// start starts the program and returns at once.
func (p *place) start(flags ...string) *served {
	p.Helper()
	program, err := exec.LookPath("leadetl") // the test's own binary; see TestMain
	if err != nil {
		p.Fatal(err)
	}
	s := &served{TB: p, printed: new(output), said: new(output), gone: make(chan struct{})}
	args := []string{"serve", "--listen", "127.0.0.1:0", "--internal-listen", "127.0.0.1:0", "--log-format", "json", "--drain-delay", "0"}
	s.process = exec.Command(program, append(args, flags...)...)
	s.process.Env = append(append(os.Environ(), "GORACE="+hasty), p.environ...)
	s.process.Stdout, s.process.Stderr = s.printed, s.said
	if err := s.process.Start(); err != nil {
		p.Fatal(err)
	}
	go func() {
		defer close(s.gone)
		_ = s.process.Wait() // its exit code is asked for
	}()
	p.Cleanup(func() {
		_ = s.process.Process.Kill() // one that has ended already is as well
		<-s.gone
		p.look(s.said.String())
	})
	return s
}

// await waits until the program serves.
func (s *served) await() {
	s.Helper()
	var line map[string]any
	until(s, "the service serves", func() bool {
		line = s.said.line("serving")
		return line != nil || s.ended()
	})
	if line == nil {
		s.Fatalf("the service ended with exit code %d:\n%s", s.process.ProcessState.ExitCode(), s.said)
	}
	s.public = line["url"].(string)
	s.internal, _ = line["internal"].(string) // "" without an internal listener
}

// ended reports whether the process is gone.
func (s *served) ended() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// stop sends the process a signal, waits for its end and returns its exit
// code.
func (s *served) stop(signal os.Signal) int {
	s.Helper()
	if err := s.process.Process.Signal(signal); err != nil {
		s.Fatal(err)
	}
	return s.code()
}

// code waits for the end of the process and returns its exit code, -1 when it
// was killed.
func (s *served) code() int {
	s.Helper()
	select {
	case <-s.gone:
	case <-time.After(patience):
		s.Fatalf("the service did not end:\n%s", s.said)
	}
	return s.process.ProcessState.ExitCode()
}

// look fails the test for what no log of a service should say.
func (p *place) look(log string) {
	unheard := append(p.private, "DATA RACE", "panic")
	if strings.Contains(log, `"msg":"serving"`) { // one that refuses to serve says so
		unheard = append(unheard, `"level":"ERROR"`)
	}
	if p.excused != "" {
		var rest strings.Builder
		for line := range strings.Lines(log) {
			if !strings.Contains(line, p.excused) {
				rest.WriteString(line)
			}
		}
		log = rest.String()
	}
	for _, text := range unheard {
		if strings.Contains(log, text) {
			p.Errorf("the log holds %q:\n%s", text, log)
		}
	}
}

// output is what a process writes, read while it is written.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// line is the last line of a log with a message, nil without one.
func (o *output) line(message string) (found map[string]any) {
	for text := range strings.Lines(o.String()) {
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) == nil && line["msg"] == message {
			found = line
		}
	}
	return found
}

// caller calls a service with a key. What is answered is held to the
// interface's document.
type caller struct {
	testing.TB
	url, key string
	http     *http.Client
}

func newCaller(t testing.TB, url, key string) *caller {
	c := newOperator(t, url)
	c.key, c.http.Transport = key, openapitest.Transport(t, c.http.Transport)
	return c
}

// newOperator is a caller of the internal listener, which no document is
// about.
func newOperator(t testing.TB, url string) *caller {
	connections := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(connections.CloseIdleConnections)
	return &caller{TB: t, url: url, http: &http.Client{Transport: connections, Timeout: patience}}
}

// answer is one answer, read to its end.
type answer struct {
	status int
	header http.Header
	raw    []byte
	body   map[string]any // nil when it is no JSON object
}

// at is the value at a path of members, nil without one.
func (a answer) at(path ...string) any {
	var v any = a.body
	for _, name := range path {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

// text is the string at a path of members, "" without one.
func (a answer) text(path ...string) string {
	s, _ := a.at(path...).(string)
	return s
}

// code is the word of an error.
func (a answer) code() string { return a.text("error", "code") }

// post asks an operation. Headers come in pairs and win over the usual ones; an
// empty value takes a header away.
func (c *caller) post(path, body string, headers ...string) answer {
	c.Helper()
	return c.do(http.MethodPost, path, body, headers...)
}

func (c *caller) do(method, path, body string, headers ...string) answer {
	c.Helper()
	a, err := c.try(context.Background(), method, path, body, headers...)
	if err != nil {
		c.Fatal(err)
	}
	return a
}

// try is do for calls that may be cut off.
func (c *caller) try(ctx context.Context, method, path, body string, headers ...string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.GetBody = nil // with it, and a key, net/http would send a request again
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Del(headers[i]); headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := c.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	a := answer{status: response.StatusCode, header: response.Header}
	if a.raw, err = io.ReadAll(response.Body); err != nil {
		return answer{}, err
	}
	_ = json.Unmarshal(a.raw, &a.body)
	return a, nil
}

// readAnswer reads an answer of the service off a connection, and holds it to
// the document. The status is 0 without one.
func readAnswer(t testing.TB, from *bufio.Reader, r *http.Request, sent string) (status int, body string) {
	t.Helper()
	response, err := http.ReadResponse(from, r)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	documented(t, openapitest.Exchange{Request: r, Sent: []byte(sent), Status: response.StatusCode, Header: response.Header, Body: text})
	return response.StatusCode, string(text)
}

// documented holds an answer to the document that came another way than a
// caller's.
func documented(t testing.TB, x openapitest.Exchange) {
	t.Helper()
	v, err := openapitest.New()
	if err == nil {
		err = v.Check(x)
	}
	if err != nil {
		t.Errorf("against the document: %v", err)
	}
}

// result polls a keyword search until it is finished. kind is "" for a list
// and "/count" for a count.
func (c *caller) result(kind, id string) (a answer) {
	c.Helper()
	until(c, "the search is finished", func() bool {
		a = c.post("/resolve/keyword_to_lead"+kind+"/result", `{"resolution_id":"`+id+`"}`)
		if a.status == http.StatusTooManyRequests {
			return false
		}
		status := a.text("resolution", "status")
		return a.status != http.StatusOK || status != "queued" && status != "processing"
	})
	return a
}

// resumed is how many searches were under way when the run before was killed.
func (s *served) resumed() int {
	jobs, _ := s.said.line("keyword searches of an earlier run are queued again")["jobs"].(float64)
	return int(jobs)
}

// write writes a file of a test's own and returns its path.
func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	askAda    = `{"network_url":"https://network.example/in/ada-example"}`
	askNobody = `{"network_url":"https://network.example/in/a-stranger"}`
	askTea    = `{"keywords":["tea"],"date_start":"2026-11-01","date_end":"2026-11-13"}`
)

// isIdle reports whether metrics say that nothing waits.
func isIdle(metrics string) bool {
	for line := range strings.Lines(metrics) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if (strings.HasPrefix(name, "leadetl_jobs{") || name == `leadetl_deliveries{state="pending"}`) && value != "0" {
			return false
		}
	}
	return true
}

// goods are what can be asked, and what it costs.
type goods struct {
	path, body string
	operation  resolution.Operation
	credits    int64
	search     string // how its result is polled: "list", "count", "" for none
}

var assortment = []goods{
	{"/lead/resolution/email_to_hem", `{"email":"ada.example@bakery.example"}`, resolution.EmailToHEM, 1, ""},
	{"/lead/resolution/network_to_phone", askAda, resolution.NetworkToPhone, 3, ""},
	{"/lead/enrichment", askAda, resolution.Enrichment, 2, ""},
	{"/lead/enrichment", askNobody, resolution.Enrichment, 0, ""},
	{"/lead/deanonymization", `{"ip":"192.31.196.5"}`, resolution.Deanonymization, 3, ""},
	{"/lead/resolution/ip_to_company", `{"ip":"192.31.196.5"}`, resolution.IPToCompany, 1, ""},
	{"/resolve/keyword_to_lead", askTea, resolution.KeywordToLead, 6, "list"},
	{"/resolve/keyword_to_lead", strings.Replace(askTea, "tea", "nothing at all", 1), resolution.KeywordToLead, 0, "list"},
	{"/resolve/keyword_to_lead/count", askTea, resolution.KeywordToLeadCount, 1, "count"},
}
