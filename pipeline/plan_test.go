package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/job"

	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/embedded"
)

// plan opens everything as the command does, and plans.
func (s setup) plan(ctx context.Context) (plan *pipeline.Plan, err error) {
	err = s.open(ctx, func(run *job.Run) error {
		plan, err = pipeline.MakePlan(ctx, run)
		return err
	})
	return plan, err
}

func (s setup) mustPlan(t tb) *pipeline.Plan {
	plan, err := s.plan(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// A plan's numbers are those of the run that follows, whatever is there
// already, and it changes nothing.
func TestPlan(t *testing.T) {
	duplicates := emails(0, 50) + emails(0, 25)[len("id,email\n"):] + "1,PERSON1@mail.example\n2,invalid\n3\n4,\n"
	begun := func(t tb, s setup) { stop(t, s, 21) }
	finished := func(t tb, s setup) { s.mustDo(t) }
	other := func(t tb, s setup) {
		s.rowsPerPart = 7
		s.mustDo(t)
	}
	for _, c := range []struct {
		name   string
		setup  setup
		input  string
		before func(tb, setup) // an earlier run
		want   string
	}{
		{"nothing", setup{}, "id,email\n", nil, "0 rows, 0 recorded, 0 keys, 0 duplicates, 1 part"},
		{"duplicates", setup{}, duplicates, nil, "78 rows, 0 recorded, 50 keys, 26 duplicates, 1 part"},
		{"small batches", setup{batchRows: 3, workers: 3}, duplicates, nil, "78 rows, 0 recorded, 50 keys, 26 duplicates, 1 part"},
		{"parts", setup{rowsPerPart: 20}, duplicates, nil, "78 rows, 0 recorded, 50 keys, 26 duplicates, 4 parts"},
		{"recorded parts", setup{rowsPerPart: 20}, duplicates, begun, "78 rows, 20 recorded, 50 keys, 6 duplicates, 4 parts"},
		{"complete", setup{rowsPerPart: 20}, duplicates, finished, "complete"},
		{"recorded parts, to be overwritten", setup{rowsPerPart: 20, overwrite: true}, duplicates, begun, "78 rows, 20 recorded, 50 keys, 6 duplicates, 4 parts"},
		{"complete, to be overwritten", setup{rowsPerPart: 20, overwrite: true}, duplicates, finished, "78 rows, 0 recorded, 50 keys, 26 duplicates, 4 parts"},
		{"another dataset, to be overwritten", setup{rowsPerPart: 20, overwrite: true}, duplicates, other, "78 rows, 0 recorded, 50 keys, 26 duplicates, 4 parts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.setup
			s.dir = t.TempDir()
			s.input(t, "a.csv", c.input)
			if c.before != nil {
				c.before(t, s)
			}
			if err := os.MkdirAll(s.stateDir(), 0o700); err != nil {
				t.Fatal(err)
			}
			before := listing(t, s.dir)
			p := s.mustPlan(t)
			if now := listing(t, s.dir); !maps.Equal(before, now) {
				t.Errorf("planning left\n%v\nof\n%v", now, before)
			}
			got := fmt.Sprintf("%d rows, %d recorded, %d keys, %d duplicates, %d parts", p.Rows, p.Recorded.Rows, p.Keys, p.Duplicates, p.Files.Parts)
			if p.Complete {
				got = "complete"
			}
			if strings.TrimSuffix(got, "s") != strings.TrimSuffix(c.want, "s") {
				t.Errorf("planned %s, want %s", got, c.want)
			}
			result := s.mustDo(t)
			requirePlanned(t, p, result)
			if p.Calls != nil {
				t.Errorf("planned calls where no service is asked: %+v", p.Calls)
			}
		})
	}
}

// Every operation is planned as the engine answers it, sizes included.
func TestPlanOfOperations(t *testing.T) {
	t.Chdir("..")
	engine := embedded.New(importSample(t), embedded.Options{})
	for _, c := range []struct {
		op      resolution.Operation
		in      string
		special int64
		job     func(*job.Job)
	}{
		{resolution.EmailToHEM, "emails.csv", 0, nil},
		{resolution.NetworkToHEM, "profiles.csv", 0, nil},
		{resolution.NetworkToPhone, "profiles.csv", 0, nil},
		{resolution.IPToCompany, "ips.csv", 4, nil},
		{resolution.Enrichment, "profiles.csv", 0, nil},
		{resolution.Deanonymization, "ips.csv", 4, nil},
		{resolution.KeywordToLead, "searches.csv", 0, asOfSample},
		{resolution.KeywordToLeadCount, "searches.csv", 0, asOfSample},
	} {
		t.Run(string(c.op), func(t *testing.T) {
			s := setup{dir: t.TempDir(), op: c.op, in: []string{filepath.Join("testdata", c.in)}, resolver: engine, searcher: engine, job: c.job, rowsPerPart: 10}
			p := s.mustPlan(t)
			result := s.mustDo(t)
			requirePlanned(t, p, result)
			special := map[string]int64{}
			for reason, n := range result.Totals.Reasons["no_match"] {
				if strings.HasPrefix(reason, "ip_class:") {
					special[reason] = n
				}
			}
			if sum(p.Special) != c.special || len(special) > 0 && !maps.Equal(p.Special, special) {
				t.Errorf("planned %v special addresses, the run had %v", p.Special, special)
			}
			var bytes int64
			for _, part := range result.Manifest.Parts {
				bytes += part.Bytes
			}
			if c.op.IsKeyword() {
				bytes, p.Files.AtLeast = 0, !p.Files.AtLeast // what is found is not known
			}
			if p.Files.AtLeast || p.Files.Bytes < bytes*9/10 || p.Files.Bytes > bytes*11/10 {
				t.Errorf("planned %+v, the parts have %d bytes", p.Files, bytes)
			}
		})
	}
}

func sum(counts map[string]int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// requirePlanned compares a plan with what the run after it came to.
func requirePlanned(t tb, p *pipeline.Plan, r *finish.Result) {
	reasons := maps.Clone(r.Totals.Reasons)
	maps.DeleteFunc(reasons, func(outcome string, _ map[string]int64) bool { return outcome != "malformed" && outcome != "rejected" })
	rows := r.Totals.Rows
	if r.Totals.Searches > 0 {
		rows = r.Totals.Searches
	}
	got := fmt.Sprint(p.Rows, p.Malformed, p.Rejected, p.Reasons)
	if want := fmt.Sprint(rows, r.Totals.Malformed, r.Totals.Rejected, reasons); got != want {
		t.Errorf("rows, malformed, rejected: planned %s, the run had %s", got, want)
	}
	rejects := 0
	for _, part := range r.Manifest.Parts {
		if part.Rejects != nil {
			rejects++
		}
	}
	if p.Files.Parts != len(r.Manifest.Parts) || p.Files.Rejects != rejects {
		t.Errorf("planned %+v, the run made %d parts and %d of rejects", p.Files, len(r.Manifest.Parts), rejects)
	}
	if p.Recorded.Parts != r.Parts.Earlier {
		t.Errorf("planned %d recorded parts, the run skipped %d", p.Recorded.Parts, r.Parts.Earlier)
	}
}

// A plan refuses what a run refuses, and ends with its context.
func TestPlanRefuses(t *testing.T) {
	s := setup{dir: t.TempDir(), rowsPerPart: 20}
	s.input(t, "a.csv", emails(0, 50))
	stop(t, s, 21)
	s.input(t, "a.csv", emails(1, 50))
	if _, err := s.plan(t.Context()); !errors.Is(err, cut.ErrInputChanged) {
		t.Errorf("changed rows: %v", err)
	}
	s.rowsPerPart = 10
	if _, err := s.plan(t.Context()); !errors.Is(err, begin.ErrOtherJob) {
		t.Errorf("another job: %v", err)
	}
	s.out = "elsewhere"
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.plan(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
