package pipeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
)

const reportKey = "lrk_test_CanaryOfTheKey"

// asking is a job whose answers come from a service.
type asking struct {
	setup
	url    string
	remote func(*purchase.Remote) // nil changes nothing
	pace   func(*pace.Options)    // nil changes nothing
}

// newAsking is a job of n profiles, asked of a service that keeps books.
func newAsking(t *testing.T, n int, o badservice.Options) (*asking, *badservice.Service) {
	o.APIKey = reportKey
	books := badservice.New(o)
	url, err := books.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := books.Close(); err != nil {
			t.Error(err)
		}
	})
	a := &asking{setup: setup{dir: t.TempDir(), op: resolution.Enrichment}, url: url}
	var list strings.Builder
	list.WriteString("network_url\nnot a canary\n")
	for i := range n {
		fmt.Fprintf(&list, "https://linkedin.com/in/canary-%d\n", i)
	}
	a.input(t, "in.csv", list.String())
	return a, books
}

// run runs the job, and looks at the report that is then in the folder: its
// bytes and what they say.
func (a *asking) run(t *testing.T, ctx context.Context) (*finish.Result, *report.Report, error) {
	t.Helper()
	store, err := answers.Open(context.Background(), answers.InFolder(filepath.Join(a.stateDir(), "answers")), answers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	o := client.DefaultOptions()
	o.BaseURL, o.Key = a.url, secret.New(reportKey)
	service, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	p := pace.DefaultOptions()
	p.Pause, p.Probe, p.MaxProbe = time.Millisecond, time.Millisecond, 5*time.Millisecond
	if a.pace != nil {
		a.pace(&p)
	}
	controller := pace.New(p)
	meter := &stats.CallCounters{}
	meter.Paced(controller.Snapshot)
	remote := &purchase.Remote{
		Service: service, Read: client.Read, Name: a.url, Answers: store, Pace: controller, Concurrency: p.Concurrency,
		Budget: purchase.NoBudget, Price: purchase.Prices[resolution.Enrichment], Patience: time.Minute, Counters: meter,
	}
	if a.remote != nil {
		a.remote(remote)
	}
	var result *finish.Result
	err = a.open(t.Context(), func(run *job.Run) error {
		run.Order, run.Progress.Calls = orderOf(remote), meter
		result, err = pipeline.Do(ctx, run)
		return err
	})
	return result, readReport(t, a.outDir()), err
}

// readReport reads a report and sees to it that it holds nothing personal.
func readReport(t *testing.T, dir string) *report.Report {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "_report.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.ToLower(string(data)), "canary") {
		t.Errorf("the report holds personal data or the key:\n%s", data)
	}
	checkPage(t, dir, data)
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	var r report.Report
	if err := decoder.Decode(&r); err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	return &r
}

// checkPage sees to it that the page of a report is that of this report, and
// holds nothing personal.
func checkPage(t *testing.T, dir string, data []byte) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(dir, "_report.html"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.ToLower(string(page)), "canary") {
		t.Errorf("the page of the report holds personal data or the key:\n%s", page)
	}
	if want, err := report.Render(data); err != nil || !bytes.Equal(page, want) {
		t.Errorf("the page is not that of the report (%v)", err)
	}
}

// TestReportEqualsTheBooks: what a report says of calls and money is what the
// service says of them.
func TestReportEqualsTheBooks(t *testing.T) {
	o := badservice.DefaultOptions()
	o.HonourKeys = false
	o.Refused = 0.1
	o.Faults = badservice.Faults{Unavailable: 0.1, ResetBefore: 0.05, ResetAfter: 0.1, Failed: 0.05}
	a, books := newAsking(t, 300, o)
	result, made, err := a.run(t, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(made, reread(t, result.Report)) {
		t.Error("the result has another report than the folder")
	}
	s, fates := made.Service, books.Fates()
	unknown := s.Unknown.Count
	sent := 0
	for _, n := range fates {
		sent += n
	}
	// What was charged and never answered is unknown; a connection that broke
	// before anything was charged looks the same from here.
	unanswered := fates[badservice.ResetBefore] + fates[badservice.ResetAfter] + fates[badservice.Failed]
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"calls", s.Calls.Calls, int64(sent)},
		{"answered", s.Calls.ByClass["answered"], int64(fates[badservice.Answered])},
		{"invalid", s.Calls.ByClass["invalid"], int64(fates[badservice.Refused])},
		{"refused", s.Calls.Refused, int64(fates[badservice.Refused])},
		{"unknown", unknown, int64(unanswered)},
		{"unknown of this run", s.Calls.Unknown, int64(unanswered)},
		{"listed", int64(len(s.Unknown.Listed)), int64(unanswered)},
		{"asked", s.Calls.Asked, 300},
		{"closed", s.Calls.Closed, 300},
		{"matched", s.Calls.Matched, made.Totals.Matched},
		{"counted calls", s.Budget.Calls, s.Calls.ByClass["answered"] + s.Calls.Refused + unknown},
		{"counted credits", s.Budget.Credits, s.Calls.Credits + 2*unknown},
		{"rows", made.Totals.Rows, 301},
		{"failed rows", made.Totals.Reasons["failed"]["unknown_call"], unknown},
		{"parts made", int64(made.Parts.Made), 1},
		{"files", int64(len(made.Files)), 1},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.got, c.want)
		}
	}
	if charged := books.Spent(); s.Calls.Credits > charged || s.Calls.Credits+2*unknown < charged {
		t.Errorf("%d credits and %d unknown calls, %d were charged", s.Calls.Credits, unknown, charged)
	}
	if retried := s.Calls.Retries["unavailable"]; retried == 0 || unknown == 0 {
		t.Errorf("%d retries and %d unknown calls: the service was not bad enough", retried, unknown)
	}
	if want := float64(made.Totals.Matched) / 301; made.MatchRate < want-1e-4 || made.MatchRate > want+1e-4 {
		t.Errorf("match rate %v, want %v", made.MatchRate, want)
	}
	if l := s.Latency; l.P50 <= 0 || l.P95 < l.P50 || l.P99 < l.P95 {
		t.Errorf("latency %+v", l)
	}
	for _, c := range s.Unknown.Listed {
		if len(c.KeyHash) != 64 || c.IdempotencyKey == "" || c.SentAt.IsZero() || c.Attempts != 1 || !c.ThisRun || c.Reason == "" {
			t.Fatalf("unknown call %+v", c)
		}
	}
}

// reread is a report as it is after it was written.
func reread(t *testing.T, r *report.Report) *report.Report {
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var again report.Report
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	return &again
}

// TestReportSaysWhyARunStopped: each way to stop, and that the run after it
// says that it finished, with what the two spent together.
func TestReportSaysWhyARunStopped(t *testing.T) {
	for _, c := range []struct {
		name   string
		set    func(*asking, *badservice.Service, context.CancelFunc)
		reason report.StopReason
		detail string
	}{
		{"credits of the budget", func(a *asking, _ *badservice.Service, _ context.CancelFunc) {
			a.remote = func(r *purchase.Remote) { r.Budget.MaxCredits = 20 }
		}, report.StopBudget, "--max-credits 20"},
		{"calls of the budget", func(a *asking, _ *badservice.Service, _ context.CancelFunc) {
			a.remote = func(r *purchase.Remote) { r.Budget.MaxCalls = 5 }
		}, report.StopBudget, "--max-calls 5"},
		{"out of credits", func(_ *asking, s *badservice.Service, _ context.CancelFunc) { s.Grant(-1_000_000 + 21) }, report.StopNoCredits, "out of credits"},
		{"denied", func(_ *asking, s *badservice.Service, _ context.CancelFunc) { s.Deny(5, -1) }, report.StopRefused, "refuses"},
		{"gone", func(a *asking, s *badservice.Service, _ context.CancelFunc) {
			a.url = "http://127.0.0.1:1"
			a.pace = func(o *pace.Options) { o.GiveUp = 20 * time.Millisecond }
		}, report.StopUnreachable, "out of reach"},
		{"interrupted", func(a *asking, _ *badservice.Service, stop context.CancelFunc) {
			a.remote = func(r *purchase.Remote) { r.Service = stopping{r.Service, stop} }
		}, report.StopInterrupted, "context canceled"},
		{"an answer that cannot be kept", func(a *asking, _ *badservice.Service, _ context.CancelFunc) {
			a.remote = func(r *purchase.Remote) { r.Service = broken{r.Service} }
		}, report.StopFailed, "out of order"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := badservice.DefaultOptions()
			o.Credits, o.Matched = 1_000_000, 1
			a, books := newAsking(t, 100, o)
			url := a.url
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			c.set(a, books, stop)
			result, made, err := a.run(t, ctx)
			if err == nil || made == nil || made.Stop.Reason != c.reason || !strings.Contains(made.Stop.Detail, c.detail) {
				t.Fatalf("%v, report %+v; want %s, %q", err, made, c.reason, c.detail)
			}
			if !reflect.DeepEqual(made, reread(t, result.Report)) {
				t.Error("the result has another report than the folder")
			}
			first := made.Service
			if first.Calls.Credits != books.Spent() || made.Parts.Made != 0 || made.Totals.Rows != 0 {
				t.Errorf("%d credits, %d charged; %+v", first.Calls.Credits, books.Spent(), made)
			}
			if c.reason == report.StopUnreachable || c.reason == report.StopFailed {
				return // nothing was bought, or it is not known what
			}

			books.Deny(0, 0)
			books.Grant(1_000_000)
			a.url, a.remote, a.pace = url, nil, nil
			_, made, err = a.run(t, t.Context())
			if err != nil || made.Stop != (report.Stop{Reason: report.StopFinished}) {
				t.Fatalf("%v, %+v", err, made.Stop)
			}
			second := made.Service
			if second.Run != first.Run || second.Calls.EarlierCredits != first.Calls.Credits || second.Calls.EarlierCalls != first.Budget.Calls {
				t.Errorf("the run after it counts %+v, the one before was %+v", second, first)
			}
			if sum := second.Calls.Credits + first.Calls.Credits; sum != 200 || sum != books.Spent() || second.Budget.Credits != sum {
				t.Errorf("%d credits together, %d against the budget, %d charged; want 200", sum, second.Budget.Credits, books.Spent())
			}
		})
	}
}

// stopping interrupts the run with its first calls in flight.
type stopping struct {
	purchase.Service
	stop func()
}

func (s stopping) Do(ctx context.Context, c resolution.Call) (resolution.Reply, error) {
	reply, err := s.Service.Do(ctx, c)
	s.stop()
	return reply, err
}

// broken fails in a way that says nothing of the call.
type broken struct{ purchase.Service }

func (broken) Do(context.Context, resolution.Call) (resolution.Reply, error) {
	return resolution.Reply{}, errors.New("out of order")
}

// TestReportIsOfTheRunThatMadeTheDataset: a run that finds everything done
// leaves it as it is, also where it has to read its input again to know.
func TestReportIsOfTheRunThatMadeTheDataset(t *testing.T) {
	for _, stdin := range []bool{false, true} {
		s := setup{dir: t.TempDir()}
		if stdin {
			s.in, s.stdin = []string{"-"}, emails(0, 5)
		} else {
			s.input(t, "in.csv", emails(0, 5))
		}
		if first := s.mustDo(t); first.Report == nil {
			t.Fatal("no report of a run that made something")
		}
		before := listing(t, s.outDir())
		s.mustDo(t)
		if after := listing(t, s.outDir()); before["_report.json"] != after["_report.json"] || before["_report.html"] != after["_report.html"] {
			t.Errorf("stdin %v: the report was written again", stdin)
		}
		if r := readReport(t, s.outDir()); r.Stop.Reason != report.StopFinished || r.Parts != (report.Parts{Made: 1}) || r.Service != nil {
			t.Errorf("stdin %v: %+v", stdin, r)
		}
	}
}

// TestNoReportOfARunThatChangedNothing: a folder with another job's dataset
// keeps that job's report.
func TestNoReportOfARunThatChangedNothing(t *testing.T) {
	s := setup{dir: t.TempDir()}
	s.input(t, "in.csv", emails(0, 5))
	s.mustDo(t)
	before := listing(t, s.outDir())
	s.rowsPerPart = 2
	if _, err := s.do(t.Context()); !errors.Is(err, begin.ErrOtherJob) {
		t.Fatalf("%v, want ErrOtherJob", err)
	}
	if after := listing(t, s.outDir()); !maps.Equal(before, after) {
		t.Errorf("the folder held %v, and holds %v", before, after)
	}
}

// TestReportOfAnUnfinishedRunListsItsFiles: two parts of three are there.
func TestReportOfAnUnfinishedRunListsItsFiles(t *testing.T) {
	failure := errors.New("broken")
	s := setup{dir: t.TempDir(), rowsPerPart: 10, workers: 1}
	s.input(t, "in.csv", emails(0, 25)+"ragged\n")
	s.resolver = &hashing{before: func(n int64) error {
		if n > 20 {
			return failure
		}
		return nil
	}}
	if _, err := s.do(t.Context()); !errors.Is(err, failure) {
		t.Fatalf("%v, want %v", err, failure)
	}
	r := readReport(t, s.outDir())
	if r.Stop != (report.Stop{Reason: report.StopFailed, Detail: "broken"}) || len(r.Files) != 2 || r.Parts.Made != 2 || r.Totals.Rows != 20 || r.Fresh.Rows != 20 {
		t.Errorf("%+v", r)
	}
	s.resolver = nil
	s.mustDo(t)
	r = readReport(t, s.outDir())
	var names []string
	for _, f := range r.Files {
		names = append(names, f.Name)
	}
	want := []string{"part-00000.parquet", "part-00001.parquet", "part-00002.parquet", "_rejects/part-00002.parquet"}
	if !slices.Equal(names, want) || r.Parts != (report.Parts{Made: 1, Earlier: 2}) || r.Totals.Rows != 25 || r.Fresh.Rows != 5 {
		t.Errorf("files %q, %+v", names, r)
	}
}

// TestPageOfTheReport: docs/reference/report.md explains every member, and no other.
func TestPageOfTheReport(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/report.md")
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	_, table, _ := strings.Cut(string(page), "| member |")
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| `") {
			first, _, _ := strings.Cut(line, " |")
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
				shown = append(shown, m[1])
			}
		}
	}
	if want := members(reflect.TypeFor[report.Report](), ""); !slices.Equal(shown, want) {
		t.Errorf("docs/reference/report.md lists\n%s\nwant\n%s", strings.Join(shown, "\n"), strings.Join(want, "\n"))
	}
}

// members are the names of a type's members in JSON, those of members below
// theirs, in order: a.b, and a[].b for the elements of a list.
func members(t reflect.Type, below string) (names []string) {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || f.Anonymous {
			continue
		}
		name = below + name
		names = append(names, name)
		switch inner := f.Type; {
		case inner == reflect.TypeFor[*report.Service]() && name != "service": // it has the members of service
		case inner.Kind() == reflect.Pointer && inner.Elem().Kind() == reflect.Struct:
			names = append(names, members(inner.Elem(), name+".")...)
		case inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct:
			names = append(names, members(inner.Elem(), name+"[].")...)
		case inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]():
			names = append(names, members(inner, name+".")...)
		}
	}
	return names
}

// firstLook is a service that looks at the counters when its first call comes.
type firstLook struct {
	purchase.Service
	look func()
}

func (s *firstLook) Do(ctx context.Context, call resolution.Call) (resolution.Reply, error) {
	s.look()
	return s.Service.Do(ctx, call)
}

// TestDuplicatesAreKnownBeforeAnswers: the progress of a batch counts the rows that
// share a question, and those without one, while the first answer is awaited.
func TestDuplicatesAreKnownBeforeAnswers(t *testing.T) {
	a, _ := newAsking(t, 20, badservice.DefaultOptions())
	var list strings.Builder
	list.WriteString("network_url\nnot a canary\nn/a\n")
	for i := range 60 {
		fmt.Fprintf(&list, "https://linkedin.com/in/canary-%d\n", i%20)
	}
	a.input(t, "in.csv", list.String())
	var first stats.Snapshot
	var progress stats.Progress
	var once sync.Once
	a.remote = func(r *purchase.Remote) {
		progress.Calls = r.Counters
		r.Service = &firstLook{r.Service, func() { once.Do(func() { first = progress.Snapshot() }) }}
	}
	if _, _, err := a.run(t, t.Context()); err != nil {
		t.Fatal(err)
	}
	for when, s := range map[string]stats.Snapshot{"with the first call": first, "at the end": progress.Snapshot()} {
		if s.Calls.Asked != 20 || s.Calls.Duplicates != 40 || s.Unasked != 2 {
			t.Errorf("%s: %d questions, %d duplicates, %d rows without a question; want 20, 40 and 2", when, s.Calls.Asked, s.Calls.Duplicates, s.Unasked)
		}
	}
}
