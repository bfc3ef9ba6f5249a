package changes

import (
	"context"
	"errors"
	"fmt"

	"github.com/leadetl/leadetl/internal/spill"
	"github.com/leadetl/leadetl/sinks"
)

// Target is where changes are written.
type Target struct {
	Create      func(number int, t sinks.Table) (*sinks.Writer, error)
	Sum         func(ctx context.Context, files []*sinks.File) error
	Compression sinks.Compression
	Scratch     string // folder of temporary files
}

// rowsPerFile bounds the rows of a file. Tests lower it.
var rowsPerFile int64 = 1_000_000

// Make writes the rows in which after differs from before. A nil before has no rows.
func Make(ctx context.Context, before *Dataset, after Dataset, s Settings, to Target) (made *sinks.Changes, err error) {
	c, err := newComparison(before, after, s, to.Scratch)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if before != nil { // a run opens it hours before it compares
		if err := before.checkSame(c.result.ChangeCounts); err != nil {
			return nil, err
		}
	}
	if err := c.pair(ctx); err != nil {
		return nil, err
	}
	if err := c.keepOldValues(ctx); err != nil {
		return nil, err
	}
	w := newWriter(c, to)
	if err := w.write(ctx); err != nil {
		return nil, errors.Join(err, w.abort())
	}
	var unsummed []*sinks.File
	for i := range c.result.Files {
		if f := &c.result.Files[i]; f.SHA256 == "" {
			unsummed = append(unsummed, f)
		}
	}
	return c.result, to.Sum(ctx, unsummed)
}

// comparison is one Make.
type comparison struct {
	shape       Shape
	by          int // place of the column that rows are found by
	compared    []int
	was         []int
	old, new    *side
	differences *spill.Sorter[difference] // in the order of the output
	changed     *spill.Sorter[difference] // in the order of the old rows
	values      spool                     // of old rows that changed
	result      *sinks.Changes
}

// Describe returns what the changes of after since before will be, without counts and files. A nil
// before has no rows. The error is ErrIncomparable if they cannot be compared.
func Describe(before *Dataset, after Dataset, s Settings) (*sinks.Changes, error) {
	shape, err := ShapeOf(after.Manifest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", after.Dir, err)
	}
	c := &sinks.Changes{By: s.Column(), Compare: s.Compare, Was: s.Was}
	if before != nil {
		c.From, c.Since, c.SinceAt = before.Dir, before.Manifest.JobID, before.Manifest.CompletedAt
		if err := Comparable(before.Manifest, shape); err != nil {
			return nil, fmt.Errorf("%s: %w", before.Dir, err)
		}
	}
	return c, shape.Check(s)
}

func newComparison(before *Dataset, after Dataset, s Settings, scratch string) (*comparison, error) {
	result, err := Describe(before, after, s)
	if err != nil {
		return nil, err
	}
	shape, err := ShapeOf(after.Manifest)
	if err != nil {
		return nil, err
	}
	c := &comparison{shape: shape, values: spool{dir: scratch}, result: result}
	asks := after.Manifest.Asks() || before != nil && before.Manifest.Asks()
	c.by, c.compared = shape.place(s.Column()), shape.compared(s, asks)
	for _, name := range s.Was {
		c.was = append(c.was, shape.place(name))
	}
	if c.new, err = openSide(after, shape); err != nil {
		return nil, err
	}
	c.old = &side{}
	if before != nil {
		if c.old, err = openSide(*before, shape); err != nil {
			return nil, errors.Join(err, c.new.close())
		}
	}
	all := c.new.rows + c.old.rows
	c.differences = spill.New(scratch, func(d difference) spill.Prefix {
		if d.new >= 0 {
			return placeOf(d.new, all)
		}
		return placeOf(c.new.rows+d.old, all)
	})
	c.changed = spill.New(scratch, func(d difference) spill.Prefix { return placeOf(d.old, all) })
	return c, nil
}

func (c *comparison) close() error {
	return errors.Join(c.old.close(), c.new.close(), c.differences.Close(), c.changed.Close(), c.values.close())
}

// pair finds the rows that differ.
func (c *comparison) pair(ctx context.Context) (err error) {
	entries := spill.New(c.values.dir, entry.prefix)
	defer func() { err = errors.Join(err, entries.Close()) }()
	reading := digesting{by: c.by, compared: c.compared, key: keyDigest, to: entries}
	if err := reading.read(ctx, []*side{c.old, c.new}); err != nil {
		return err
	}
	open := pairing{found: c.add, rows: [2]int64{c.old.rows, c.new.rows}}
	err = entries.Each(ctx, spill.Sorted(compareEntries), func(sorted []entry) error {
		for _, e := range sorted {
			if err := open.add(e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return open.end()
}

// add keeps a difference.
func (c *comparison) add(d difference) error {
	switch {
	case d.old < 0:
		c.result.Added++
	case d.new < 0:
		c.result.Removed++
	default:
		c.result.Changed++
		return c.changed.Add(d)
	}
	return c.differences.Add(d)
}
