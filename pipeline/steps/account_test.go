package steps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/badservice"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
)

// addressList is a list of addresses. The last of seven rows, which are a batch, is
// the first again; some are not public.
func addressList(rows int) string {
	var b strings.Builder
	b.WriteString("id,ip,note\n")
	for i := range rows {
		n := i
		if i%7 == 6 {
			n = i - 6
		}
		ip := fmt.Sprintf("192.31.%d.%d", 196+n/200, n%200+1)
		if i%35 == 3 {
			ip = "10.0.0.1"
		}
		fmt.Fprintf(&b, "%d,%s,\n", i, ip)
	}
	return b.String()
}

// alone returns the report of a run on one machine, which has stored nothing.
func (p *paid) alone() *report.Report {
	t := p.t
	t.Helper()
	store, err := answers.Open(filepath.Join(t.TempDir(), "answers"), answers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	run := p.open(t.TempDir(), sinks.Options{})
	run.Remote.Answers = store
	result, err := run.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return result.Report
}

// requireReport compares what the report says about calls with want. Times are
// others on every run.
func requireReport(t *testing.T, what string, got, want *report.Report) {
	t.Helper()
	comparable := func(r *report.Report) report.Service {
		s := *r.Service
		s.Run, s.Waits, s.Latency = "", nil, report.Latency{}
		s.Calls.P50, s.Calls.P95, s.Calls.P99, s.Calls.Waits, s.Calls.Rate = 0, 0, 0, nil, 0
		return s
	}
	if g, w := comparable(got), comparable(want); !reflect.DeepEqual(g, w) {
		t.Errorf("%s: the report says\n%+v\nwant\n%+v", what, g, w)
	}
	if got.Duplicates == nil || *got.Duplicates != *want.Duplicates {
		t.Errorf("%s: %v duplicates, want %d", what, got.Duplicates, *want.Duplicates)
	}
	if l := got.Service.Latency; got.Service.Calls.ByClass[stats.CallAnswered] > 0 && (l.P50 <= 0 || l.P99 < l.P50) {
		t.Errorf("%s: latency %+v", what, l)
	}
	if got.Fresh.Rows != want.Fresh.Rows || got.Parts != want.Parts || got.Series.StepSeconds != 0 {
		t.Errorf("%s: %d fresh rows, %+v, %+v; want %d, %+v", what, got.Fresh.Rows, got.Parts, got.Series, want.Fresh.Rows, want.Parts)
	}
}

// TestPaidReport: the report of a run in steps has the calls that it has on one
// machine. A run that is stopped by its budget, and killed, counts as one.
func TestPaidReport(t *testing.T) {
	o := badservice.DefaultOptions()
	o.Matched, o.Refused = 0.6, 0.1
	p := newPaid(t, addressList(294), 98, o)
	most := int64(10_000)
	p.change = func(r *purchase.Remote) { r.Budget.MaxCredits = most }
	want := p.alone()
	if c := want.Service.Calls; c.Stored != 0 || c.Refused == 0 || c.Matched == 0 || c.Credits == 0 || c.Duplicates == 0 {
		t.Fatalf("on one machine: %+v", c)
	}
	_, result := p.all()
	requireReport(t, "in steps", result.Report, want)
	requireCredits := func(total, last int64) {
		t.Helper()
		if m := result.Manifest; m.CreditsTotal == nil || *m.CreditsTotal != total || *m.CreditsThisRun != last {
			t.Errorf("manifest: %+v; want %d credits, %d of the last run", m, total, last)
		}
	}
	paid := want.Service.Calls.Credits
	requireCredits(paid, paid)

	// A run that repairs the dataset counts on.
	if err := os.Remove(filepath.Join(p.dir, "out", "part-00001.parquet")); err != nil {
		t.Fatal(err)
	}
	most = paid + purchase.Prices[resolution.IPToCompany].Match // refused questions are asked again
	_, result = p.all()
	requireCredits(paid, 0)
	most = 10_000

	// All answers are stored now. Questions that were refused before the second in
	// which the run was begun are asked again.
	p.removeOutput()
	seen := p.service.Seen()
	_, result = p.all()
	calls, again := &want.Service.Calls, int64(p.service.Seen()-seen)
	if again > calls.Refused {
		t.Errorf("%d calls although all is stored but %d refusals", again, calls.Refused)
	}
	calls.Stored, calls.Refused, calls.Calls, calls.Credits, calls.ByClass = calls.Asked-again, again, again, 0, map[string]int64{}
	if again > 0 {
		calls.ByClass["invalid"] = again
	}
	want.Service.Budget.Calls, want.Service.Budget.Credits = again, 0
	requireReport(t, "with stored answers", result.Report, want)
}

// TestPaidReportOfStops: a run that a budget stopped, and whose worker was
// killed, is one run.
func TestPaidReportOfStops(t *testing.T) {
	p := newPaid(t, addressList(294), 98, badservice.DefaultOptions())
	want := p.alone()
	seen := p.service.Seen()
	most := int64(30)
	p.change = func(r *purchase.Remote) { r.Budget.MaxCalls = most }
	p.asking = func(r *Run) error {
		_, err := r.Ask(t.Context(), 0, nil)
		if !errors.Is(err, purchase.ErrBudget) {
			t.Errorf("with a budget: %v", err)
		}
		p.change = nil
		killed := Attempt{Asked: Asked{Made: stats.CallRecord{ByClass: map[string]int64{stats.CallAnswered: 7}}}}
		return errors.Join(r.putJSON(t.Context(), attemptName(0, "killed"), killed), p.askAgain(t.Context()))
	}
	_, result := p.all()
	want.Service.Calls.Calls += 7
	want.Service.Calls.ByClass[stats.CallAnswered] += 7
	want.Service.Uncounted, want.Service.Budget.MaxCalls = 1, &most
	requireReport(t, "with stops", result.Report, want)
	if n := int64(p.service.Seen() - seen); n+7 != result.Report.Service.Calls.Calls {
		t.Errorf("the service has seen %d requests, the report %d", n, result.Report.Service.Calls.Calls-7)
	}
}

// askAgain asks about the first wave on another machine.
func (p *paid) askAgain(ctx context.Context) error {
	_, err := p.join().Ask(ctx, 0, nil)
	return err
}
