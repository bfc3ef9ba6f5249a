package state

import "strings"

// batch collects the rows that a group appends to one table, and writes them
// together: a statement for 64 rows costs little more than one for a single.
type batch struct {
	columns    int
	statements []string // for each of chunks
	args       []any
}

// chunks are the numbers of rows for which there is a statement: few, so that
// each stays prepared.
var chunks = []int{8, 1}

// newBatch is for rows of an INSERT INTO table(columns).
func newBatch(insert string, columns int) *batch {
	b := &batch{columns: columns}
	row := "(?" + strings.Repeat(", ?", columns-1) + ")"
	for _, rows := range chunks {
		b.statements = append(b.statements, insert+" VALUES "+row+strings.Repeat(", "+row, rows-1))
	}
	return b
}

// add appends a row. It is in the table when the group ends.
func (b *batch) add(values ...any) {
	if len(values) != b.columns {
		panic("state: a row of another width")
	}
	b.args = append(b.args, values...)
}

// flush writes the rows in the order they came.
func (b *batch) flush(t *tx) error {
	rest := b.args
	for i, rows := range chunks {
		for n := rows * b.columns; len(rest) >= n; rest = rest[n:] {
			if err := t.exec(b.statements[i], rest[:n]...); err != nil {
				return err
			}
		}
	}
	b.reset()
	return nil
}

// reset forgets the rows.
func (b *batch) reset() {
	clear(b.args) // what they point to can go
	b.args = b.args[:0]
}
