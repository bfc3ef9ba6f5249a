package keyed

import (
	"context"
	"fmt"
	"iter"
)

// Files are files with the same fields, the newest last. Of records with the same key, that of
// the newest file counts. They become one file by adding what InOrder yields to a Writer.
type Files []*File

// InOrder yields the fields of the newest record of each key, in the order of the keys. The
// records of each file must have been added in that order, each key once. The fields are valid
// until the next ones. It reads each file from front to back, and keeps one record in memory. After
// an error, which names the file, it ends.
func (fs Files) InOrder(ctx context.Context) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		var m merge
		for _, f := range fs {
			defer f.columns.inOrder()()
			m.next = append(m.next, cursor{file: f, row: None})
		}
		for n := 0; ; n++ {
			if n%4096 == 0 && ctx.Err() != nil {
				yield(nil, ctx.Err())
				return
			}
			fields, err := m.step()
			if err != nil {
				yield(nil, err)
				return
			}
			if fields == nil || !yield(fields, nil) {
				return
			}
		}
	}
}

// merge goes through files in the order of the keys.
type merge struct {
	next   []cursor // by file
	arena  Arena
	fields []string
}

// cursor is at a record of a file, before the first one or behind the last.
type cursor struct {
	file *File
	row  uint32
	key  []byte // in the memory of the file
	end  bool
}

// step returns the next record, nil behind the last.
func (m *merge) step() (_ []string, err error) {
	at := 0
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", m.next[at].file.columns.path, err)
		}
	}()
	defer Guard(&err, setPanicOnFault())
	if m.fields == nil {
		for at = range m.next {
			m.next[at].advance()
			m.fields = make([]string, m.next[at].file.fields)
		}
	} else {
		last := m.fields[0]
		for at = range m.next {
			if c := &m.next[at]; !c.end && string(c.key) == last {
				if c.advance(); !c.end && string(c.key) <= last {
					return nil, fmt.Errorf("%w: record %d is not in the order of the keys", ErrDamaged, c.row)
				}
			}
		}
	}
	newest := -1
	for at = range m.next {
		if c := &m.next[at]; !c.end && (newest < 0 || string(c.key) <= string(m.next[newest].key)) {
			newest = at
		}
	}
	if newest < 0 {
		return nil, nil
	}
	at = newest
	m.arena.Reset()
	m.next[at].file.Read(m.next[at].row, &m.arena, m.fields)
	return m.fields, nil
}

// advance goes to the next record.
func (c *cursor) advance() {
	c.row++
	if c.end = int(c.row) >= c.file.Rows(); !c.end {
		r := c.file.Fields(c.row)
		_, c.key = r.Next()
	}
}
