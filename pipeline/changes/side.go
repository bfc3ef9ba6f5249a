package changes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"slices"

	"github.com/leadetl/leadetl/internal/spill"
	"github.com/leadetl/leadetl/sinks"
)

// Dataset is a finished dataset to read.
type Dataset struct {
	Dir      string // for users
	Files    Files
	Manifest *sinks.Manifest
}

// Files opens the files of a dataset. It is called from several goroutines at once.
type Files interface {
	sinks.Opener
	ReadFile(name string) ([]byte, error)
}

// Open opens a finished dataset. The error is sinks.ErrNoDataset if there is none.
func Open(ctx context.Context, uri string, o sinks.Options) (*Dataset, error) {
	r, err := sinks.OpenReader(ctx, uri, o)
	if err != nil {
		return nil, err
	}
	m, err := sinks.ReadManifest(r)
	if err == nil {
		if err = sinks.CheckFinished(r); errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: there is no %s, so its run has not finished", sinks.ErrNoDataset, sinks.SuccessName)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", uri, err)
	}
	return &Dataset{Dir: r.Dir(), Files: r, Manifest: m}, nil
}

// checkSame refuses an earlier dataset that was replaced since it was opened: its files are others.
func (d *Dataset) checkSame(made sinks.ChangeCounts) error {
	now, err := sinks.ReadManifest(d.Files)
	if errors.Is(err, sinks.ErrNoDataset) || err == nil && !made.IsSince(now) {
		err = fmt.Errorf("%w: the earlier one was made again or removed meanwhile; run the same command to compare with what is there now", ErrIncomparable)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", d.Dir, err)
	}
	return nil
}

// side is one of the two datasets. One with a shape alone has no rows.
type side struct {
	set    Dataset
	shape  Shape
	groups []rowGroup
	rows   int64
	opened []*sinks.DataFile
	files  []sinks.File // their records
}

// rowGroup is a row group of a file.
type rowGroup struct {
	file  *sinks.DataFile
	index int
	from  int64 // its first row, of all rows of the dataset
	rows  int64
}

// openSide opens the files of a dataset. Their rows are numbered in the order of the manifest.
func openSide(set Dataset, shape Shape) (*side, error) {
	s := &side{set: set, shape: shape}
	for i := range set.Manifest.Parts {
		for _, f := range set.Manifest.Parts[i].Data() {
			if err := s.open(f); err != nil {
				return nil, errors.Join(err, s.close())
			}
		}
	}
	return s, nil
}

// checkRecords refuses files that are not as the manifest says: of another size, or with another time or ETag and
// another checksum.
func (s *side) checkRecords(ctx context.Context) error {
	for i, f := range s.files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f.CheckOpen(s.opened[i].Opened); err != nil {
			return fmt.Errorf("%s: %w; check the dataset with leadetl verify", s.set.Dir, err)
		}
	}
	return nil
}

// open opens a file.
func (s *side) open(f sinks.File) error {
	if f.Rows == 0 {
		return nil
	}
	opened, err := s.set.Manifest.OpenData(s.set.Files, f, s.shape.columns)
	if err != nil {
		return err
	}
	s.opened, s.files = append(s.opened, opened), append(s.files, f)
	for i := range opened.Groups() {
		g := rowGroup{file: opened, index: i, from: s.rows, rows: opened.Rows(i)}
		s.groups, s.rows = append(s.groups, g), s.rows+g.rows
	}
	return nil
}

// groupOf is the place of the row group that has a row.
func (s *side) groupOf(row int64) int {
	i, found := slices.BinarySearchFunc(s.groups, row, func(g rowGroup, row int64) int {
		switch {
		case row < g.from:
			return 1
		case row >= g.from+g.rows:
			return -1
		}
		return 0
	})
	if !found {
		panic("a row that no row group has")
	}
	return i
}

func (s *side) close() error {
	var errs []error
	for _, f := range s.opened {
		errs = append(errs, f.Opened.Close())
	}
	s.opened = nil
	return errors.Join(errs...)
}

// placeOf spreads places below all over the first bits of a prefix, which choose the share of
// a sorter.
func placeOf(place, all int64) spill.Prefix {
	return spill.Prefix{High: uint64(place) << bits.LeadingZeros64(uint64(all))}
}
