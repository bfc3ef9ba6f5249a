package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline"
)

func TestLogLineEveryTenSeconds(t *testing.T) {
	for after, want := range map[time.Duration]int{0: 0, 9 * time.Second: 0, 11 * time.Second: 1, 29 * time.Second: 2, 65 * time.Second: 6} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			w := &watcher{progress: &pipeline.Progress{}, started: time.Now()}
			stop := w.log(slog.New(slog.NewTextHandler(&out, nil)))
			time.Sleep(after) // the bubble's clock
			stop()
			time.Sleep(time.Minute) // nothing comes any more
			if got := strings.Count(out.String(), "msg=progress rows=0 "); got != want {
				t.Errorf("%d lines in %v, want %d", got, after, want)
			}
		})
	}
}

func TestProgressInWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watcher{started: time.Now()}
		time.Sleep(20 * time.Second)
		for _, c := range []struct {
			name                 string
			s                    pipeline.Snapshot
			done, eta, perSecond string
		}{
			{"nothing yet", pipeline.Snapshot{BytesTotal: 100}, "0%", "", "0"},
			{"a quarter", pipeline.Snapshot{BytesRead: 25, BytesTotal: 100, Rows: 100_000}, "25%", "about 1m0s left", "5,000"},
			{"all", pipeline.Snapshot{BytesRead: 100, BytesTotal: 100, Rows: 400}, "100%", "about 0s left", "20"},
			{"standard input", pipeline.Snapshot{BytesRead: 2_500_000, BytesTotal: -1}, "2.5 MB", "", "0"},
			{"an empty file", pipeline.Snapshot{}, "0 B", "", "0"},
		} {
			if done, eta, rate := w.done(c.s), w.eta(c.s), grouped(w.rate(c.s)); done != c.done || eta != c.eta || rate != c.perSecond {
				t.Errorf("%s: %q, %q, %q rows/s; want %q, %q, %q", c.name, done, eta, rate, c.done, c.eta, c.perSecond)
			}
		}
	})
}

func TestEveryWaitsForTheLastCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inside, calls int
		stop := every(time.Second, func() {
			inside++
			time.Sleep(10 * time.Second)
			inside--
			calls++
		})
		time.Sleep(1500 * time.Millisecond)
		stop()
		if inside != 0 || calls != 1 {
			t.Errorf("%d calls under way and %d done after stop", inside, calls)
		}
	})
}
