package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/job"

	"github.com/leadetl/leadetl/resolution"
)

// leads are the numbers of the leads of a dataset's rows, with their pages:
// "1/0" is number 0 on page 1. Rows without a lead are their outcome and
// reason.
func leads(t tb, s setup) (all []string) {
	for _, row := range rows(t, parts(content(t, s.outDir()))) {
		of := fields(t, row)
		if of["job_title"] == nil {
			all = append(all, strings.TrimSpace(fmt.Sprint(of["outcome"], " ", of["reason"])))
			continue
		}
		all = append(all, fmt.Sprintf("%v/%s", of["page"], strings.TrimPrefix(fmt.Sprint(of["job_title"]), "Number ")))
	}
	return all
}

// numbers are leads from…to of pages of limit leads.
func numbers(from, to, limit int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf("%d/%d", i/limit+1, i))
	}
	return all
}

func searching(t tb, list string) setup {
	s := setup{dir: t.(interface{ TempDir() string }).TempDir(), op: resolution.KeywordToLead, job: func(j *job.Job) {
		j.AsOf = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	}}
	s.input(t, "searches.csv", list)
	return s
}

func TestPagesOfSearches(t *testing.T) {
	for _, c := range []struct {
		name, list string
		want       []string
	}{
		{"all pages, in order", "keywords,limit\ncrowd 25,10\n", numbers(0, 25, 10)},
		{"a page that is just full", "keywords,limit\ncrowd 20,10\n", numbers(0, 20, 10)},
		{"one page alone", "keywords,limit,page\ncrowd 25,10,2\n", numbers(10, 20, 10)},
		{"the last page alone", "keywords,limit,page\ncrowd 25,10,3\n", numbers(20, 25, 10)},
		{"a page behind the last", "keywords,limit,page\ncrowd 25,10,4\n", []string{"no_match not_found"}},
		{"nobody", "keywords\nnobody\n", []string{"no_match not_found"}},
		{"a lead on two pages is one lead", "keywords,limit\ncrowd 25 overlapping,10\n",
			append(append(append(numbers(0, 10, 10), "1/10"), numbers(11, 20, 10)...), append([]string{"2/20"}, numbers(21, 25, 10)...)...)},
		{"and of two searches it is two", "keywords\ncrowd 2\ncrowd 3\n", append(numbers(0, 2, 1000), numbers(0, 3, 1000)...)},
		{"a rejected one among others", "keywords,states\ncrowd 1,\n,CA\ncrowd 1,X\ncrowd 2,NY\n",
			append(append(numbers(0, 1, 1000), "rejected keywords:missing", "rejected states:invalid"), numbers(0, 2, 1000)...)},
		{"no searches", "keywords\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := searching(t, c.list)
			s.searcher, s.workers = &crowd{}, 2
			s.mustDo(t)
			if got := leads(t, s); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// Pages lead no further than 100,000 leads deep.
func TestDepthOfSearches(t *testing.T) {
	s := searching(t, "keywords\ncrowd 100500\n")
	c := &crowd{}
	s.searcher = c
	r, err := s.do(t.Context())
	if err != nil || r.Totals.Matched != 100_000 || r.Totals.Searches != 1 || len(c.questions()) != 100 {
		t.Errorf("%+v of %d pages, %v", r, len(c.questions()), err)
	}
}

// The rows of the input are repeated for each lead, nulls as nulls, and the
// identifier alone can be left out.
func TestColumnsOfSearches(t *testing.T) {
	s := searching(t, "id,Topic,STATES,Page\nA,crowd 2,ca,\nB,crowd 1,,1\nC,,,\n")
	s.searcher = &crowd{}
	keep := s.job
	s.job = func(j *job.Job) { keep(j); j.IDColumn = "topic" }
	s.mustDo(t)
	got := rows(t, parts(content(t, s.outDir())))
	for i, want := range []string{
		`"id": "A", "Topic": "crowd 2", "STATES": "ca", "in_Page": "", "source": "` + s.dir + `/in/searches.csv", "source_row": 1, ` +
			`"key": "{\"date_end\":\"2026-11-20\",\"date_start\":\"2026-11-13\",\"keywords\":[\"crowd 2\"],\"limit\":1000,\"limit_of_hems\":20,\"states\":[\"CA\"]}", "outcome": "matched", ` +
			`"answered_by": "embedded", "credits": 0, "search_row": 1, "page": 1, "lead_id": "lead_00000000000000000000000000000000", "matched_keywords": ["crowd 2"], "searched_on": `,
		`"id": "A", "Topic": "crowd 2", "STATES": "ca", `,
		`"id": "B", "Topic": "crowd 1", "STATES": "", "in_Page": "1", `,
		`"id": "C", "Topic": "", "STATES": "", "in_Page": "", "source": "` + s.dir + `/in/searches.csv", "source_row": 3, "outcome": "rejected", "reason": "keywords:missing", "search_row": 3`,
	} {
		if i >= len(got) || !strings.HasPrefix(got[i], "{"+want) {
			t.Fatalf("row %d of %d\n got %s\nwant %s", i, len(got), got[i], want)
		}
	}
	s.out, s.state = "dropped", "state2"
	s.job = func(j *job.Job) { keep(j); j.IDColumn, j.DropIdentifier = "topic", true }
	s.mustDo(t)
	for _, row := range rows(t, parts(content(t, s.outDir()))) {
		if strings.Contains(row, "crowd") || strings.Contains(row, `"key"`) || !strings.Contains(row, `"STATES"`) {
			t.Errorf("%s", row)
		}
	}
}

// A filter that some file has is read of every file.
func TestFilterInOneFileOnly(t *testing.T) {
	s := searching(t, "keywords\ncrowd 2\n")
	s.input(t, "z.csv", "keywords,states\ncrowd 2,CA\n")
	s.searcher = &crowd{}
	s.job = func(j *job.Job) { j.Select = []string{"answers"} }
	if _, err := s.do(t.Context()); err == nil || !strings.Contains(err.Error(), `searches.csv has no column "states"`) {
		t.Errorf("%v", err)
	}
}

func TestCountsOfSearches(t *testing.T) {
	s := searching(t, "keywords,limit_of_hems,limit,page\ncrowd 25,2,0,9\nnobody,,,\n,,,\n")
	s.op = resolution.KeywordToLeadCount
	c := &crowd{}
	s.searcher = c
	r := s.mustDo(t)
	var got []string
	for _, row := range rows(t, parts(content(t, s.outDir()))) {
		of := fields(t, row)
		said := fmt.Sprintln(of["outcome"], of["reason"], of["count"], of["hashed_email_count"], of["is_approximate"], of["lead_id"])
		got = append(got, strings.Join(strings.Fields(strings.ReplaceAll(said, "<nil>", "")), " "))
	}
	want := []string{"matched 25 50 false", "matched 0 0 false", "rejected keywords:missing"}
	if fmt.Sprint(got) != fmt.Sprint(want) || r.Totals.Searches != 3 || r.Totals.Rows != 3 {
		t.Errorf("%q, want %q, %+v", got, want, r.Totals)
	}
}

// manySearches are searches of all sizes, some of them wrong.
func manySearches(n int) string {
	var b strings.Builder
	b.WriteString("id,keywords,limit\n")
	for i := range n {
		fmt.Fprintf(&b, "S%d,crowd %d,%d\n", i, (i*37)%90, i%40)
	}
	return b.String()
}

// Neither workers nor batches have a part in the bytes of a dataset, nor how
// fast a search is.
func TestSearchesAreDeterministic(t *testing.T) {
	var want map[string]string
	for _, c := range []struct{ workers, batchRows int }{{1, 0}, {4, 1}, {2, 7}, {8, 0}} {
		s := searching(t, "")
		s.dir = t.TempDir()
		s.in = []string{"in/searches.csv"}
		s.input(t, "searches.csv", manySearches(100))
		t.Chdir(s.dir)
		var calls atomic.Int64
		s.searcher = &crowd{before: func(resolution.KeywordSearch, resolution.SearchPage) error {
			for range calls.Add(1) % 5 {
				runtime.Gosched()
			}
			return nil
		}}
		s.workers, s.batchRows, s.rowsPerPart = c.workers, c.batchRows, 40
		s.mustDo(t)
		got := content(t, s.outDir())
		if want == nil {
			want = got
		}
		requireSame(t, got, want)
	}
}

// A search that waits for its turn holds little: while the first of many is
// slow, few others have begun.
func TestSearchesAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := searching(t, "keywords,limit\n"+"crowd 1\n"+strings.Repeat("crowd 500,10\n", 300))
		s.rowsPerPart, s.workers = 1000, 4
		var asked atomic.Int64
		release := make(chan struct{})
		s.input(t, "searches.csv", "keywords,limit\nslow,1\n"+strings.Repeat("crowd 500,10\n", 300))
		s.searcher = &crowd{before: func(k resolution.KeywordSearch, _ resolution.SearchPage) error {
			asked.Add(1)
			if k.Keywords[0] == "slow" {
				<-release
			}
			return nil
		}}
		done := make(chan error)
		go func() {
			_, err := s.do(t.Context())
			done <- err
		}()
		synctest.Wait()
		if n := asked.Load(); n < 2 || n > 6 {
			t.Errorf("%d pages are made while the first is waited for", n)
		}
		close(release)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

// A run that is interrupted ends in the middle of a search, and leaves its part
// to the next run.
func TestInterruptedSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := searching(t, "keywords,limit\ncrowd 3,1\ncrowd 5000,1\n")
		ctx, cancel := context.WithCancel(t.Context())
		c := &crowd{before: func(_ resolution.KeywordSearch, p resolution.SearchPage) error {
			if p.Number == 50 {
				cancel()
			}
			time.Sleep(time.Second) // passes when no other has anything to do
			return nil
		}}
		s.searcher, s.rowsPerPart = c, 1
		if _, err := s.do(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if n := len(c.questions()); n > 60 {
			t.Errorf("ended after %d pages", n)
		}
		if r := s.mustDo(t); r.Parts.Made != 1 || r.Parts.Earlier != 1 || r.Totals.Matched != 5003 {
			t.Errorf("%+v", r)
		}
	})
}

// A run that continues another day asks what it asked the first day, a finished
// one stays finished, and one that replaces it asks about the present days.
func TestDayOfSearches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is 2000-01-01
		s := searching(t, "keywords\ncrowd 1\ncrowd 2\ncrowd 3\n")
		s.job, s.rowsPerPart = nil, 1
		var days []string
		broken := errors.New("broken")
		c := &crowd{before: func(k resolution.KeywordSearch, _ resolution.SearchPage) error {
			days = append(days, k.Start.Format(time.DateOnly)+" "+k.End.Format(time.DateOnly))
			if len(days) == 2 {
				return broken
			}
			return nil
		}}
		s.searcher = c
		if _, err := s.do(t.Context()); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Hour)
		if r := s.mustDo(t); r.Parts.Made != 2 || r.Parts.Earlier != 1 {
			t.Errorf("%d made, %d there", r.Parts.Made, r.Parts.Earlier)
		}
		time.Sleep(50 * time.Hour)
		if r := s.mustDo(t); r.Parts.Made != 0 {
			t.Errorf("%d parts of a finished dataset made again", r.Parts.Made)
		}
		if want := strings.Repeat("1999-12-25 2000-01-01 ", 4); strings.Join(days, " ")+" " != want {
			t.Errorf("asked about %q, want %q", days, want)
		}
		days = make([]string, 10) // nothing breaks any more
		s.overwrite = true
		s.mustDo(t)
		if want := strings.Repeat("1999-12-29 2000-01-05 ", 3); strings.Join(days[10:], " ")+" " != want {
			t.Errorf("asked about %q, want %q", days[10:], want)
		}
		s.overwrite = false
		s.job = func(j *job.Job) { j.AsOf = time.Date(1999, 5, 5, 13, 0, 0, 0, time.UTC) }
		if _, err := s.do(t.Context()); !errors.Is(err, begin.ErrOtherJob) {
			t.Errorf("as of another day: %v", err)
		}
	})
}

// A run that fails anywhere continues where it was, and its dataset is that of a
// run that did not.
func TestSearchesGoOn(t *testing.T) {
	whole := searching(t, "")
	whole.dir = t.TempDir()
	whole.in, whole.rowsPerPart = []string{"in/searches.csv"}, 5
	whole.input(t, "searches.csv", manySearches(30))
	whole.searcher = &crowd{}
	t.Chdir(whole.dir)
	whole.mustDo(t)
	want := content(t, whole.outDir())
	for at := int64(1); at < 60; at += 13 {
		s := whole
		s.dir = t.TempDir()
		s.input(t, "searches.csv", manySearches(30))
		t.Chdir(s.dir)
		broken, calls := errors.New("broken"), atomic.Int64{}
		s.searcher = &crowd{before: func(resolution.KeywordSearch, resolution.SearchPage) error {
			if calls.Add(1) == at {
				return broken
			}
			return nil
		}}
		if _, err := s.do(t.Context()); !errors.Is(err, broken) {
			t.Fatalf("broken at %d: %v", at, err)
		}
		s.mustDo(t)
		requireSame(t, content(t, s.outDir()), want)
	}
}
