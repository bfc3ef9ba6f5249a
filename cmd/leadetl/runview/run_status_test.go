package runview

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/sinks"
)

func TestProgressInWords(t *testing.T) {
	for _, c := range []struct {
		name                  string
		s                     stats.Snapshot
		done, left, perSecond string
	}{
		{"nothing yet", stats.Snapshot{BytesTotal: 100}, "0%", "", "0"},
		{"a quarter", stats.Snapshot{BytesRead: 25, BytesTotal: 100, RowsRead: 100_000, Done: sinks.Totals{Rows: 100_000}}, "25%", "1m left", "5,000"},
		{"a quarter, of which half was there", stats.Snapshot{BytesRead: 25, BytesTotal: 100, RowsRead: 100_000, Done: sinks.Totals{Rows: 100_000}, Known: 50_000}, "25%", "2m left", "2,500"},
		{"all", stats.Snapshot{BytesRead: 100, BytesTotal: 100, AllRead: true, RowsRead: 400, Done: sinks.Totals{Rows: 400}}, "100%", "0s left", "20"},
		{"standard input", stats.Snapshot{BytesRead: 2_500_000, BytesTotal: -1}, "2.5 MB", "", "0"},
		{"an empty file", stats.Snapshot{}, "0 B", "", "0"},
		{"years", stats.Snapshot{BytesRead: 1, BytesTotal: 1e9}, "0%", "", "0"},
		{
			"everything read, an eighth answered",
			stats.Snapshot{BytesRead: 100, BytesTotal: 100, AllRead: true, RowsRead: 8000, Calls: &stats.CallSnapshot{Asked: 4000, Closed: 1000}},
			"12%", "2m20s left", "0",
		},
		{
			"half read, an eighth of it answered, duplicates among it",
			stats.Snapshot{BytesRead: 50, BytesTotal: 100, RowsRead: 8000, Calls: &stats.CallSnapshot{Asked: 4000, Closed: 500, Duplicates: 4000}},
			"6%", "5m left", "0",
		},
		{
			"searches",
			stats.Snapshot{BytesRead: 100, BytesTotal: 100, AllRead: true, RowsRead: 10, Done: sinks.Totals{Rows: 5000, Searches: 5}, Searching: true, Calls: &stats.CallSnapshot{Asked: 70, Closed: 60}},
			"50%", "20s left", "250",
		},
		{
			"a service that is down",
			stats.Snapshot{BytesRead: 100, BytesTotal: 100, AllRead: true, RowsRead: 8000, Calls: &stats.CallSnapshot{Asked: 4000, Closed: 1000, Reason: "dead"}},
			"12%", "", "0",
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			started := time.Now()
			var recent stats.Recent
			none := stats.Snapshot{Done: sinks.Totals{Rows: c.s.Known}, Known: c.s.Known, BytesTotal: c.s.BytesTotal}
			recent.Note(time.Now(), none)
			time.Sleep(20 * time.Second)
			recent.Note(time.Now(), c.s)
			l := status{snapshot: c.s, now: time.Now(), elapsed: time.Since(started), recent: &recent}
			if done, left, rate := l.done(), l.left(), figures.Grouped(l.rowRate()); done != c.done || left != c.left || rate != c.perSecond {
				t.Errorf("%s: %q, %q, %q rows/s; want %q, %q, %q", c.name, done, left, rate, c.done, c.left, c.perSecond)
			}
		})
	}
}

// TestTimeLeftForgetsWhatIsOver: after a rush of stored answers come calls.
func TestTimeLeftForgetsWhatIsOver(t *testing.T) {
	var h stats.Recent
	now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	s := stats.Snapshot{BytesRead: 1, BytesTotal: 1, RowsRead: 100_000, Calls: &stats.CallSnapshot{}}
	for second := range 200 {
		switch {
		case second < 5:
			s.Done.Rows += 10_000 // from the store
		case second < 105:
			s.Done.Rows += 20
			s.Calls.Calls += 25
		}
		h.Note(now.Add(time.Duration(second)*time.Second), s)
		l := status{snapshot: s, now: now.Add(time.Duration(second)*time.Second + 200*time.Millisecond), recent: &h}
		if want := "40m left"; second == 90 && l.left() != want { // 48,280 rows at 20 a second
			t.Errorf("after the rush %q, want %q", l.left(), want)
		}
		if second == 90 && (l.callRate() < 24 || l.callRate() > 26) {
			t.Errorf("%v calls/s, want about 25", l.callRate())
		}
	}
	now = now.Add(200 * time.Second)
	if l := (status{snapshot: s, now: now, recent: &h}); l.left() != "" || l.callRate() != 0 {
		t.Errorf("after a minute of nothing %q and %v calls/s", l.left(), l.callRate())
	}
	if span := h.Span(now); span > 70*time.Second {
		t.Errorf("marks of %v are kept", span)
	}
}

// TestTimeLeftIsOfCalls: rows that need no call have no part in the speed of calls,
// whenever they come. Ten batches of 10,000 rows, 20 calls a second.
func TestTimeLeftIsOfCalls(t *testing.T) {
	const batch, rows = 10_000, 100_000
	for _, c := range []struct {
		name string
		// of the questions of a batch, how many are stored, and may not be asked;
		// and how many rows have a question of another row, or none.
		stored, withheld, duplicates, unasked func(batch int) int64
		begun                                 int // batches that were begun; the last is at work
		pause                                 int // seconds before it is
		want                                  string
	}{
		{name: "all calls", begun: 1, want: "1h22m left"}, // 99,000 calls
		{name: "after a rush of stored answers", begun: 6, want: "41m left", // 49,000 calls
			stored: func(n int) int64 { return batch * int64(b2i(n < 5)) }},
		{name: "after rows that may not be asked", begun: 6, want: "41m left",
			withheld: func(n int) int64 { return batch * int64(b2i(n < 5)) }},
		{name: "every second answer is stored", begun: 6, pause: 90, want: "20m left", // 4,000 and 20,000 calls
			stored: func(int) int64 { return batch / 2 }},
		{name: "three rows of four share a question", begun: 1, want: "20m left", // 1,500 and 22,500 calls
			duplicates: func(int) int64 { return 3 * batch / 4 }},
		{name: "three rows of four ask nothing", begun: 1, want: "20m left",
			unasked: func(int) int64 { return 3 * batch / 4 }},
	} {
		of := func(f func(int) int64, n int) int64 {
			if f == nil {
				return 0
			}
			return f(n)
		}
		now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
		var recent stats.Recent
		s := stats.Snapshot{BytesTotal: rows, Calls: &stats.CallSnapshot{}}
		note := func() { recent.Note(now, s); copied := *s.Calls; s.Calls = &copied }
		note()
		for n := range c.begun { // a second each
			now = now.Add(time.Second)
			calls := s.Calls
			stored, withheld := of(c.stored, n), of(c.withheld, n)
			duplicates, unasked := of(c.duplicates, n), of(c.unasked, n)
			s.RowsRead, s.BytesRead = s.RowsRead+batch, s.BytesRead+batch
			calls.Asked, calls.Duplicates, s.Unasked = calls.Asked+batch-duplicates-unasked, calls.Duplicates+duplicates, s.Unasked+unasked
			calls.Stored, s.Withheld, calls.Closed = calls.Stored+stored, s.Withheld+withheld, calls.Closed+stored+withheld
			if n < c.begun-1 { // all calls of the batch in this second, before the last minute
				calls.Closed += batch - duplicates - unasked - stored - withheld
				s.Done.Rows += batch
			}
			note()
		}
		for range c.pause { // the batches before are no longer of the last minute
			now = now.Add(time.Second)
			note()
		}
		for second := range 50 { // the calls of the last batch
			now = now.Add(time.Second)
			s.Calls.Closed += 1000 / 50
			note()
			if l := (status{snapshot: s, now: now, recent: &recent}); second == 49 && l.left() != c.want {
				t.Errorf("%s: %q, want %q", c.name, l.left(), c.want)
			}
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestLiveLineFits(t *testing.T) {
	now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	big := func(reason pace.Reason, more func(*stats.CallSnapshot)) status {
		l := status{
			snapshot: stats.Snapshot{
				Done: sinks.Totals{Rows: 12_345_678, Matched: 10_000_000}, RowsRead: 99_000_000, BytesRead: 1, BytesTotal: 1,
				Calls: &stats.CallSnapshot{Credits: 23_456_789, Calls: 1_000_000, Rate: 1234, Reason: string(reason), InFlight: 64, Until: now.Add(3000 * time.Second)},
			},
			now: now, recent: &stats.Recent{},
		}
		from := l.snapshot
		from.Done.Rows -= 100_000
		from.Calls = &stats.CallSnapshot{Calls: 900_000}
		l.recent.Note(now.Add(-10*time.Second), from)
		l.recent.Note(now, l.snapshot)
		if more != nil {
			more(l.snapshot.Calls)
		}
		return l
	}
	for _, c := range []struct {
		name  string
		l     status
		width int
		want  string
	}{
		{"all of it", big(pace.Rate, nil), 120, "12%  12,345,678 rows  81.0% matched  10,000 calls/s  23.5M credits  2h24m left  rate 1,234/s"},
		{"80 columns", big(pace.Rate, nil), 80, "12%  12,345,678 rows  81.0% matched  10,000 calls/s  23.5M credits  2h24m left"},
		{"60 columns", big(pace.Rate, nil), 60, "12%  12,345,678 rows  23.5M credits  2h24m left"},
		{"40 columns", big(pace.Rate, nil), 40, "12%  12,345,678 rows  2h24m left"},
		{"8 columns", big(pace.Rate, nil), 8, "12%"},
		{"at the service's word", big(pace.RetryAfter, nil), 80, "12%  12,345,678 rows  2h24m left  waiting: the service asked for 50m"},
		{
			"for longer than we wait", big(pace.RetryAfter, func(c *stats.CallSnapshot) { c.AskedToWait = 26 * time.Hour }), 80,
			"12%  2h24m left  waiting: the service asked for 1d2h, next call in 50m",
		},
		{
			"down", big(pace.Dead, func(c *stats.CallSnapshot) {
				c.InFlight, c.DeadSince, c.Until = 0, now.Add(-130*time.Second), now.Add(7500*time.Millisecond)
			}), 80,
			"12%  12,345,678 rows  23.5M credits  service down 2m10s, next probe in 8s",
		},
		{
			"probing", big(pace.Dead, func(c *stats.CallSnapshot) { c.InFlight, c.DeadSince = 1, now.Add(-130*time.Second) }), 80,
			"12%  12,345,678 rows  81.0% matched  23.5M credits  service down 2m10s, probing",
		},
		{"spread", big(pace.Spread, nil), 120, "12%  12,345,678 rows  81.0% matched  10,000 calls/s  23.5M credits  2h24m left  rate 1,234/s, the service's limit"},
		{"nothing in the way", big(pace.Concurrency, nil), 120, "12%  12,345,678 rows  81.0% matched  10,000 calls/s  23.5M credits  2h24m left"},
		{
			"answers that come later", big(pace.Free, func(c *stats.CallSnapshot) { c.InFlight, c.Parked = 0, 12 }), 120,
			"12%  12,345,678 rows  81.0% matched  10,000 calls/s  23.5M credits  2h24m left  waiting: 12 answers to come",
		},
		{
			"no rows yet", status{
				snapshot: stats.Snapshot{RowsRead: 4096, BytesRead: 9, BytesTotal: 9, Calls: &stats.CallSnapshot{Asked: 4096, Closed: 40, Matched: 30}},
				now:      now, recent: &stats.Recent{},
			}, 80, "0%  40 rows  75.0% matched  0 calls/s  0 credits",
		},
		{
			"one of each", status{
				snapshot: stats.Snapshot{RowsRead: 4, BytesRead: 9, BytesTotal: 9, Calls: &stats.CallSnapshot{Asked: 4, Closed: 1, Matched: 1, Credits: 1}},
				now:      now, recent: &stats.Recent{},
			}, 80, "25%  1 row  100.0% matched  0 calls/s  1 credit",
		},
		{
			"no service", status{snapshot: stats.Snapshot{Done: sinks.Totals{Rows: 5, Matched: 4}, RowsRead: 5, BytesRead: 1, BytesTotal: 2}, elapsed: time.Second, recent: &stats.Recent{}},
			80, "50%  5 rows  80.0% matched  5 rows/s",
		},
	} {
		if got := fit(c.l.line(), c.width); got != c.want {
			t.Errorf("%s:\n got %q, %d columns\nwant %q", c.name, got, len(got), c.want)
		}
	}
}

func TestBesideBar(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"12%  5 rows", 30, "12%  5 rows"},
		{"12%  5 rows", 21, "12%  5 rows"},
		{"12%  5 rows", 20, "12%  5 rows         "},
		{"12%  5 rows", 11, "12%  5 rows"},
		{"12%  5 rows", 5, "12%  5 rows"}, // the bar's library cuts it
	} {
		if got := besideBar(c.text, c.width); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

// TestLogLineOfAService has what the live line has.
func TestLogLineOfAService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := &stats.Progress{Calls: &stats.CallCounters{}}
		w := &watcher{progress: p, started: time.Now()}
		p.Calls.Paced(func() pace.Snapshot {
			return pace.Snapshot{Reason: pace.RetryAfter, InFlight: 2, Until: time.Now().Add(30 * time.Second)}
		})
		defer stats.Record(p).Stop()
		stop := w.log(slog.New(slog.NewTextHandler(&out, nil)))
		for range 25 {
			p.Calls.Called(time.Second, stats.CallAnswered)
		}
		p.Calls.Settled(7)
		time.Sleep(logEvery + time.Second)
		stop()
		for _, want := range []string{" calls=25 ", " calls_per_second=2.5 ", " in_flight=2 ", " credits=7 ", ` waiting="waiting: the service asked for 30s" `} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no%sin %s", want, out.String())
			}
		}
	})
}
