package main

import (
	"log/slog"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/stats"
)

// watchPlan shows how far the reading is until stop is called: a live line on
// a terminal, a log line every ten seconds elsewhere.
func (f *runFlags) watchPlan(p *stats.Progress, log *slog.Logger, std cli.Streams) (stop func()) {
	if f.quiet {
		return func() {}
	}
	if !isTerminal(std.Err) {
		return every(logEvery, func() {
			s := p.Snapshot()
			log.Info("planning", "rows", s.Rows, "read", figures.Share(s.BytesRead, s.BytesTotal))
		})
	}
	bars := mpb.New(mpb.WithOutput(std.Err), mpb.WithWidth(24), mpb.WithRefreshRate(redrawEvery))
	bar := bars.New(0, mpb.BarStyle().Rbound("] "), mpb.BarRemoveOnComplete(), mpb.AppendDecorators(
		decor.Any(func(decor.Statistics) string { return figures.Grouped(p.Snapshot().Rows) + " rows" }),
	))
	stopMoving := every(redrawEvery, func() {
		s := p.Snapshot()
		bar.SetTotal(max(s.BytesTotal, s.BytesRead+1), false)
		bar.SetCurrent(s.BytesRead)
	})
	return func() {
		stopMoving()
		bar.Abort(true)
		bars.Wait()
	}
}
