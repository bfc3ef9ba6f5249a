package runview

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/progress"
)

// bytesUnit is the unit of work that is counted in bytes.
const bytesUnit = "byte"

// Work shows how far a command is until stop is first called: what it does, the share that is
// done, how much, how fast, and the time left. unit is the noun for one of what is
// counted: row, answer, file, byte. The work is counted in the returned context.
func (d Display) Work(ctx context.Context, what, unit string) (counting context.Context, stop func()) {
	if d.Quiet {
		return ctx, func() {}
	}
	w := &workWatcher{what: what, unit: unit, started: time.Now()}
	counting = progress.In(ctx, &w.work)
	if cli.IsTerminal(d.Terminal) {
		return counting, sync.OnceFunc(drawBar(d.Terminal, 24, func(columns int) string { return fit(w.line(time.Now()), columns) },
			func() (done, of int64) { done, of, _ = w.work.Now(); return done, of }))
	}
	return counting, sync.OnceFunc(Every(logEvery, func() { w.log(d.Log, time.Now()) }))
}

// Watch is Work for a command without settings of its log. Without shown it shows nothing,
// for a command that prints on the same terminal.
func Watch(ctx context.Context, std cli.Streams, what, unit string, shown bool) (counting context.Context, stop func()) {
	return Display{Terminal: std.Err, Log: std.Log(), Quiet: !shown}.Work(ctx, what, unit)
}

// workWatcher reads the state of the work of a command repeatedly.
type workWatcher struct {
	work       progress.Work
	what, unit string
	started    time.Time
}

// line returns the facts beside the bar.
func (w *workWatcher) line(now time.Time) []said {
	done, of, step := w.work.Now()
	return []said{{cmp.Or(step, w.what), 0}, {w.share(done, of), 0}, {w.count(done), 2}, {w.rate(done, now), 3}, {w.left(done, of, now), 1}}
}

func (w *workWatcher) log(log *slog.Logger, now time.Time) {
	done, of, step := w.work.Now()
	about := []any{}
	if step != "" {
		about = append(about, "step", step)
	}
	if of > 0 {
		about = append(about, "share", w.share(done, of))
	}
	about = append(about, "done", w.count(done), "rate", w.rate(done, now))
	if left := w.left(done, of, now); left != "" {
		about = append(about, "left", left)
	}
	log.Info(w.what, about...)
}

// share is how much of the work is done, "" if the whole is not known.
func (w *workWatcher) share(done, of int64) string {
	if of <= 0 {
		return ""
	}
	return figures.Share(min(done, of), of)
}

func (w *workWatcher) count(done int64) string {
	if w.unit == bytesUnit {
		return figures.Size(done)
	}
	return figures.Plural(done, w.unit)
}

func (w *workWatcher) rate(done int64, now time.Time) string {
	perSecond := w.perSecond(done, now)
	if w.unit == bytesUnit {
		return figures.Size(int64(perSecond)) + "/s"
	}
	return figures.Plural(int64(perSecond), w.unit) + "/s"
}

// perSecond is the mean since the begin.
func (w *workWatcher) perSecond(done int64, now time.Time) float64 {
	return float64(done) / max(now.Sub(w.started).Seconds(), 0.001)
}

// left is the time that the rest takes at this rate, "" while that cannot be told.
func (w *workWatcher) left(done, of int64, now time.Time) string {
	if of <= 0 || done <= 0 || now.Sub(w.started) < tooSoon {
		return ""
	}
	left := time.Duration(float64(max(of-done, 0)) / w.perSecond(done, now) * float64(time.Second))
	return figures.Compact(left) + " left"
}
