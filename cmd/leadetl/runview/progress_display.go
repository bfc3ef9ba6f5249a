package runview

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/stats"
)

const (
	redrawEvery = 200 * time.Millisecond // the live line
	logEvery    = 10 * time.Second       // without a terminal
)

// Display shows progress: a live line on a terminal, otherwise a log line every
// ten seconds.
type Display struct {
	Terminal io.Writer // used when it is a terminal
	Log      *slog.Logger
	Quiet    bool // shows nothing
}

// Run shows the progress of a run until stop is called. After ctx has ended, it
// shows which calls the run still finishes, each within timeout.
func (d Display) Run(ctx context.Context, p *stats.Progress, timeout time.Duration) (stop func()) {
	w := &watcher{progress: p, started: time.Now(), finishing: finishing{interrupted: ctx.Done(), timeout: timeout}}
	switch {
	case d.Quiet:
		return w.finishing.warn(ctx, p, d.Log)
	case cli.IsTerminal(d.Terminal):
		return w.live(d.Terminal)
	}
	stopWarning, stopLog := w.finishing.warn(ctx, p, d.Log), w.log(d.Log)
	return func() { stopLog(); stopWarning() }
}

// Plan shows how much of the input a plan has read until stop is called.
func (d Display) Plan(p *stats.Progress) (stop func()) {
	if d.Quiet {
		return func() {}
	}
	if !cli.IsTerminal(d.Terminal) {
		return Every(logEvery, func() {
			s := p.Snapshot()
			d.Log.Info("planning", "rows", s.Done.Rows, "read", figures.Share(s.BytesRead, s.BytesTotal))
		})
	}
	return drawBar(d.Terminal, 24, func(int) string { return figures.Plural(p.Snapshot().Done.Rows, "row") },
		func() (done, of int64) { s := p.Snapshot(); return s.BytesRead, s.BytesTotal })
}

// watcher reads the state of a run repeatedly.
type watcher struct {
	progress  *stats.Progress
	started   time.Time
	finishing finishing
}

// status returns the current status of the run.
func (w *watcher) status() status {
	now, s := time.Now(), w.progress.Snapshot()
	return status{snapshot: s, now: now, elapsed: now.Sub(w.started), recent: &w.progress.Recent}
}

// Every calls do at an interval until the returned function is called, which
// waits for the last call to end.
func Every(interval time.Duration, do func()) (stop func()) {
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
			case <-quit: // if both channels were ready
				return
			default:
				do()
			}
		}
	}()
	return func() { close(quit); <-done }
}

func (w *watcher) log(log *slog.Logger) (stop func()) {
	w.status()
	return Every(logEvery, func() {
		l := w.status()
		about := []any{"rows", l.rows(), "done", l.done(), "eta", l.left(), "matched", l.matched()}
		if c := l.snapshot.Calls; c != nil {
			about = append(about, "calls", c.Calls, "calls_per_second", figures.Decimal(l.callRate()), "in_flight", c.InFlight, "credits", c.Credits, "waiting", whyWaiting(c, l.now))
		} else {
			about = append(about, "rows_per_second", l.rowRate())
		}
		if n := l.snapshot.Workers; n > 0 {
			about = append(about, "workers", n)
		}
		log.Info("progress", append(about, "parts", l.snapshot.Parts)...)
	})
}

// live draws one line that fits the terminal: a bar if there is space, and the
// most important facts.
func (w *watcher) live(to io.Writer) (stop func()) {
	width := 24
	if w.status().snapshot.Calls != nil {
		width = 12 // the text needs more space
	}
	return drawBar(to, width, func(columns int) string { return besideBar(w.text(columns), columns) },
		func() (done, of int64) { return w.status().progress() })
}

// text returns the text of the live line for a width.
func (w *watcher) text(columns int) string {
	s := w.status()
	if calls := w.finishing.calls(s.now, s.snapshot.Calls); calls != "" {
		return finishingText(calls, columns)
	}
	return fit(s.line(), columns)
}

// drawBar draws a bar with a text beside it until stop is called. text receives
// the number of columns it may use.
func drawBar(to io.Writer, width int, text func(columns int) string, progress func() (done, of int64)) (stop func()) {
	bars := mpb.New(mpb.WithOutput(to), mpb.WithWidth(width), mpb.WithRefreshRate(redrawEvery))
	bar := bars.New(0, mpb.BarStyle().Rbound("] "), mpb.BarRemoveOnComplete(), mpb.AppendDecorators(
		decor.Any(func(s decor.Statistics) string { return text(s.AvailableWidth) }),
	))
	stopMoving := Every(redrawEvery, func() {
		done, of := progress()
		bar.SetTotal(max(of, done+1), false)
		bar.SetCurrent(done)
	})
	return func() {
		stopMoving()
		bar.Abort(true)
		bars.Wait()
	}
}

// shortestBar is the minimum width of a bar with its frame.
const shortestBar = 10

// besideBar pads the line if there is no space for a bar.
func besideBar(text string, width int) string {
	if room := width - len(text); room > 0 && room < shortestBar {
		return text + strings.Repeat(" ", room)
	}
	return text
}

// said is one fact on the live line. If there is not enough space, the fact
// with the highest rank is omitted.
type said struct {
	text string
	rank int
}

// fit joins facts to one line within a width.
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
