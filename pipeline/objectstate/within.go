package objectstate

import (
	"context"
	"iter"

	"github.com/apache/arrow/go/v17/parquet/metadata"

	"github.com/leadetl/leadetl/pipeline/answers"
)

// Within lists the answers to the questions with hashes from first to last, both
// included, in the order of their hashes, as the newest manifest has them.
// Changes that are still in the log are not among them. Without bodies, an
// answer has its hash, outcome and time alone.
func (s *State) Within(ctx context.Context, of answers.Scope, first, last answers.Hash, bodies bool) iter.Seq2[answers.Item, error] {
	columns := []int{0, 2, 6} // hash, outcome, received_at
	if bodies {
		columns = allColumns(true)
	}
	return func(yield func(answers.Item, error) bool) {
		m, err := s.latest(ctx, of)
		if err != nil {
			yield(answers.Item{}, err)
			return
		}
		var inputs []items
		for _, files := range m.generations() {
			inputs = append(inputs, func(yield func(answers.Item, error) bool) {
				for _, f := range files {
					if f.Last < first.String() || f.First > last.String() {
						continue
					}
					if more, err := s.readWithin(ctx, of, f, first, last, columns, yield); err != nil {
						yield(answers.Item{}, err)
						return
					} else if !more {
						return
					}
				}
			})
		}
		merge(inputs)(yield)
	}
}

// readWithin reads the row groups of a file that may hold a hash of a range.
func (s *State) readWithin(ctx context.Context, of answers.Scope, about answerFile, first, last answers.Hash, columns []int,
	yield func(answers.Item, error) bool) (more bool, err error) {
	f, err := s.openFile(ctx, of, about)
	if err != nil {
		return false, err
	}
	defer f.close()
	more = true
	for group := 0; more && group < f.groups(); group++ {
		if from, to, known := f.bounds(group); known && (to.Compare(first) < 0 || from.Compare(last) > 0) {
			continue
		}
		err := f.readGroup(ctx, group, columns, func(i answers.Item) bool {
			switch {
			case i.Hash.Compare(first) < 0:
			case i.Hash.Compare(last) > 0:
				more = false
			default:
				i.Scope = of
				more = yield(i, nil)
			}
			return more
		})
		if err != nil {
			return false, err
		}
	}
	return more, nil
}

// bounds returns the lowest and the highest hash of a row group, if its
// statistics have them.
func (f *openFile) bounds(group int) (first, last answers.Hash, known bool) {
	chunk, err := f.parquet.MetaData().RowGroup(group).ColumnChunk(0)
	if err != nil {
		return first, last, false
	}
	stats, err := chunk.Statistics()
	if err != nil || stats == nil || !stats.HasMinMax() {
		return first, last, false
	}
	hashes, ok := stats.(*metadata.FixedLenByteArrayStatistics)
	if !ok || len(hashes.Min()) != len(first) || len(hashes.Max()) != len(last) {
		return first, last, false
	}
	return answers.Hash(hashes.Min()), answers.Hash(hashes.Max()), true
}
