package runview

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/stats"
)

const (
	redrawEvery = 200 * time.Millisecond // the live line
	logEvery    = 10 * time.Second       // where there is no terminal
)

// Display is where progress is shown: a live line on a terminal, a log line
// every ten seconds elsewhere.
type Display struct {
	Terminal io.Writer // used when it is a terminal
	Log      *slog.Logger
	Quiet    bool // shows nothing
}

// Run shows the progress of a run until stop is called. Once ctx has ended, it
// says which calls the run still finishes, each within timeout.
func (d Display) Run(ctx context.Context, p *stats.Progress, timeout time.Duration) (stop func()) {
	w := &watcher{progress: p, started: time.Now(), finishing: finishing{interrupted: ctx.Done(), timeout: timeout}}
	switch {
	case d.Quiet:
		return w.finishing.warn(ctx, p, d.Log)
	case isTerminal(d.Terminal):
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
	if !isTerminal(d.Terminal) {
		return every(logEvery, func() {
			s := p.Snapshot()
			d.Log.Info("planning", "rows", s.Rows, "read", figures.Share(s.BytesRead, s.BytesTotal))
		})
	}
	return drawBar(d.Terminal, 24, func(int) string { return figures.Grouped(p.Snapshot().Rows) + " rows" },
		func() (done, of int64) { s := p.Snapshot(); return s.BytesRead, s.BytesTotal })
}

// Progress logs what is done until stop is called. about makes the pairs that a
// line holds.
func (d Display) Progress(about func() []any) (stop func()) {
	if d.Quiet {
		return func() {}
	}
	return every(logEvery, func() { d.Log.Info("progress", about()...) })
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width is how many characters fit on a line: of a terminal, or 100.
func Width(w io.Writer) int {
	if o, ok := w.(interface{ File() *os.File }); ok && o.File() != nil {
		f := o.File()
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return 100
}

// watcher looks at a run again and again.
type watcher struct {
	progress  *stats.Progress
	started   time.Time
	finishing finishing
}

// status is the run at a moment, in words.
func (w *watcher) status() status {
	now, s := time.Now(), w.progress.Snapshot()
	return status{snapshot: s, now: now, elapsed: now.Sub(w.started), recent: &w.progress.Recent}
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
	w.status()
	return every(logEvery, func() {
		l := w.status()
		about := []any{"rows", l.rows(), "done", l.done(), "eta", l.left(), "matched", l.matched()}
		if c := l.snapshot.Calls; c != nil {
			about = append(about, "calls", c.Calls, "calls_per_second", figures.Decimal(l.callRate()), "in_flight", c.InFlight, "credits", c.Credits, "waiting", whyWaiting(c, l.now))
		} else {
			about = append(about, "rows_per_second", l.rowRate())
		}
		log.Info("progress", append(about, "parts", l.snapshot.Parts)...)
	})
}

// live draws one line that fits the terminal: a bar where there is room for
// one, and the most important facts.
func (w *watcher) live(to io.Writer) (stop func()) {
	width := 24
	if w.status().snapshot.Calls != nil {
		width = 12 // there is more to say
	}
	return drawBar(to, width, func(columns int) string { return besideBar(w.text(columns), columns) },
		func() (done, of int64) { return w.status().progress() })
}

// text is what the live line says in so many columns.
func (w *watcher) text(columns int) string {
	s := w.status()
	if calls := w.finishing.calls(s.now, s.snapshot.Calls); calls != "" {
		return finishingText(calls, columns)
	}
	return fit(s.line(), columns)
}

// drawBar draws a bar of a width, with a text beside it that may take as many
// columns as it is given, until stop is called.
func drawBar(to io.Writer, width int, text func(columns int) string, progress func() (done, of int64)) (stop func()) {
	bars := mpb.New(mpb.WithOutput(to), mpb.WithWidth(width), mpb.WithRefreshRate(redrawEvery))
	bar := bars.New(0, mpb.BarStyle().Rbound("] "), mpb.BarRemoveOnComplete(), mpb.AppendDecorators(
		decor.Any(func(s decor.Statistics) string { return text(s.AvailableWidth) }),
	))
	stopMoving := every(redrawEvery, func() {
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
