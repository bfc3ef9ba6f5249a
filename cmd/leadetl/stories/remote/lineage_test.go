//go:build unix

package remote

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// collector receives events and holds each to the schema.
type collector struct {
	testing.TB
	url    string
	schema *jsonschema.Schema

	mu     sync.Mutex
	events []lineageEvent
	raw    string
}

// lineageEvent is what the tests read of an event.
type lineageEvent struct {
	EventType string
	Run       struct {
		RunID  string
		Facets struct {
			ErrorMessage struct{ Message string }
		}
	}
	Job             struct{ Namespace, Name string }
	Inputs, Outputs []struct {
		Namespace, Name string
		Facets          struct {
			Schema struct {
				Fields []struct{ Name, Type, Description string }
			}
			ColumnLineage struct {
				Fields map[string]struct {
					InputFields []struct{ Namespace, Name, Field string }
				}
			}
		}
		OutputFacets struct {
			OutputStatistics *struct{ RowCount, Size, FileCount int64 }
		}
	}
}

func newCollector(t *testing.T) *collector {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile(filepath.Join(clitest.ModuleRoot, "testdata/openlineage/run_event.json"))
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{TB: t, schema: schema}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/api/v1/lineage" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Authorization") != "Bearer collector-key" {
		c.Errorf("%s %s %v, %v", r.Method, r.URL, r.Header, err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = c.schema.Validate(document)
	}
	var e lineageEvent
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	if err != nil {
		c.Errorf("%s\n%v", body, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events, c.raw = append(c.events, e), c.raw+string(body)
	w.WriteHeader(http.StatusCreated)
}

// text is all that came.
func (c *collector) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw
}

// taken are the events since the last call.
func (c *collector) taken() (types []string, events []lineageEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	events, c.events = c.events, nil
	for _, e := range events {
		types = append(types, e.EventType)
	}
	return types, events
}

// TestLineage: a collector hears of a run, its datasets and its end, and of no
// person.
func TestLineage(t *testing.T) {
	t.Setenv("OPENLINEAGE_API_KEY", "collector-key")
	c := newCollector(t)
	l := clitest.ProfileList(1200)
	o := badservice.DefaultOptions()
	o.HonourKeys, o.Latency = true, 100*time.Millisecond
	s, url := clitest.StartService(t, o)
	j := clitest.NewRemoteJob(t, "enrichment", url, l.CSV, "--set", "network_hosts=network.example", "--idempotent", "--concurrency", "16",
		"--set", "openlineage_url="+c.url, "--set", "openlineage_namespace=nightly", "--partition-by", "dt=2026-11-20",
		"--rename", "id=crm_id")
	j.Run(cli.ExitBudget, "--max-calls", "100")
	types, events := c.taken()
	if len(types) < 2 || types[0] != "START" || types[len(types)-1] != "FAIL" {
		t.Fatalf("%q", types)
	}
	if last := events[len(events)-1]; !strings.Contains(last.Run.Facets.ErrorMessage.Message, "max") {
		t.Errorf("failed because of %q", last.Run.Facets.ErrorMessage.Message)
	}

	j.Run(cli.ExitDone)
	types, again := c.taken()
	if types[0] != "START" || types[len(types)-1] != "COMPLETE" || !slices.Contains(types, "RUNNING") || len(types) > 4 {
		t.Fatalf("%q after %d calls", types, s.Seen())
	}
	first, last := again[0], again[len(again)-1]
	if first.Run.RunID == events[0].Run.RunID || first.Run.RunID != last.Run.RunID || first.Job.Namespace != "nightly" || first.Job.Name != "enrichment.out" || first.Job != events[0].Job {
		t.Errorf("%+v, %+v, %+v", events[0], first, last)
	}
	in, out := last.Inputs[0], last.Outputs[0]
	if in.Namespace != "file" || in.Name != j.In || out.Namespace != "file" || out.Name != j.Path("out") {
		t.Errorf("from %s %s to %s %s", in.Namespace, in.Name, out.Namespace, out.Name)
	}
	names := func(of lineageEvent) (in, out []string) {
		for _, f := range of.Inputs[0].Facets.Schema.Fields {
			in = append(in, f.Name)
		}
		for _, f := range of.Outputs[0].Facets.Schema.Fields {
			out = append(out, f.Name)
		}
		return in, out
	}
	if in, out := names(first); !slices.Equal(in, []string{"id", "network_url"}) || !slices.Contains(out, "full_name") || out[0] != "crm_id" || out[len(out)-1] != "dt" {
		t.Errorf("columns %q, %q", in, out)
	}
	from := out.Facets.ColumnLineage.Fields
	if got := from["crm_id"].InputFields; len(from) != 2 || len(got) != 1 || got[0].Namespace != in.Namespace || got[0].Name != in.Name || got[0].Field != "id" {
		t.Errorf("columns are from %+v", from)
	}
	for i, e := range again {
		statistics := e.Outputs[0].OutputFacets.OutputStatistics
		switch {
		case i == 0 && statistics != nil, i > 0 && statistics == nil:
			t.Errorf("statistics of %s: %+v", e.EventType, statistics)
		case e.EventType == "COMPLETE" && (statistics.RowCount != int64(l.Rows) || statistics.FileCount != 1 || statistics.Size < 1000):
			t.Errorf("statistics %+v, want %d rows in 1 file", statistics, l.Rows)
		}
	}
	for _, personal := range []string{"canary", "Ada"} {
		if strings.Contains(c.text(), personal) {
			t.Errorf("%s is in the events", personal)
		}
	}

	// A run with nothing to do, one whose rejects are too many, and plan.
	j.Run(cli.ExitDone)
	j.Run(cli.ExitRejects, "--overwrite", "--max-rejects", "0")
	if types, _ := c.taken(); !slices.Equal(slices.DeleteFunc(types, func(s string) bool { return s == "RUNNING" }), []string{"START", "COMPLETE", "START", "COMPLETE"}) {
		t.Errorf("%q", types)
	}
	plan := clitest.StartProgram(t, append([]string{"plan"}, j.Args()[1:]...)...)
	if types, _ := c.taken(); plan.Code() != cli.ExitDone || len(types) > 0 {
		t.Errorf("plan: %q, exit code %d", types, plan.Code())
	}
}

// TestLineageWithoutCollector: whatever a collector does, the run is the same,
// with one warning.
func TestLineageWithoutCollector(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.NotFoundHandler())
	defer refusing.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, url := range map[string]string{
		"nobody": "http://127.0.0.1:1", "no host": "http://collector.invalid", "refuses": refusing.URL + "/custom/lineage", "silent": "http://" + silent.Addr().String(),
	} {
		out := filepath.Join(t.TempDir(), "out")
		began := time.Now()
		p := clitest.StartProgram(t, "run", "email_to_hem", "--in", clitest.Samples+"/emails.csv", "--out", out, "--state", t.TempDir(), "--set", "openlineage_url="+url)
		if code := p.Code(); code != cli.ExitDone || strings.Count(p.Said.String(), "events cannot be sent to openlineage_url") != 1 {
			t.Errorf("%s: exit code %d\n%s", name, code, p.Said)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s: the run took %s", name, took)
		}
		if _, err := os.Stat(out + "/_SUCCESS"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for url, says := range map[string]string{
		"collector:5000":             "openlineage_url: not an address; write one such as http://marquez.example:5000",
		"http://user:pass@collector": "openlineage_url: the address names a user; put a key into OPENLINEAGE_API_KEY",
	} {
		p := clitest.StartProgram(t, "run", "email_to_hem", "--in", clitest.Samples+"/emails.csv", "--out", filepath.Join(t.TempDir(), "out"), "--set", "openlineage_url="+url)
		if code := p.Code(); code != cli.ExitUsage || !strings.Contains(p.Said.String(), says) || strings.Contains(p.Said.String(), "pass@") {
			t.Errorf("%s: exit code %d\n%s", url, code, p.Said)
		}
	}
}
