package changes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"

	"github.com/leadetl/leadetl/internal/spill"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/schema"
)

// Dataset is a finished dataset to read.
type Dataset struct {
	Dir      string // for users
	Files    Files
	Manifest *sinks.Manifest
}

// Files opens the files of a dataset. It is called from several goroutines at once.
type Files interface {
	Open(name string) (*sinks.OpenFile, error)
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

// side is one of the two datasets. The zero value has no rows.
type side struct {
	set       Dataset
	shape     Shape
	partition string // its column in the paths, empty without one
	groups    []rowGroup
	rows      int64
	opened    []*sinks.OpenFile
	files     []sinks.File // their records
}

// rowGroup is a row group of a file.
type rowGroup struct {
	file  *openFile
	index int
	from  int64 // its first row, of all rows of the dataset
	rows  int64
	value []byte // of the column in the path; nil for null, and without one
}

// openFile is an open file of a dataset.
type openFile struct {
	name   string
	reader *file.Reader
	leaves map[string][]leafColumn // by the name of their column
}

// leafColumn is a leaf of a column, with its highest levels.
type leafColumn struct {
	index                  int
	seed                   uint64
	definition, repetition int16
}

// openSide opens the files of a dataset. Their rows are numbered in the order of the manifest.
func openSide(set Dataset, shape Shape) (*side, error) {
	s := &side{set: set, shape: shape, partition: set.Manifest.PartitionBy}
	for i := range set.Manifest.Parts {
		for _, f := range set.Manifest.Parts[i].Data() {
			if err := s.open(f); err != nil {
				return nil, errors.Join(fmt.Errorf("%s: %w", set.Dir, err), s.close())
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
		if err := f.CheckOpen(s.opened[i]); err != nil {
			return fmt.Errorf("%s: %w; check the dataset with leadetl verify", s.set.Dir, err)
		}
	}
	return nil
}

// open opens a file.
func (s *side) open(f sinks.File) (err error) {
	if f.Rows == 0 {
		return nil
	}
	value, err := valueIn(f.Name, s.partition)
	if err != nil {
		return err
	}
	opened, err := s.set.Files.Open(f.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is missing; check the dataset with leadetl verify", f.Name)
	}
	if err != nil {
		return err
	}
	s.opened, s.files = append(s.opened, opened), append(s.files, f)
	r, err := readerOf(f.Name, opened)
	if err != nil {
		return err
	}
	before := s.rows
	for i := range r.reader.NumRowGroups() {
		g := rowGroup{file: r, index: i, from: s.rows, rows: r.reader.MetaData().RowGroup(i).NumRows(), value: value}
		s.groups, s.rows = append(s.groups, g), s.rows+g.rows
	}
	if s.rows-before != f.Rows {
		return fmt.Errorf("%s has %d rows, not %d; check the dataset with leadetl verify", f.Name, s.rows-before, f.Rows)
	}
	return r.check(s.shape, s.partition)
}

// check refuses a file without one of the columns.
func (r *openFile) check(shape Shape, partition string) error {
	for _, c := range shape.columns {
		if len(r.leaves[c.Name]) == 0 && c.Name != partition {
			return fmt.Errorf("%s has no column %s; check the dataset with leadetl verify", r.name, c.Name)
		}
	}
	return nil
}

// readerOf opens the Parquet of a file.
func readerOf(name string, opened *sinks.OpenFile) (r *openFile, err error) {
	r = &openFile{name: name, leaves: map[string][]leafColumn{}}
	defer contain(&rowGroup{file: r}, &err)
	props := parquet.NewReaderProperties(nil)
	props.BufferedStreamEnabled, props.BufferSize = true, 1<<16 // else each column chunk is read whole
	if r.reader, err = file.NewParquetReader(io.NewSectionReader(opened, 0, opened.Size), file.WithReadProps(props)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	leaves := r.reader.MetaData().Schema
	for i := range leaves.NumColumns() {
		c := leaves.Column(i)
		column := c.ColumnPath()[0]
		r.leaves[column] = append(r.leaves[column], leafColumn{
			index: i, seed: seedOf(c.Path()), definition: c.MaxDefinitionLevel(), repetition: c.MaxRepetitionLevel(),
		})
	}
	return r, nil
}

// valueIn is the value of a column in the path of a file; nil for null.
func valueIn(name, column string) ([]byte, error) {
	if column == "" {
		return nil, nil
	}
	for _, folder := range strings.Split(path.Dir(name), "/") {
		if escaped, ok := strings.CutPrefix(folder, column+"="); ok && escaped != schema.DefaultPartition {
			value, err := schema.Unescape(escaped)
			return []byte(value), err
		}
	}
	return nil, nil
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
		errs = append(errs, f.Close())
	}
	s.opened = nil
	return errors.Join(errs...)
}

// placeOf spreads places below all over the first bits of a prefix, which choose the share of
// a sorter.
func placeOf(place, all int64) spill.Prefix {
	return spill.Prefix{High: uint64(place) << bits.LeadingZeros64(uint64(all))}
}

// contain turns a panic into an error: a damaged file may make the reader panic.
func contain(g *rowGroup, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s: the reader panicked: %.200v", g.file.name, p)
	}
}
