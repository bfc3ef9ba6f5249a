package pipeline

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
)

// fewAnswers are loaded without looking which of them the run needs. That takes 1.3
// seconds of processor time, as reading two million rows does, and 60 MB of disk.
const fewAnswers = 100_000

// copiedRows bounds the rows whose answers are copied to the local disk at a time. Each
// takes some 0.6 kB there.
const copiedRows = 4 << 20

// answerGroups copies the answers to the rows of some parts at a time, if they are stored
// elsewhere: those that are stored before the parts are made, and those that are bought
// meanwhile. A run whose rows are not questions, or can be read only once, is one group.
type answerGroups struct {
	decision *begin.Decision
	parts    int // in a group; 0 for all
	until    int // the group at work ends before this part; 0 before the first
}

// loadAnswers returns the groups of the answers to a run. If there is only one, it is loaded.
func loadAnswers(ctx context.Context, d *begin.Decision) (*answerGroups, error) {
	g := &answerGroups{decision: d}
	listens := func(r *purchase.Remote) bool { return r.Deliveries != nil }
	if remotes := d.Run.Remotes(); len(remotes) > 0 && g.knowsQuestions() && !slices.ContainsFunc(remotes, listens) {
		if _, elsewhere := remotes[0].Answers.(purchase.Loader); elsewhere {
			g.parts = max(copiedRowsOf(d)/d.Run.Job.RowsPerPart, 1)
			return g, nil
		}
	}
	return g, g.Load(ctx, 0)
}

func copiedRowsOf(d *begin.Decision) int { return cmp.Or(d.Run.CopiedRows, copiedRows) }

// knowsQuestions reports whether the input says, before the first answer, what is asked.
func (g *answerGroups) knowsQuestions() bool {
	d := g.decision
	return d.AsksRows() && !d.Run.Input.ReadOnce() && !d.Run.Order.Verifies()
}

// EndsBefore reports whether a part is the first to make of the next group.
func (g *answerGroups) EndsBefore(number int) bool { return g.parts > 0 && number >= g.until }

// Load loads the stored answers to the questions of the group that begins with a part, in
// the place of those of the group before. It reads the input first, as a plan does, if that
// saves loading what others bought. Pages of a search are questions that follow from
// answers, and so are values to verify, so these load everything; and so does a run whose input
// can be read only once.
func (g *answerGroups) Load(ctx context.Context, first int) (err error) {
	d := g.decision
	remotes := d.Run.Remotes()
	if g.until > 0 {
		if err := renew(ctx, remotes); err != nil {
			return err
		}
	}
	of := job.Window{First: first, Last: g.parts == 0}
	if g.parts > 0 {
		g.until = first - first%g.parts + g.parts
		of.Parts = g.until - first
	}
	var large []*purchase.Remote // of several, each may have answers of its own elsewhere
	stored := int64(0)
	for _, remote := range remotes {
		n := remote.Unloaded()
		if n > int64(min(fewAnswers, copiedRowsOf(d))) && g.knowsQuestions() {
			large, stored = append(large, remote), stored+n
		} else if err := remote.Load(ctx, nil); err != nil {
			return err
		}
	}
	if len(large) == 0 {
		return nil
	}
	d.Run.Log.Info("reading the input, to load only those stored answers that it asks for", "stored", stored, "from_part", first)
	run, questions := *d.Run, distinct.New(d.Run.StateDir)
	defer func() { err = errors.Join(err, questions.Close()) }()
	run.Progress = &stats.Progress{} // the rows are not done yet
	reading := *d
	reading.Run = &run
	if _, err := planRows(ctx, &reading, of, questions, nil, nil); err != nil {
		return err
	}
	for _, remote := range large {
		if err := remote.Load(ctx, hashesOf(ctx, questions)); err != nil {
			return err
		}
	}
	return nil
}

// renew drops the answers that are copied.
func renew(ctx context.Context, remotes []*purchase.Remote) error {
	for _, remote := range remotes {
		if loader, elsewhere := remote.Answers.(purchase.Loader); elsewhere {
			if err := loader.Renew(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// hashesOf yields the hashes of questions in ascending order.
func hashesOf(ctx context.Context, questions *distinct.Set) iter.Seq2[answers.Hash, error] {
	return func(yield func(answers.Hash, error) bool) {
		for h, err := range questions.Sorted(ctx) {
			if !yield(h, err) {
				return
			}
		}
	}
}
