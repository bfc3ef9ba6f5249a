//go:build unix

package clitest

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

// Patience bounds every wait for another process.
const Patience = 30 * time.Second

// Until waits until something is so, and looks again and again.
func Until(t testing.TB, what string, is func() bool) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(Patience); !is(); <-look.C {
		if time.Now().After(end) {
			t.Fatalf("waited %s in vain until %s", Patience, what)
		}
	}
}

// Run runs a command to its end, in this process, and returns what it
// printed.
func Run(t testing.TB, args ...string) string {
	t.Helper()
	var out, said bytes.Buffer
	if code := program.Execute(context.Background(), args, strings.NewReader(""), &out, &said); code != cli.ExitDone {
		t.Fatalf("leadetl %s: exit code %d\n%s", strings.Join(args, " "), code, said.String())
	}
	return strings.TrimSpace(out.String())
}

// Place is a test's own state folder and sample directory.
type Place struct {
	testing.TB
	State, Directory string
	Private          []string // what no log may hold
	Excused          string   // an error that is part of the test, as the log words it
	Environ          []string // of the processes, besides the test's own
}

// NewPlace makes a place with an empty state.
func NewPlace(t testing.TB) *Place {
	t.Helper()
	p := &Place{TB: t, State: filepath.Join(t.TempDir(), "state"), Directory: filepath.Join(t.TempDir(), "directory")}
	p.Private = []string{"ada-example", "ada.example", "bakery.example", "192.31.196.5", "12025550100", "rocket fuel", "whsec_"}
	if err := os.CopyFS(p.Directory, importedSample(t)); err != nil {
		t.Fatal(err)
	}
	return p
}

// importedSample is the sample directory, imported once for all tests.
func importedSample(t testing.TB) fstest.MapFS {
	t.Helper()
	sampleOnce.Do(func() {
		folder := filepath.Join(t.TempDir(), "sample")
		Run(t, append([]string{"directory", "import", "--directory", folder}, sampleFiles()...)...)
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
		flags = append(flags, "--"+kind, filepath.Join(Samples, "directory", kind+".csv"))
	}
	return flags
}

// Admin runs a command of leadetl admin on the state.
func (p *Place) Admin(args ...string) string {
	p.Helper()
	return Run(p, append(append([]string{"admin"}, args...), "--state", p.State)...)
}

// Customer makes an organization and returns a key of it.
func (p *Place) Customer(name, credits string) (key string) {
	p.Helper()
	p.Admin("org", "create", name, "--credits", credits)
	key = p.Admin("key", "create", name)
	p.Private = append(p.Private, key)
	return key
}

// Served is one run of leadetl serve: the real program, in a process of its
// own.
type Served struct {
	testing.TB
	Process          *exec.Cmd
	Public, Internal string        // addresses, as URLs
	Printed, Said    *Output       // standard output, and the log
	Gone             chan struct{} // closed when the process has ended
}

// Unlimited are the flags of a service that is asked more than its customers
// usually may.
var Unlimited = []string{"--limit-single", "0", "--limit-create", "0", "--limit-result", "0", "--limit-failed-auth", "0", "--limit-active-jobs", "0"}

// Serve starts the program on ports of its own, and waits until it serves.
func (p *Place) Serve(flags ...string) *Served {
	p.Helper()
	s := p.Start(append([]string{"--state", p.State, "--directory", p.Directory}, flags...)...)
	s.Await()
	return s
}

// Start starts the program and returns at once.
func (p *Place) Start(flags ...string) *Served {
	p.Helper()
	program, err := exec.LookPath("leadetl") // the test's own binary; see TestMain
	if err != nil {
		p.Fatal(err)
	}
	s := &Served{TB: p, Printed: new(Output), Said: new(Output), Gone: make(chan struct{})}
	args := []string{"serve", "--listen", "127.0.0.1:0", "--internal-listen", "127.0.0.1:0", "--log-format", "json", "--drain-delay", "0"}
	s.Process = exec.Command(program, append(args, flags...)...)
	s.Process.Env = append(append(os.Environ(), "GORACE="+Hasty), p.Environ...)
	s.Process.Stdout, s.Process.Stderr = s.Printed, s.Said
	if err := s.Process.Start(); err != nil {
		p.Fatal(err)
	}
	go func() {
		defer close(s.Gone)
		_ = s.Process.Wait() // its exit code is asked for
	}()
	p.Cleanup(func() {
		_ = s.Process.Process.Kill() // one that has ended already is as well
		<-s.Gone
		p.look(s.Said.String())
	})
	return s
}

// Await waits until the program serves.
func (s *Served) Await() {
	s.Helper()
	var line map[string]any
	Until(s, "the service serves", func() bool {
		line = s.Said.Line("serving")
		return line != nil || s.Ended()
	})
	if line == nil {
		s.Fatalf("the service ended with exit code %d:\n%s", s.Process.ProcessState.ExitCode(), s.Said)
	}
	s.Public = line["url"].(string)
	s.Internal, _ = line["internal"].(string) // "" without an internal listener
}

// Ended reports whether the process is gone.
func (s *Served) Ended() bool {
	select {
	case <-s.Gone:
		return true
	default:
		return false
	}
}

// Stop sends the process a signal, waits for its end and returns its exit
// code.
func (s *Served) Stop(signal os.Signal) int {
	s.Helper()
	if err := s.Process.Process.Signal(signal); err != nil {
		s.Fatal(err)
	}
	return s.Code()
}

// Code waits for the end of the process and returns its exit code, -1 when it
// was killed.
func (s *Served) Code() int {
	s.Helper()
	select {
	case <-s.Gone:
	case <-time.After(Patience):
		s.Fatalf("the service did not end:\n%s", s.Said)
	}
	return s.Process.ProcessState.ExitCode()
}

// look fails the test for what no log of a service should say.
func (p *Place) look(log string) {
	unheard := append(p.Private, "DATA RACE", "panic")
	if strings.Contains(log, `"msg":"serving"`) { // one that refuses to serve says so
		unheard = append(unheard, `"level":"ERROR"`)
	}
	if p.Excused != "" {
		var rest strings.Builder
		for line := range strings.Lines(log) {
			if !strings.Contains(line, p.Excused) {
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

// Output is what a process writes, read while it is written.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Line is the last line of a log with a message, nil without one.
func (o *Output) Line(message string) (found map[string]any) {
	for text := range strings.Lines(o.String()) {
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) == nil && line["msg"] == message {
			found = line
		}
	}
	return found
}

// Caller calls a service with a key. What is answered is held to the
// interface's document.
type Caller struct {
	testing.TB
	URL, Key string
	HTTP     *http.Client
}

// NewCaller is a caller with a key.
func NewCaller(t testing.TB, url, key string) *Caller {
	c := NewOperator(t, url)
	c.Key, c.HTTP.Transport = key, openapitest.Transport(t, c.HTTP.Transport)
	return c
}

// NewOperator is a caller of the internal listener, which no document is
// about.
func NewOperator(t testing.TB, url string) *Caller {
	connections := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(connections.CloseIdleConnections)
	return &Caller{TB: t, URL: url, HTTP: &http.Client{Transport: connections, Timeout: Patience}}
}

// Answer is one answer, read to its end.
type Answer struct {
	Status int
	Header http.Header
	Raw    []byte
	Body   map[string]any // nil when it is no JSON object
}

// At is the value at a path of members, nil without one.
func (a Answer) At(path ...string) any {
	var v any = a.Body
	for _, name := range path {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

// Text is the string at a path of members, "" without one.
func (a Answer) Text(path ...string) string {
	s, _ := a.At(path...).(string)
	return s
}

// Code is the word of an error.
func (a Answer) Code() string { return a.Text("error", "code") }

// Post asks an operation. Headers come in pairs and win over the usual ones; an
// empty value takes a header away.
func (c *Caller) Post(path, body string, headers ...string) Answer {
	c.Helper()
	return c.Do(http.MethodPost, path, body, headers...)
}

// Do calls the service once, and fails the test if there is no answer.
func (c *Caller) Do(method, path, body string, headers ...string) Answer {
	c.Helper()
	a, err := c.Try(context.Background(), method, path, body, headers...)
	if err != nil {
		c.Fatal(err)
	}
	return a
}

// Try is do for calls that may be cut off.
func (c *Caller) Try(ctx context.Context, method, path, body string, headers ...string) (Answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.URL+path, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	r.GetBody = nil // with it, and a key, net/http would send a request again
	if c.Key != "" {
		r.Header.Set("Authorization", "Bearer "+c.Key)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Del(headers[i]); headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := c.HTTP.Do(r)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	a := Answer{Status: response.StatusCode, Header: response.Header}
	if a.Raw, err = io.ReadAll(response.Body); err != nil {
		return Answer{}, err
	}
	_ = json.Unmarshal(a.Raw, &a.Body)
	return a, nil
}

// ReadAnswer reads an answer of the service off a connection, and holds it to
// the document. The status is 0 without one.
func ReadAnswer(t testing.TB, from *bufio.Reader, r *http.Request, sent string) (status int, body string) {
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
	Documented(t, openapitest.Exchange{Request: r, Sent: []byte(sent), Status: response.StatusCode, Header: response.Header, Body: text})
	return response.StatusCode, string(text)
}

// Documented holds an answer to the document that came another way than a
// caller's.
func Documented(t testing.TB, x openapitest.Exchange) {
	t.Helper()
	v, err := openapitest.New()
	if err == nil {
		err = v.Check(x)
	}
	if err != nil {
		t.Errorf("against the document: %v", err)
	}
}

// Result polls a keyword search until it is finished. kind is "" for a list
// and "/count" for a count.
func (c *Caller) Result(kind, id string) (a Answer) {
	c.Helper()
	Until(c, "the search is finished", func() bool {
		a = c.Post("/resolve/keyword_to_lead"+kind+"/result", `{"resolution_id":"`+id+`"}`)
		if a.Status == http.StatusTooManyRequests {
			return false
		}
		status := a.Text("resolution", "status")
		return a.Status != http.StatusOK || status != "queued" && status != "processing"
	})
	return a
}

// Resumed is how many searches were under way when the run before was killed.
func (s *Served) Resumed() int {
	jobs, _ := s.Said.Line("keyword searches of an earlier run are queued again")["jobs"].(float64)
	return int(jobs)
}

// WriteFile writes a file of a test's own and returns its path.
func WriteFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	AskAda    = `{"network_url":"https://network.example/in/ada-example"}`
	AskNobody = `{"network_url":"https://network.example/in/a-stranger"}`
	AskTea    = `{"keywords":["tea"],"date_start":"2026-11-01","date_end":"2026-11-13"}`
)

// IsIdle reports whether metrics say that nothing waits.
func IsIdle(metrics string) bool {
	for line := range strings.Lines(metrics) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if (strings.HasPrefix(name, "leadetl_jobs{") || name == `leadetl_deliveries{state="pending"}`) && value != "0" {
			return false
		}
	}
	return true
}

// Goods are what can be asked, and what it costs.
type Goods struct {
	Path, Body string
	Operation  resolution.Operation
	Credits    int64
	Search     string // how its result is polled: "list", "count", "" for none
}

// Assortment is what there is to buy.
var Assortment = []Goods{
	{"/lead/resolution/email_to_hem", `{"email":"ada.example@bakery.example"}`, resolution.EmailToHEM, 1, ""},
	{"/lead/resolution/network_to_phone", AskAda, resolution.NetworkToPhone, 3, ""},
	{"/lead/enrichment", AskAda, resolution.Enrichment, 2, ""},
	{"/lead/enrichment", AskNobody, resolution.Enrichment, 0, ""},
	{"/lead/deanonymization", `{"ip":"192.31.196.5"}`, resolution.Deanonymization, 3, ""},
	{"/lead/resolution/ip_to_company", `{"ip":"192.31.196.5"}`, resolution.IPToCompany, 1, ""},
	{"/resolve/keyword_to_lead", AskTea, resolution.KeywordToLead, 6, "list"},
	{"/resolve/keyword_to_lead", strings.Replace(AskTea, "tea", "nothing at all", 1), resolution.KeywordToLead, 0, "list"},
	{"/resolve/keyword_to_lead/count", AskTea, resolution.KeywordToLeadCount, 1, "count"},
}
