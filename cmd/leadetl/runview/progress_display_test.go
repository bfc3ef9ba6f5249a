package runview

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline/stats"
)

func TestLogLineEveryTenSeconds(t *testing.T) {
	for after, want := range map[time.Duration]int{0: 0, 9 * time.Second: 0, 11 * time.Second: 1, 29 * time.Second: 2, 65 * time.Second: 6} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			w := &watcher{progress: &stats.Progress{}, started: time.Now()}
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

func TestEveryWaitsForTheLastCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inside, calls int
		stop := Every(time.Second, func() {
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
