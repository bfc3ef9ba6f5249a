package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
)

// at runs against a desk; nil is no desk, as offline. change, if any, changes
// how it is asked.
func (s setup) at(ctx context.Context, d *desk, change func(*purchase.Remote)) (r *finish.Result, calls stats.CallSnapshot, err error) {
	store, err := answers.Open(context.Background(), answers.InFolder(filepath.Join(s.stateDir(), "answers")), answers.Options{})
	if err != nil {
		return nil, calls, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	o := pace.DefaultOptions()
	o.Concurrency = 16
	s.remote = &purchase.Remote{
		Read: client.Read, Name: "https://leads.example", Answers: store, Pace: pace.New(o), Concurrency: o.Concurrency,
		Budget: purchase.NoBudget, Price: purchase.Prices[s.op], Patience: time.Minute, Counters: &stats.CallCounters{},
	}
	if d != nil {
		s.remote.Service = d
	}
	if change != nil {
		change(s.remote)
	}
	s.answers = "service " + s.remote.Name
	r, err = s.do(ctx)
	return r, s.remote.Counters.Snapshot(), err
}

func offline(r *purchase.Remote)    { r.Offline = true }
func hurried(r *purchase.Remote)    { r.Service.(*desk).hurry() }
func idempotent(r *purchase.Remote) { r.Keys = purchase.NewKeyWindow(purchase.DefaultKeyWindow) }

// in is a bubble, in which waiting takes no time.
func in(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

// once fails if a page was begun more than once.
func once(t *testing.T, d *desk) {
	t.Helper()
	for page, n := range d.begun() {
		if n != 1 {
			t.Errorf("page %q was begun %d times", page, n)
		}
	}
}

// sums adds up a column.
func sums(t *testing.T, s setup, column string) (sum float64) {
	t.Helper()
	for _, row := range rows(t, parts(content(t, s.outDir()))) {
		n, _ := fields(t, row)[column].(float64)
		sum += n
	}
	return sum
}

// A service gives what the engine gives; each page is bought once, duplicates
// share it, and the credits of a page are spread over its leads.
func TestRemoteSearches(t *testing.T) {
	in(t, func(t *testing.T) {
		list := "keywords,limit,page,deanonymize\ncrowd 25,10,,\ncrowd 7,2,,true\n,,,\nnobody,,,\nCROWD  25,10,,no\ncrowd 25,10,3,\ncrowd 500,250,,\n"
		local := searching(t, list)
		local.searcher = &crowd{}
		local.mustDo(t)
		s := searching(t, list)
		d := &desk{looks: 3}
		r, stats, err := s.at(t.Context(), d, nil)
		if err != nil {
			t.Fatal(err)
		}
		checkDataset(t, s.outDir(), r)
		if got, want := fmt.Sprint(leads(t, s)), fmt.Sprint(leads(t, local)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		once(t, d)
		const spent = 25 + 2*7 + 500
		if d.spent != spent || stats.Credits != spent || stats.Parked != 0 || len(d.begun()) != 3+4+1+2 {
			t.Errorf("%d spent, %+v, %d pages", d.spent, stats, len(d.begun()))
		}
		// The duplicates' rows have what their pages cost too, as other rows have.
		if got := sums(t, s, "credits"); got != spent+25+5 {
			t.Errorf("the rows cost %v", got)
		}
		for _, row := range rows(t, parts(content(t, s.outDir()))) {
			of := fields(t, row)
			if answered := of["outcome"] != "rejected"; answered != (of["answered_by"] == "service") || answered != (of["resolution_id"] != nil) || answered != (of["resolved_at"] != nil) {
				t.Errorf("%s", row)
			}
		}
		// All of it is stored: the dataset can be made again without a call.
		again := s
		again.out = "again"
		if _, stats, err := again.at(t.Context(), nil, offline); err != nil || stats.Calls != 0 {
			t.Fatal(stats, err)
		}
		requireSame(t, content(t, again.outDir()), content(t, s.outDir()))
	})
}

// TestPagesEnd: no page is paid that can have nothing new, whatever the service says
// of more.
func TestPagesEnd(t *testing.T) {
	// leads are two a page, with ids or without them.
	leads := func(page int, name string) (all []any) {
		for n := 2*page - 1; n <= 2*page; n++ {
			all = append(all, map[string]any{name: fmt.Sprint("x", n)})
		}
		return all
	}
	page := func(leads []any, pagination map[string]any) map[string]any {
		return map[string]any{"leads": leads, "pagination": pagination}
	}
	more := func(total int) map[string]any { return map[string]any{"has_more": true, "total": total} }
	for _, f := range []struct {
		name  string
		paged func(n int) map[string]any
		pages int
		rows  int
	}{
		{"as it should be", func(n int) map[string]any { return page(leads(n, "id"), map[string]any{"page": n, "total_pages": 3}) }, 3, 6},
		{"without a total", func(n int) map[string]any { return page(leads(n, "job_title"), map[string]any{"has_more": n < 3}) }, 3, 6},
		{"one page for ever", func(int) map[string]any { return page(leads(1, "id"), map[string]any{"has_more": true}) }, 2, 2},
		{"one page for ever, without ids", func(int) map[string]any { return page(leads(1, "job_title"), map[string]any{"has_more": true}) }, 2, 2},
		{"always page 1 of 9", func(int) map[string]any { return page(leads(1, "id"), map[string]any{"page": 1, "total_pages": 9}) }, 2, 2},
		{"two pages in turns", func(n int) map[string]any { return page(leads(1+n%2, "id"), map[string]any{"has_more": true}) }, 3, 4},
		{"more than the total", func(n int) map[string]any { return page(leads(n, "id"), more(4)) }, 2, 4},
		{"a total that is reached on the way", func(n int) map[string]any { return page(leads(n, "id"), more(3)) }, 2, 4},
		{"a total that falls", func(n int) map[string]any { return page(leads(n, "id"), more(9-n)) }, 3, 6},
		{"a total that grows for a while", func(n int) map[string]any { return page(leads(n, "id"), more(min(2*n+1, 7))) }, 4, 8},
		{"a total of the first page alone", func(n int) map[string]any {
			return page(leads(n, "id"), map[string]any{"has_more": true, "total": []any{nil, 4}[min(n, 2)%2]})
		}, 2, 4},
	} {
		in(t, func(t *testing.T) {
			s := searching(t, "keywords,limit\ncrowd 2,2\n")
			d := &desk{paged: f.paged}
			if _, _, err := s.at(t.Context(), d, nil); err != nil {
				t.Fatal(err)
			}
			if got := rows(t, parts(content(t, s.outDir()))); len(d.begun()) != f.pages || len(got) != f.rows {
				t.Errorf("%s: %d pages, %d rows; want %d and %d", f.name, len(d.begun()), len(got), f.pages, f.rows)
			}
			once(t, d)
		})
	}
}

// TestEmptyPagesAreNoMatches: each age of stored answers is for pages and counts
// of its own kind.
func TestEmptyPagesAreNoMatches(t *testing.T) {
	for _, op := range []resolution.Operation{resolution.KeywordToLead, resolution.KeywordToLeadCount} {
		in(t, func(t *testing.T) {
			s := searching(t, "keywords,limit\ncrowd 7,5\nnobody,5\nempty street,5\n")
			s.op = op
			if _, _, err := s.at(t.Context(), &desk{}, nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * 24 * time.Hour)
			const week = 7 * 24 * time.Hour
			for i, c := range []struct {
				match, noMatch time.Duration
				want           int // that are asked again
			}{{0, 0, 0}, {0, 2 * week, 0}, {0, week, 2}, {week, 2 * week, map[resolution.Operation]int{resolution.KeywordToLead: 2, resolution.KeywordToLeadCount: 1}[op]}} {
				again, d := s, &desk{}
				again.out = fmt.Sprint("again-", i)
				if _, _, err := again.at(t.Context(), d, func(r *purchase.Remote) { r.RefreshMatch, r.RefreshNoMatch = c.match, c.noMatch }); err != nil {
					t.Fatal(err)
				}
				if got := d.begun(); len(got) != c.want {
					t.Errorf("%s, matches of %v and others of %v: %v are asked again, want %d", op, c.match, c.noMatch, got, c.want)
				}
			}
		})
	}
}

func TestRemoteCounts(t *testing.T) {
	in(t, func(t *testing.T) {
		s := searching(t, "keywords\ncrowd 25\ncrowd 25\nnobody\n")
		s.op = resolution.KeywordToLeadCount
		d := &desk{looks: 1}
		r, stats, err := s.at(t.Context(), d, nil)
		if err != nil {
			t.Fatal(err)
		}
		checkDataset(t, s.outDir(), r)
		if sums(t, s, "count") != 50 || stats.Credits != 2 || r.Totals.Matched != 3 {
			t.Errorf("%v counted, %+v", sums(t, s, "count"), stats)
		}
	})
}

// A run that is stopped at any call continues by page: nothing is begun twice,
// and nothing is paid twice.
func TestRemoteSearchesGoOn(t *testing.T) {
	const list = "keywords,limit\ncrowd 9,3\ncrowd 4,2\nnobody,\ncrowd 1,\n"
	for stop := 1; stop <= 16; stop += 3 {
		in(t, func(t *testing.T) {
			s := searching(t, list)
			ctx, cancel := context.WithCancel(t.Context())
			calls := 0
			count := func(int) (error, bool) {
				if calls++; calls == stop {
					cancel()
				}
				return nil, false
			}
			d := &desk{looks: 1, start: count, poll: count}
			_, _, err := s.at(ctx, d, nil)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			r, stats, err := s.at(t.Context(), d, nil)
			if err != nil {
				t.Fatal(err)
			}
			if r.Manifest == nil || r.Totals.Matched != 14 || r.Totals.NoMatch != 1 {
				t.Errorf("stopped at call %d: %+v", stop, r.Totals)
			}
			once(t, d)
			if d.spent != 14 || stats.Credits+stats.EarlierCredits < 14 && r.Parts.Made > 0 {
				t.Errorf("stopped at call %d: %d spent, %+v", stop, d.spent, stats)
			}
		})
	}
}

// A plan counts the later pages of a search that was begun: one whose result
// is to be asked for is parked, and costs no call.
func TestPlanOfSearchGoingOn(t *testing.T) {
	in(t, func(t *testing.T) {
		s := searching(t, "keywords,limit\ncrowd 9,3\nCROWD 9,3\nnobody,\n")
		d := &desk{}
		ctx, cancel := context.WithCancel(t.Context())
		d.poll = func(int) (error, bool) {
			if d.made["crowd 9 2026-11-13 2"] > 0 && d.finished("nobody") { // the page is parked by now
				cancel()
				return failure(s.op, resolution.Unavailable, 503, true), false
			}
			return nil, false
		}
		if _, _, err := s.at(ctx, d, nil); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		store, err := answers.Open(context.Background(), answers.InFolder(filepath.Join(s.stateDir(), "answers")), answers.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		s.remote = &purchase.Remote{Name: "https://leads.example", Answers: store, Budget: purchase.NoBudget, Price: purchase.Prices[s.op]}
		s.answers = "service " + s.remote.Name
		p := s.mustPlan(t)
		if c := p.Calls; p.Keys != 2 || p.Duplicates != 1 || c.Stored != 2 || c.Parked != 1 || c.Awaited != 1 || c.Calls != 0 || c.Credits != 3 {
			t.Errorf("planned %+v, %+v", p, c)
		}
	})
}

// refusing fails the n-th call.
func refusing(n int, err error, lost bool) func(int) (error, bool) {
	return func(call int) (error, bool) {
		if call == n {
			return err, lost
		}
		return nil, false
	}
}

// outcomes counts rows by outcome and reason.
func outcomes(t *testing.T, s setup) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, row := range rows(t, parts(content(t, s.outDir()))) {
		of := fields(t, row)
		word := fmt.Sprint(of["outcome"])
		if of["reason"] != nil {
			word += fmt.Sprint(" ", of["reason"])
		}
		if of["page"] != nil && of["outcome"] != "matched" {
			word += fmt.Sprint(" on page ", of["page"])
		}
		all[word]++
	}
	return all
}

// What goes wrong with one page, and what the next run makes of it.
func TestRemoteSearchFailures(t *testing.T) {
	reset := failure(resolution.KeywordToLead, resolution.Unavailable, 0, true)
	invalid := failure(resolution.KeywordToLead, resolution.Invalid, 400, true)
	invalid.Code = "validation_error"
	busy := failure(resolution.KeywordToLead, resolution.Unavailable, 503, true)
	for _, c := range []struct {
		name   string
		desk   *desk
		change func(*purchase.Remote)
		want   string
		// then is how the next run asks, and after what becomes of it.
		then  func(*purchase.Remote)
		after string
		begun int // pages altogether
	}{
		{name: "a call whose answer is lost", desk: &desk{start: refusing(2, reset, true)},
			want: "map[failed unknown_call on page 2:1 matched:2]", after: "map[failed unknown_call on page 2:1 matched:2]", begun: 2},
		{name: "to a service that knows its keys", desk: &desk{start: refusing(2, reset, true)}, change: idempotent,
			want: "map[matched:5]", after: "map[matched:5]", begun: 3},
		{name: "and when the user says so", desk: &desk{start: refusing(2, reset, true)},
			want: "map[failed unknown_call on page 2:1 matched:2]", then: func(r *purchase.Remote) { r.RetryUnknown = true }, after: "map[matched:5]", begun: 3},
		{name: "a refusal", desk: &desk{start: refusing(2, invalid, false)},
			want: "map[failed refused:validation_error on page 2:1 matched:2]", after: "map[matched:5]", begun: 3},
		{name: "a service that is busy for a while", desk: &desk{start: refusing(2, busy, false), poll: refusing(2, busy, false)},
			want: "map[matched:5]", after: "map[matched:5]", begun: 3},
		{name: "a page that is never finished", desk: &desk{looks: 40},
			want: "map[failed unfinished on page 1:1]", then: hurried, after: "map[matched:5]", begun: 3},
		{name: "a page that the service cannot make", desk: &desk{over: func(resolution.KeywordSearch) bool { return true }},
			want: "map[failed unavailable on page 1:1]", after: "map[failed unavailable on page 1:1]", begun: 2},
		{name: "a page that the service has forgotten", desk: &desk{poll: refusing(2, failure(resolution.KeywordToLead, resolution.Invalid, 410, true), false)},
			want: "map[failed unknown_call on page 2:1 matched:2]", after: "map[failed unknown_call on page 2:1 matched:2]", begun: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				s := searching(t, "keywords,limit\ncrowd 5,2\n")
				r, _, err := s.at(t.Context(), c.desk, c.change)
				if err != nil {
					t.Fatal(err)
				}
				checkFails(t, s, r)
				if got := fmt.Sprint(outcomes(t, s)); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
				if c.then == nil {
					c.then = c.change
				}
				time.Sleep(time.Hour)
				if _, _, err := s.at(t.Context(), c.desk, c.then); err != nil {
					t.Fatal(err)
				}
				if got := fmt.Sprint(outcomes(t, s)); got != c.after {
					t.Errorf("then %s, want %s", got, c.after)
				}
				begun := 0
				for _, n := range c.desk.begun() {
					begun += n
				}
				if begun != c.begun {
					t.Errorf("%d pages were begun, want %d", begun, c.begun)
				}
			})
		})
	}
}

// checkFails reconciles a dataset with failed rows.
func checkFails(t *testing.T, s setup, r *finish.Result) {
	t.Helper()
	if r.Manifest == nil {
		t.Fatal("not finished")
	}
	if err := r.Manifest.Reconcile(); err != nil {
		t.Error(err)
	}
}

// Of a search of which nothing is stored the row is skipped offline; of one of
// which pages are stored, the leads are there.
func TestRemoteSearchesOffline(t *testing.T) {
	in(t, func(t *testing.T) {
		s := searching(t, "keywords,limit,page\ncrowd 5,2,1\n")
		if _, _, err := s.at(t.Context(), &desk{}, nil); err != nil {
			t.Fatal(err)
		}
		s.input(t, "searches.csv", "keywords,limit\ncrowd 5,2\ncrowd 6,2\n")
		s.out = "offline"
		if _, _, err := s.at(t.Context(), nil, offline); err != nil {
			t.Fatal(err)
		}
		const want = "map[matched:2 skipped not_stored on page 1:1 skipped not_stored on page 2:1]"
		if got := fmt.Sprint(outcomes(t, s)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// A budget is never passed, whatever it is; pages that are being made hold
// what they can cost, and are waited for before a run stops for want of it.
// With as much again, the run continues and pays nothing twice.
func TestRemoteSearchBudgets(t *testing.T) {
	const list = "keywords,limit\ncrowd 5,3\ncrowd 2,3\ncrowd 1,3\ncrowd 7,3\nnobody,3\n"
	const all = 5 + 2 + 1 + 7
	for budget := int64(0); budget <= all+3; budget += 2 {
		in(t, func(t *testing.T) {
			s := searching(t, list)
			d := &desk{looks: 2}
			_, stats, err := s.at(t.Context(), d, func(r *purchase.Remote) { r.Budget.MaxCredits = budget })
			if d.spent > budget || stats.Credits != d.spent {
				t.Errorf("of %d credits %d spent, %d counted", budget, d.spent, stats.Credits)
			}
			switch {
			case err == nil && d.spent != all:
				t.Errorf("with %d credits it ends well after %d", budget, d.spent)
			case err != nil && !errors.Is(err, purchase.ErrBudget):
				t.Error(err)
			case err != nil && budget-d.spent >= 3: // a page fits
				t.Errorf("with %d credits it stops after %d", budget, d.spent)
			}
			first := d.spent
			_, stats, err = s.at(t.Context(), d, func(r *purchase.Remote) { r.Budget.MaxCredits = budget + 2 })
			if err != nil && !errors.Is(err, purchase.ErrBudget) || d.spent > budget+2 || err != nil && stats.EarlierCredits != first {
				t.Errorf("of %d credits %d spent over two runs, %+v, %v", budget+2, d.spent, stats, err)
			}
			if _, _, err = s.at(t.Context(), d, nil); err != nil || d.spent != all {
				t.Errorf("%d spent in the end, %v", d.spent, err)
			}
			once(t, d)
		})
	}
}

// Credits that a page may have cost count over restarts with what the page
// can cost, not with what a lead does.
func TestUncertainPagesCount(t *testing.T) {
	in(t, func(t *testing.T) {
		s := searching(t, "")
		reset := failure(resolution.KeywordToLead, resolution.Unavailable, 0, true)
		ctx, cancel := context.WithCancel(t.Context())
		d := &desk{start: refusing(1, reset, true)}
		s.input(t, "searches.csv", "keywords,limit,deanonymize\ncrowd 5,7,true\ncrowd 1,1,\n")
		s.rowsPerPart = 1 // one after the other
		d.poll = func(int) (error, bool) { cancel(); return nil, false }
		if _, _, err := s.at(ctx, d, nil); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		r, _, err := s.at(t.Context(), &desk{}, func(r *purchase.Remote) { r.Budget.MaxCredits = 14 })
		if r == nil || r.Report.Service.Budget.Credits < 14 || r.Report.Service.Budget.Credits > 15 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// eachOther is n searches of a page each.
func eachOther(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "crowd %d\n", i+1)
	}
	return b.String()
}

// A service that makes few pages at a time is asked for few at a time, and
// refuses next to nothing.
func TestFewPagesAtATime(t *testing.T) {
	in(t, func(t *testing.T) {
		s := searching(t, "keywords\n"+eachOther(25))
		d := &desk{looks: 2, most: 5}
		if _, _, err := s.at(t.Context(), d, nil); err != nil {
			t.Fatal(err)
		}
		once(t, d)
		if d.maxActive != 5 || d.refusals > 3 {
			t.Errorf("at most %d at a time, %d refusals of %d calls", d.maxActive, d.refusals, d.starts)
		}
	})
}

// Credits that a service holds back for the pages it is making are no want of
// credits: the run waits for them, and stops when a page alone is too much.
func TestCreditsHeldBack(t *testing.T) {
	in(t, func(t *testing.T) {
		s := searching(t, "keywords\n"+eachOther(12))
		d := &desk{looks: 2, balance: 2*1000 + 12*13/2}
		if _, _, err := s.at(t.Context(), d, nil); err != nil {
			t.Fatal(err)
		}
		once(t, d)
		if d.spent != 12*13/2 || d.maxActive != 2 {
			t.Errorf("%d spent, at most %d pages at a time", d.spent, d.maxActive)
		}
		s = searching(t, "keywords\n"+eachOther(12))
		d = &desk{looks: 2, balance: 999 + 12}
		if _, _, err := s.at(t.Context(), d, nil); !errors.Is(err, purchase.ErrNoCredits) || d.spent < 12 || d.spent > 11+12 {
			t.Errorf("%v, %d spent", err, d.spent)
		} else if !strings.Contains(err.Error(), "; for a page of limit 1000 up to 1000 credits are set aside at the service: give a smaller limit or more credits") {
			t.Errorf("%v does not say why", err)
		}
	})
}

// Nothing of a search is in what is printed or reported.
func TestNoKeywordIsTold(t *testing.T) {
	in(t, func(t *testing.T) {
		s := searching(t, "keywords,limit,cities\ncrowd 5 canary,2,Canaria\n")
		reset := failure(resolution.KeywordToLead, resolution.Unavailable, 0, true)
		_, _, err := s.at(t.Context(), &desk{start: refusing(2, reset, true)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"_manifest.json", "_report.json", "_report.html"} {
			text, err := os.ReadFile(filepath.Join(s.outDir(), name))
			if err != nil || strings.Contains(strings.ToLower(string(text)), "canar") {
				t.Errorf("%s tells what was searched for, or %v", name, err)
			}
		}
	})
}
