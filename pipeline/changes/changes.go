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
	for _, s := range []*side{c.old, c.new} {
		if err := s.checkRecords(ctx); err != nil {
			return nil, err
		}
	}
	pair := func(old, fresh unmatched) error { return c.add(differenceOf(&old, &fresh)) }
	if err := c.pair(ctx, keyDigest, pair, func(u unmatched) error { return c.add(alone(u)) }); err != nil {
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
	by          int   // place of the column that rows are found by
	compared    []int // they tell the rows of a key apart
	more        []int // compared too, but they follow from the key
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
	if before != nil {
		if err := Comparable(before.Manifest, shape); err != nil {
			return nil, fmt.Errorf("%s: %w", before.Dir, err)
		}
	}
	if s, err = shape.Resolve(s); err != nil {
		return nil, err
	}
	c := &sinks.Changes{By: s.Column(), Compare: s.Compare, Was: s.Was}
	if before != nil {
		c.From, c.ChangeCounts = before.Dir, sinks.ChangesSince(before.Manifest)
	}
	return c, nil
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
	s = Settings{By: result.By, Compare: result.Compare, Was: result.Was}
	c := &comparison{shape: shape, values: spool{dir: scratch}, result: result}
	asks := after.Manifest.Asks() || before != nil && before.Manifest.Asks()
	c.by = shape.place(s.Column())
	c.compared, c.more = shape.compared(s, asks)
	for _, name := range s.Was {
		c.was = append(c.was, shape.place(name))
	}
	if c.new, err = openSide(after, shape); err != nil {
		return nil, err
	}
	c.old = &side{shape: shape}
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

// pair finds the rows that differ: first it drops those whose content both datasets have, then it
// pairs the others by key. keyOf makes the keys of values.
func (c *comparison) pair(ctx context.Context, keyOf func([]byte) digest, pair func(old, fresh unmatched) error, alone func(unmatched) error) (err error) {
	entries, rest := spill.New(c.values.dir, entry.prefix), spill.New(c.values.dir, unmatched.prefix)
	defer func() { err = errors.Join(err, entries.Close(), rest.Close()) }()
	if err := c.digesting(keyOf, entries).read(ctx, []*side{c.old, c.new}); err != nil {
		return err
	}
	rows := [2]int64{c.old.rows, c.new.rows}
	same := pairing{group: byContent, numbers: true, rows: rows, pair: func(_, _ unmatched) error { return nil }, alone: rest.Add}
	err = entries.Each(ctx, spill.Sorted(compareEntries), func(sorted []entry) error {
		for _, e := range sorted {
			if err := same.add(unmatched{entry: e}); err != nil {
				return err
			}
		}
		return nil
	})
	if err = errors.Join(err, same.end()); err != nil {
		return err
	}
	others := pairing{group: byKey, rows: rows, pair: pair, alone: alone}
	err = rest.Each(ctx, spill.Sorted(compareUnmatched), func(sorted []unmatched) error {
		for _, u := range sorted {
			if err := others.add(u); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, others.end())
}

func (c *comparison) digesting(keyOf func([]byte) digest, to *spill.Sorter[entry]) *digesting {
	return &digesting{by: c.by, identifier: c.shape.place(c.shape.identifier), compared: c.compared, more: c.more, key: keyOf, to: to}
}

// difference is a row of the output: an old and a new row, or one of them; -1 stands for a missing one.
type difference struct {
	old, new         int64
	oldHash, newHash rowHash
	withoutKey       bool
	length           int32 // of the values of the old row in the spool
	offset           int64
}

func differenceOf(old, fresh *unmatched) difference {
	d := difference{old: -1, new: -1}
	if old != nil {
		d.old, d.oldHash, d.withoutKey = old.row(), rowHash{old.values, old.nth}, old.foundBy() == nothing
	}
	if fresh != nil {
		d.new, d.newHash, d.withoutKey = fresh.row(), rowHash{fresh.values, fresh.nth}, fresh.foundBy() == nothing
	}
	return d
}

// alone is the difference of a row that only one dataset has.
func alone(u unmatched) difference {
	if u.side() == oldSide {
		return differenceOf(&u, nil)
	}
	return differenceOf(nil, &u)
}

// what is the difference in the column change.
func (d difference) what() string {
	switch {
	case d.old >= 0 && d.new >= 0:
		return changed
	case d.withoutKey:
		return noKey
	case d.old < 0:
		return added
	}
	return removed
}

// add keeps a difference.
func (c *comparison) add(d difference) error {
	switch d.what() {
	case added:
		c.result.Added++
	case removed:
		c.result.Removed++
	case noKey:
		c.result.WithoutKey++
	default:
		c.result.Changed++
		return c.changed.Add(d)
	}
	return c.differences.Add(d)
}
