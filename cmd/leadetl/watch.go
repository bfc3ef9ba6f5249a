package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/leadetl/leadetl/pipeline"
)

const (
	redrawEvery = 200 * time.Millisecond // the live line
	logEvery    = 10 * time.Second       // where there is no terminal
)

// watch shows the progress of a run until stop is called: a live line on a
// terminal, a log line every ten seconds elsewhere.
func (f *runFlags) watch(p *pipeline.Progress, log *slog.Logger, io streams) (stop func()) {
	if f.quiet {
		return func() {}
	}
	w := &watcher{progress: p, started: time.Now()}
	if isTerminal(io.err) {
		return w.live(io.err)
	}
	return w.log(log)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

type watcher struct {
	progress *pipeline.Progress
	started  time.Time
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
	return every(logEvery, func() {
		s := w.progress.Snapshot()
		log.Info("progress", "rows", s.Rows, "done", w.done(s), "eta", w.eta(s),
			"matched", share(s.Matched, s.Rows), "rows_per_second", w.rate(s), "parts", s.Parts)
	})
}

// live draws one line: how far, how many rows, match rate, speed, time left.
func (w *watcher) live(to io.Writer) (stop func()) {
	bars := mpb.New(mpb.WithOutput(to), mpb.WithWidth(24), mpb.WithRefreshRate(redrawEvery))
	text := func(format func(pipeline.Snapshot) string) decor.Decorator {
		return decor.Any(func(decor.Statistics) string { return format(w.progress.Snapshot()) })
	}
	bar := bars.New(0, mpb.BarStyle().Rbound("] "), mpb.BarRemoveOnComplete(), mpb.AppendDecorators(
		text(w.done),
		text(func(s pipeline.Snapshot) string { return fmt.Sprintf("  %s rows", grouped(s.Rows)) }),
		text(func(s pipeline.Snapshot) string { return "  matched " + share(s.Matched, s.Rows) }),
		text(func(s pipeline.Snapshot) string { return fmt.Sprintf("  %s rows/s", grouped(w.rate(s))) }),
		text(func(s pipeline.Snapshot) string { return "  " + w.eta(s) }),
	))
	stopMoving := every(redrawEvery, func() {
		s := w.progress.Snapshot()
		bar.SetTotal(max(s.BytesTotal, s.BytesRead+1), false)
		bar.SetCurrent(s.BytesRead)
	})
	return func() {
		stopMoving()
		bar.Abort(true)
		bars.Wait()
	}
}

// done is the share of the input that is read.
func (w *watcher) done(s pipeline.Snapshot) string {
	if s.BytesTotal <= 0 {
		return size(s.BytesRead)
	}
	return fmt.Sprintf("%d%%", 100*s.BytesRead/s.BytesTotal)
}

func (w *watcher) rate(s pipeline.Snapshot) int64 {
	return int64(float64(s.Rows) / max(time.Since(w.started).Seconds(), 1e-9))
}

// eta is the time left at the pace so far.
func (w *watcher) eta(s pipeline.Snapshot) string {
	if s.BytesTotal <= 0 || s.BytesRead == 0 {
		return ""
	}
	elapsed := time.Since(w.started)
	left := time.Duration(float64(elapsed) * float64(s.BytesTotal-s.BytesRead) / float64(s.BytesRead))
	return "about " + left.Round(time.Second).String() + " left"
}
