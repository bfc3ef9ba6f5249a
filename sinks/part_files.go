package sinks

import (
	"cmp"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/leadetl/leadetl/sinks/parquet"
	"github.com/leadetl/leadetl/sinks/schema"
)

// MaxPartitions bounds the values of the partition column in a part. Each is a file.
const MaxPartitions = 100

// maxPartitionFolder keeps names made of the name of a folder below the 255 bytes that
// file systems allow.
const maxPartitionFolder = 200

// DefaultPartition stands in paths for null.
const DefaultPartition = schema.DefaultPartition

// PartitionFolder returns the folder of a value of a column, as in Hive; for an empty
// value that of DefaultPartition. ok is false if file systems do not allow such a long
// name.
func PartitionFolder(column, value string) (folder string, ok bool) {
	folder = column + "=" + schema.Escape(value)
	return folder, len(folder) <= maxPartitionFolder
}

// IsPartitionFolder reports whether PartitionFolder returns this name for a value of a
// column.
func IsPartitionFolder(column, folder string) bool {
	escaped, ok := strings.CutPrefix(folder, column+"=")
	if !ok {
		return false
	}
	value, err := schema.Unescape(escaped)
	if err != nil {
		return false
	}
	again, ok := PartitionFolder(column, value)
	return ok && again == folder
}

// PartFiles writes the Parquet files of a part in one goroutine: one file, or one in each
// folder that has rows. Together they take the memory of one file: when their open row
// groups pass the size of one, the largest is written.
type PartFiles struct {
	dataset *Dataset
	number  int
	table   Table
	empty   string // folder of a part without rows
	pages   *parquet.PagePool
	files   []*Writer // in the order of their first rows
	in      map[string]*Writer
	pending int64 // bytes that open row groups take
}

// commitsAtOnce bounds the files that are committed side by side.
const commitsAtOnce = 16

// PartFiles starts the files of a part. A part without rows has a file in the folder
// empty. If empty is "", rows are not partitioned, and there is one file from the start.
func (d *Dataset) PartFiles(number int, t Table, empty string) (*PartFiles, error) {
	p := &PartFiles{dataset: d, number: number, table: t, empty: empty, pages: &d.pages, in: map[string]*Writer{}}
	if empty == "" {
		_, err := p.file("")
		return p, err
	}
	p.pages = &parquet.PagePool{Growing: true}
	return p, nil
}

// file returns the file in a folder.
func (p *PartFiles) file(folder string) (*Writer, error) {
	if w, open := p.in[folder]; open {
		return w, nil
	}
	w, err := newWriter(p.dataset.place, path.Join(folder, partFile(p.number)), p.table, p.pages)
	if err != nil {
		return nil, err
	}
	p.in[folder], p.files = w, append(p.files, w)
	return w, nil
}

// Write adds the rows of a record to the file in a folder. The record may be
// released afterwards.
func (p *PartFiles) Write(folder string, rec arrow.Record) error {
	if rec.NumRows() == 0 {
		return nil
	}
	w, err := p.file(folder)
	if err != nil {
		return err
	}
	p.pending -= w.encoder.Held()
	defer func() { p.pending += w.encoder.Held() }()
	return w.add(rec, func() error {
		for p.pending+w.encoder.Held() >= parquet.RowGroupBytes {
			largest := slices.MaxFunc(p.files, func(a, b *Writer) int { return cmp.Compare(a.encoder.Held(), b.encoder.Held()) }) // the first of equals
			if largest != w {
				p.pending -= largest.encoder.Held()
			}
			if err := largest.flush(); err != nil {
				return err
			}
		}
		return nil
	})
}

// Finish writes the rest of the files and frees their memory. Commit then only waits for
// the disk.
func (p *PartFiles) Finish() error {
	if len(p.files) == 0 {
		if _, err := p.file(p.empty); err != nil {
			return err
		}
	}
	for _, w := range p.files {
		if err := w.Finish(); err != nil {
			return err
		}
	}
	return nil
}

// Commit makes the finished files durable and gives them their final names. They do not
// count before the part is recorded. It returns members of a Part.
func (p *PartFiles) Commit() (sum File, files []File, err error) {
	files = make([]File, len(p.files))
	var committing errgroup.Group // each file has its goroutine, so that a simulated run repeats
	committing.SetLimit(commitsAtOnce)
	for i, w := range p.files {
		committing.Go(func() (err error) {
			files[i], err = w.Commit()
			return err
		})
	}
	if err := committing.Wait(); err != nil {
		return File{}, nil, err
	}
	if p.empty == "" {
		return files[0], nil, nil
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	sum.Name = partFile(p.number)
	for _, f := range files {
		sum.Rows, sum.Bytes = sum.Rows+f.Rows, sum.Bytes+f.Bytes
	}
	return sum, files, nil
}

// Abort drops the files that are not committed.
func (p *PartFiles) Abort() error {
	var errs []error
	for _, w := range p.files {
		errs = append(errs, w.Abort())
	}
	return errors.Join(errs...)
}
