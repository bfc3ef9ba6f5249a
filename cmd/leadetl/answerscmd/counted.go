package answerscmd

import (
	"context"
	"iter"

	"github.com/leadetl/leadetl/internal/progress"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// expect counts the answers that a filter selects, for who watches.
func expect(ctx context.Context, from *answers.Contents, f answers.Filter) error {
	work := progress.Of(ctx)
	if work == nil {
		return nil
	}
	stat, err := from.Stat(ctx)
	for _, t := range stat.Tallies {
		if f.Selects(t.Scope) {
			work.Expect(t.Answers)
		}
	}
	return err
}

// counted counts the answers of a sequence as done.
func counted(ctx context.Context, all iter.Seq2[answers.Item, error]) iter.Seq2[answers.Item, error] {
	return func(yield func(answers.Item, error) bool) {
		work := progress.Of(ctx)
		for i, err := range all {
			if !yield(i, err) {
				return
			}
			work.Done(1)
		}
	}
}
