package groupcommit

import "strings"

// Batch collects the rows of one kind of statement and writes them together: a
// statement for eight rows costs little more than one for a single row.
type Batch struct {
	columns    int
	statements []string // for each of chunks
	args       []any
}

// chunks are the numbers of rows of a statement: few, so that each statement
// stays prepared.
var chunks = []int{8, 1}

// NewBatch makes a Batch for rows of columns values each. Its statements are
// before, then "(?, …)" for each row with commas between, then after:
//
//	NewBatch("INSERT INTO t(a, b) VALUES ", 2, "")
//	NewBatch("DELETE FROM t WHERE (a, b) IN (VALUES ", 2, ")")
func NewBatch(before string, columns int, after string) *Batch {
	b := &Batch{columns: columns}
	row := "(?" + strings.Repeat(", ?", columns-1) + ")"
	for _, rows := range chunks {
		b.statements = append(b.statements, before+row+strings.Repeat(", "+row, rows-1)+after)
	}
	return b
}

// Add holds a row back until Flush.
func (b *Batch) Add(values ...any) {
	if len(values) != b.columns {
		panic("groupcommit: wrong number of values in a row")
	}
	b.args = append(b.args, values...)
}

// Flush writes the rows in the order of Add.
func (b *Batch) Flush(t *Tx) error {
	rest := b.args
	for i, rows := range chunks {
		for n := rows * b.columns; len(rest) >= n; rest = rest[n:] {
			if err := t.Exec(b.statements[i], rest[:n]...); err != nil {
				return err
			}
		}
	}
	b.Reset()
	return nil
}

// Reset drops the rows.
func (b *Batch) Reset() {
	clear(b.args) // release what they point to
	b.args = b.args[:0]
}
