package objectstate

import (
	"context"
	"iter"

	"github.com/leadetl/leadetl/pipeline/answers"
)

type items = iter.Seq2[answers.Item, error]

// cursor is a sorted input of a merge.
type cursor struct {
	next func() (answers.Item, error, bool)
	stop func()
	item answers.Item
	more bool
}

func newCursor(from items) (*cursor, error) {
	c := &cursor{}
	c.next, c.stop = iter.Pull2(from)
	return c, c.advance()
}

func (c *cursor) advance() (err error) {
	c.item, err, c.more = c.next()
	return err
}

// merge merges sorted answers. If several inputs answer one question, it yields
// the newest answer, or the one of the later input if they have the same age.
func merge(inputs []items) items {
	if len(inputs) == 1 {
		return inputs[0]
	}
	return func(yield func(answers.Item, error) bool) {
		cursors := make([]*cursor, 0, len(inputs))
		defer func() {
			for _, c := range cursors {
				c.stop()
			}
		}()
		for _, input := range inputs {
			c, err := newCursor(input)
			cursors = append(cursors, c)
			if err != nil {
				yield(answers.Item{}, err)
				return
			}
		}
		for {
			best := newestOfFirst(cursors)
			if best == nil {
				return
			}
			if !yield(*best, nil) {
				return
			}
			for _, c := range cursors {
				if c.more && c.item.Hash == best.Hash {
					if err := c.advance(); err != nil {
						yield(answers.Item{}, err)
						return
					}
				}
			}
		}
	}
}

// newestOfFirst returns the newest answer with the lowest hash; nil at the end
// of all inputs.
func newestOfFirst(cursors []*cursor) *answers.Item {
	var best *answers.Item
	for _, c := range cursors {
		if !c.more {
			continue
		}
		order := -1
		if best != nil {
			order = c.item.Hash.Compare(best.Hash)
		}
		if order < 0 || order == 0 && !c.item.Received.Before(best.Received) {
			best = new(c.item)
		}
	}
	return best
}

// sorted lists the answers that a manifest names, one per question, ordered by
// their hashes.
func (s *State) sorted(ctx context.Context, of answers.Scope, files []answerFile, bodies bool) items {
	var inputs []items
	for _, generation := range (&manifest{Files: files}).generations() {
		inputs = append(inputs, func(yield func(answers.Item, error) bool) {
			for _, f := range generation {
				for i, err := range s.readFile(ctx, of, f, bodies) {
					if !yield(i, err) || err != nil {
						return
					}
				}
			}
		})
	}
	return merge(inputs)
}

// newer yields those answers of some that are newer than the answers in there.
// It calls see with every answer of both.
func newer(some, there items, see func(answers.Item)) items {
	return func(yield func(answers.Item, error) bool) {
		old, err := newCursor(there)
		defer func() { old.stop() }()
		// pass passes on the answers of there that come before a hash; nil
		// passes all.
		pass := func(h *answers.Hash) error {
			for ; err == nil && old.more && (h == nil || old.item.Hash.Compare(*h) < 0); err = old.advance() {
				see(old.item)
			}
			return err
		}
		for i, err := range some {
			if err == nil {
				see(i)
				err = pass(&i.Hash)
			}
			if err != nil {
				yield(answers.Item{}, err)
				return
			}
			if old.more && old.item.Hash == i.Hash && !old.item.Received.Before(i.Received) {
				continue
			}
			if !yield(i, nil) {
				return
			}
		}
		if err := pass(nil); err != nil {
			yield(answers.Item{}, err)
		}
	}
}

// maxGenerations is the usual State.MaxGenerations.
const maxGenerations = 8

// mergeFrom returns the index of the first generation to merge after a
// generation was added: all from there on are merged into one. Up to
// most, nothing needs to be merged, and it returns the last index. The
// generation before the index is then larger than the merged one, so that large
// generations are seldom rewritten.
func mergeFrom(generations [][]answerFile, most int) int {
	from := len(generations) - 1
	if len(generations) <= most {
		return from
	}
	after := rowsOf(generations[from])
	for ; from > 0; from-- {
		if before := rowsOf(generations[from-1]); before > after && from <= most-1 {
			break
		}
		after += rowsOf(generations[from-1])
	}
	return from
}

func rowsOf(files []answerFile) (rows int64) {
	for _, f := range files {
		rows += f.Rows
	}
	return rows
}

// mergeGenerations replaces the generations of m, starting at an index, by one.
func (s *State) mergeGenerations(ctx context.Context, of answers.Scope, m *manifest, from int) error {
	generations := m.generations()
	if from >= len(generations)-1 {
		return nil
	}
	kept := 0
	for _, g := range generations[:from] {
		kept += len(g)
	}
	files, err := s.writeGeneration(ctx, of, m.lastGeneration()+1, s.sorted(ctx, of, m.Files[kept:], true))
	m.Files = append(m.Files[:kept:kept], files...)
	return err
}
