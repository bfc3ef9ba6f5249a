package parts

import (
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// rejectsWriter writes the malformed lines of one part. A part without
// malformed lines has no file.
type rejectsWriter struct {
	dataset *sinks.Dataset
	table   sinks.Table
	number  int
	out     *sinks.Writer
}

func (w *rejectsWriter) write(rejects []sources.Reject) (err error) {
	if len(rejects) == 0 {
		return nil
	}
	if w.out == nil {
		if w.out, err = w.dataset.Rejects(w.number, w.table); err != nil {
			return err
		}
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, w.table.Schema())
	defer b.Release()
	for _, r := range rejects {
		b.Field(0).(*array.StringBuilder).Append(r.Source)
		b.Field(1).(*array.Int64Builder).Append(r.Line)
		b.Field(2).(*array.StringBuilder).Append(r.Reason)
		if len(w.table.Columns) > 3 {
			b.Field(3).(*array.StringBuilder).Append(printable(r.Raw))
		}
	}
	rec := b.NewRecord()
	defer rec.Release()
	return w.out.Write(rec)
}

// finish frees the memory. commit waits for the disk.
func (w *rejectsWriter) finish() error {
	if w.out == nil {
		return nil
	}
	return w.out.Finish()
}

func (w *rejectsWriter) commit() (*sinks.File, error) {
	if w.out == nil {
		return nil, nil
	}
	f, err := w.out.Commit()
	if err != nil {
		return nil, err
	}
	return &f, nil
}

func (w *rejectsWriter) abort() error {
	if w.out == nil {
		return nil
	}
	return w.out.Abort()
}

// printable returns the line as valid UTF-8, as Parquet strings require.
// Invalid bytes become \xNN, so that none is lost.
func printable(raw []byte) string {
	if utf8.Valid(raw) {
		return string(raw)
	}
	var out []byte
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		if r == utf8.RuneError && size == 1 {
			out = fmt.Appendf(out, `\x%02X`, raw[0])
		} else {
			out = append(out, raw[:size]...)
		}
		raw = raw[size:]
	}
	return string(out)
}

// Folders are the folders that hold the rows of a part.
type Folders struct {
	layout *columns.Layout
	part   int
	seen   map[string]bool
}

// NewFolders returns the folders of a part, of which none is used yet.
func NewFolders(layout *columns.Layout, part int) *Folders {
	return &Folders{layout: layout, part: part, seen: map[string]bool{}}
}

// IsPartitioned reports whether rows are partitioned by a column.
func (f *Folders) IsPartitioned() bool { return f.layout.Partition() != "" }

// Files is the number of files that the rows go to.
func (f *Folders) Files() int { return max(len(f.seen), 1) }

// empty returns the folder of a part without rows.
func (f *Folders) empty() string {
	if !f.IsPartitioned() {
		return ""
	}
	folder, _ := sinks.PartitionFolder(f.layout.Partition(), "")
	return folder
}

// folderRows are rows of a batch that go to one folder.
type folderRows struct {
	folder string
	*columns.Batch
}

// split groups the rows of a batch by folder, in an order that depends on the
// rows alone. Without a partition column, all rows go to the dataset's folder.
func (f *Folders) split(b *columns.Batch) ([]folderRows, error) {
	if !f.IsPartitioned() {
		return []folderRows{{"", b}}, nil
	}
	var all []folderRows
	for _, p := range f.layout.ByPartition(b) {
		folder, err := f.Add(p.Value)
		if err != nil {
			return nil, err
		}
		all = append(all, folderRows{folder, p.Batch})
	}
	return all, nil
}

// Add returns the folder for a value, and counts it as a folder of the part.
func (f *Folders) Add(value string) (folder string, err error) {
	column := f.layout.Partition()
	folder, ok := sinks.PartitionFolder(column, value)
	if !ok {
		return "", f.fail("a value of %s has %d bytes, which is too long for the name of a folder; partition by a column of short values", column, len(value))
	}
	f.seen[folder] = true
	if len(f.seen) > sinks.MaxPartitions {
		return "", f.fail("its rows have more than %d values of %s, each of which is a file; partition by a column of fewer values, sort the input by it, or give fewer --rows-per-part",
			sinks.MaxPartitions, column)
	}
	return folder, nil
}

func (f *Folders) fail(format string, args ...any) error {
	return &job.Error{Err: fmt.Errorf("part-%05d: %s", f.part, fmt.Sprintf(format, args...))}
}
