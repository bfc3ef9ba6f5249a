package main

import (
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/stats"
)

const (
	redrawEvery = 200 * time.Millisecond // the live line
	logEvery    = 10 * time.Second       // where there is no terminal
)

// watch shows the progress of a run until stop is called: a live line on a
// terminal, a log line every ten seconds elsewhere.
func (f *runFlags) watch(p *stats.Progress, log *slog.Logger, std cli.Streams) (stop func()) {
	if f.quiet {
		return func() {}
	}
	w := &watcher{progress: p, started: time.Now()}
	if isTerminal(std.Err) {
		return w.live(std.Err)
	}
	return w.log(log)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// watcher looks at a run again and again.
type watcher struct {
	progress *stats.Progress
	started  time.Time
	history  history
}

// look is a run at a moment, in words.
func (w *watcher) look() look {
	now, s := time.Now(), w.progress.Snapshot()
	w.history.note(now, s)
	return look{Snapshot: s, now: now, elapsed: now.Sub(w.started), history: &w.history}
}

// every calls do until the returned function is called, which waits for the
// last call to end.
func every(interval time.Duration, do func()) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-quit:
				return
			}
			select {
			case <-quit: // both were there
				return
			default:
				do()
			}
		}
	}()
	return func() { close(quit); <-done }
}

func (w *watcher) log(log *slog.Logger) (stop func()) {
	w.look()
	return every(logEvery, func() {
		l := w.look()
		about := []any{"rows", l.rows(), "done", l.done(), "eta", l.left(), "matched", l.matched()}
		if c := l.Calls; c != nil {
			about = append(about, "calls", c.Calls, "calls_per_second", figures.Decimal(l.callRate()), "in_flight", c.InFlight, "credits", c.Credits, "waiting", whyWaiting(c, l.now))
		} else {
			about = append(about, "rows_per_second", l.rowRate())
		}
		log.Info("progress", append(about, "parts", l.Parts)...)
	})
}

// live draws one line that fits the terminal: a bar where there is room for
// one, and what there is to say, the most important of it.
func (w *watcher) live(to io.Writer) (stop func()) {
	width := 24
	if w.look().Calls != nil {
		width = 12 // there is more to say
	}
	bars := mpb.New(mpb.WithOutput(to), mpb.WithWidth(width), mpb.WithRefreshRate(redrawEvery))
	bar := bars.New(0, mpb.BarStyle().Rbound("] "), mpb.BarRemoveOnComplete(), mpb.AppendDecorators(
		decor.Any(func(s decor.Statistics) string {
			return besideBar(fit(w.look().line(), s.AvailableWidth), s.AvailableWidth)
		}),
	))
	stopMoving := every(redrawEvery, func() {
		done, of := w.look().progress()
		bar.SetTotal(max(of, done+1), false)
		bar.SetCurrent(done)
	})
	return func() {
		stopMoving()
		bar.Abort(true)
		bars.Wait()
	}
}

// shortestBar is the least that a bar takes to be one, with what is around it.
const shortestBar = 10

// besideBar fills the line up where there is no room for a bar.
func besideBar(text string, width int) string {
	if room := width - len(text); room > 0 && room < shortestBar {
		return text + strings.Repeat(" ", room)
	}
	return text
}

// said is one thing that the live line says. When there is no room for all,
// that of the highest rank is left out.
type said struct {
	text string
	rank int
}

// fit puts what is said on one line of so many columns.
func fit(line []said, width int) string {
	for {
		var texts []string
		last, most := -1, 0
		for i, s := range line {
			if s.text == "" {
				continue
			}
			texts = append(texts, s.text)
			if s.rank >= most {
				last, most = i, s.rank
			}
		}
		text := strings.Join(texts, "  ")
		if len(text) <= width || len(texts) <= 1 {
			return text
		}
		line[last].text = ""
	}
}
