package objectstate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/parquet/metadata"

	"github.com/leadetl/leadetl/pipeline/answers"
)

// Hashes are hashes of questions in ascending order. The order is checked,
// because a question that is passed over would be bought again.
type Hashes = iter.Seq2[answers.Hash, error]

// lookupSorted lists the answers that a manifest has to some questions, one per
// question. It reads the hashes of the row groups that may hold one of them, and
// the rest of a row group only if it does.
func (s *State) lookupSorted(ctx context.Context, of answers.Scope, m *manifest, some Hashes) items {
	return func(yield func(answers.Item, error) bool) {
		var generations []*searcher
		for _, files := range m.generations() {
			generations = append(generations, &searcher{state: s, ctx: ctx, of: of, files: files})
		}
		defer func() {
			for _, g := range generations {
				g.close()
			}
		}()
		last := answers.Hash{}
		for h, err := range some {
			if err == nil && h.Compare(last) < 0 {
				err = errors.New("questions are not in the order of their hashes")
			}
			last = h
			var best *answers.Item
			for _, g := range generations {
				if err != nil {
					break
				}
				var found *answers.Item
				if found, err = g.find(h); found != nil && (best == nil || !found.Received.Before(best.Received)) {
					best = found
				}
			}
			if err != nil {
				yield(answers.Item{}, err)
				return
			}
			if best != nil && !yield(*best, nil) {
				return
			}
		}
	}
}

// searcher finds questions, in the order of their hashes, in the files of one
// generation.
type searcher struct {
	state *State
	ctx   context.Context
	of    answers.Scope
	files []answerFile // not opened yet

	open   *openFile // nil before the first file and after the last
	group  int       // of the open file
	hashes []answers.Hash
	// records are the same rows; nil until one is found. Mostly few of them are
	// wanted: to make answers of all would take as long again as finding them.
	records []arrow.Record
}

// find returns the answer to a question, or nil.
func (r *searcher) find(h answers.Hash) (*answers.Item, error) {
	for len(r.hashes) == 0 || r.hashes[len(r.hashes)-1].Compare(h) < 0 {
		if more, err := r.next(h); !more || err != nil {
			return nil, err
		}
	}
	at, found := slices.BinarySearchFunc(r.hashes, h, answers.Hash.Compare)
	if !found {
		return nil, nil
	}
	if r.records == nil {
		err := r.open.readRecords(r.ctx, r.group, allColumns(true), func(rec arrow.Record) bool {
			rec.Retain()
			r.records = append(r.records, rec)
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	for _, rec := range r.records {
		if rows := int(rec.NumRows()); at >= rows {
			at -= rows
			continue
		}
		if i := itemOf(rec, at, positionsOf(allColumns(true))); i.Hash == h {
			i.Scope = r.of
			return &i, nil
		}
		break
	}
	return nil, fmt.Errorf("%w: %s", ErrDamaged, r.open.at)
}

// next reads the hashes of the next row group that ends at h or after it.
func (r *searcher) next(h answers.Hash) (more bool, err error) {
	r.hashes = nil
	r.release()
	for {
		if r.open == nil {
			for len(r.files) > 0 && r.files[0].Last < h.String() {
				r.files = r.files[1:]
			}
			if len(r.files) == 0 {
				return false, nil
			}
			if r.open, err = r.state.openFile(r.ctx, r.of, r.files[0]); err != nil {
				return false, err
			}
			r.files, r.group = r.files[1:], -1
		}
		for r.group++; r.group < r.open.groups(); r.group++ {
			if _, last, known := r.open.bounds(r.group); known && last.Compare(h) < 0 {
				continue
			}
			err := r.open.readGroup(r.ctx, r.group, []int{0}, func(i answers.Item) bool {
				r.hashes = append(r.hashes, i.Hash)
				return true
			})
			return err == nil, err
		}
		r.close()
	}
}

func (r *searcher) release() {
	for _, rec := range r.records {
		rec.Release()
	}
	r.records = nil
}

func (r *searcher) close() {
	r.release()
	if r.open != nil {
		r.open.close()
		r.open = nil
	}
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
