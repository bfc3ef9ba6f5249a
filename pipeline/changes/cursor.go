package changes

import (
	"context"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/sinks/typed"
)

// cursor reads some rows of a dataset, in their order. Row groups without any of them are not
// read, and of the other rows no value is copied.
type cursor struct {
	side    *side
	places  []int // of the columns that are read
	columns []schema.Column
	group   int   // place of the open row group; -1 at first
	next    int64 // the first row that is not read yet
	open    *typed.Columns
}

// windowRows is how many rows of a row group are read at a time.
const windowRows = 8192

func newCursor(s *side, places []int) *cursor {
	c := &cursor{side: s, places: places, group: -1}
	for _, place := range places {
		c.columns = append(c.columns, s.shape.columns[place])
	}
	return c
}

// windowEnd is the first row behind the window of a row: the rows before it can be picked
// together.
func (c *cursor) windowEnd(row int64) int64 {
	g := &c.side.groups[c.side.groupOf(row)]
	return min(g.from+g.rows, g.from+(row-g.from)/windowRows*windowRows+windowRows)
}

// pick reads rows of one window. The arrays are in the order of all columns; those that are
// not read are nil. The caller releases them.
func (c *cursor) pick(ctx context.Context, rows []int64) (arrays []arrow.Array, err error) {
	end := c.windowEnd(rows[0])
	group := c.side.groupOf(rows[0])
	g := &c.side.groups[group]
	if group != c.group {
		if c.open, err = g.file.Columns(g.index, c.columns); err != nil {
			return nil, err
		}
		c.group, c.next = group, g.from
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := min(windowRows, g.from+g.rows-c.next)
		wanted := make([]int, 0, len(rows))
		if c.next+n == end {
			for _, row := range rows {
				wanted = append(wanted, int(row-c.next))
			}
		}
		read, err := c.open.Next(int(n), wanted)
		if err != nil {
			return nil, err
		}
		if c.next += n; c.next < end {
			typed.Release(read)
			continue
		}
		arrays = make([]arrow.Array, len(c.side.shape.columns))
		for i, place := range c.places {
			arrays[place] = read[i]
		}
		return arrays, nil
	}
}

// picking picks the rows of differences with a cursor, those of a window together.
type picking struct {
	from    *cursor
	row     func(difference) int64
	do      func([]difference, []arrow.Array) error
	waiting []difference // of one window
	rows    []int64
	end     int64 // of the window
}

// add adds differences, in the order of their rows.
func (p *picking) add(ctx context.Context, sorted []difference) error {
	for _, d := range sorted {
		row := p.row(d)
		if row >= p.end || len(p.waiting) == 0 {
			if err := p.flush(ctx); err != nil {
				return err
			}
			p.end = p.from.windowEnd(row)
		}
		p.waiting, p.rows = append(p.waiting, d), append(p.rows, row)
	}
	return nil
}

// flush picks the rows that wait for others of their window. It ends the picking.
func (p *picking) flush(ctx context.Context) error {
	if len(p.waiting) == 0 {
		return nil
	}
	arrays, err := p.from.pick(ctx, p.rows)
	defer typed.Release(arrays)
	if err == nil {
		err = p.do(p.waiting, arrays)
	}
	p.waiting, p.rows = p.waiting[:0], p.rows[:0]
	return err
}
