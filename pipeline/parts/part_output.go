package parts

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// sideWriter writes a file beside that of a part, once there is something to write.
type sideWriter struct {
	open  func(number int, t sinks.Table) (*sinks.Writer, error)
	table sinks.Table
	part  int
	out   *sinks.Writer
}

// write writes the rows that fill makes.
func (w *sideWriter) write(fill func(b *array.RecordBuilder)) (err error) {
	if w.out == nil {
		if w.out, err = w.open(w.part, w.table); err != nil {
			return err
		}
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, w.table.Schema())
	defer b.Release()
	fill(b)
	rec := b.NewRecord()
	defer rec.Release()
	return w.out.Write(rec)
}

// rejects writes malformed lines.
func (w *sideWriter) rejects(rejects []sources.Reject) error {
	if len(rejects) == 0 {
		return nil
	}
	return w.write(func(b *array.RecordBuilder) {
		for _, r := range rejects {
			b.Field(0).(*array.StringBuilder).Append(r.Source)
			b.Field(1).(*array.Int64Builder).Append(r.Line)
			b.Field(2).(*array.StringBuilder).Append(r.Reason)
			if len(w.table.Columns) > 3 {
				b.Field(3).(*array.StringBuilder).Append(printable(r.Raw))
			}
		}
	})
}

// suppressed writes the ids of the suppressed rows of a batch, which are in its last kept column.
func (w *sideWriter) suppressed(rows *columns.Batch) error {
	if len(w.table.Columns) == 0 || !slices.Contains(rows.Outcomes, outcome.Suppressed) {
		return nil
	}
	ids := rows.Kept[len(rows.Kept)-1]
	return w.write(func(b *array.RecordBuilder) {
		for i, o := range rows.Outcomes {
			if o != outcome.Suppressed {
				continue
			}
			b.Field(0).(*array.StringBuilder).Append(rows.Source)
			b.Field(1).(*array.Int64Builder).Append(rows.Rows[i])
			b.Field(2).(*array.StringBuilder).Append(rows.Reasons[i])
			if id := b.Field(3).(*array.StringBuilder); ids.IsNull(i) {
				id.AppendNull()
			} else {
				id.Append(ids.Value(i))
			}
		}
	})
}

// finish frees the memory. commit waits for the disk.
func (w *sideWriter) finish() error {
	if w.out == nil {
		return nil
	}
	return w.out.Finish()
}

// commit returns the file; nil if nothing was written.
func (w *sideWriter) commit() (*sinks.File, error) {
	if w.out == nil {
		return nil, nil
	}
	f, err := w.out.Commit()
	if err != nil {
		return nil, err
	}
	return &f, nil
}

func (w *sideWriter) abort() error {
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
		return "", f.fail("its rows have more than %d values of %s, each of which is a file; partition by a column of fewer values, sort the input by it, or give a lower rows_per_part",
			sinks.MaxPartitions, column)
	}
	return folder, nil
}

func (f *Folders) fail(format string, args ...any) error {
	return &job.Error{Err: fmt.Errorf("part-%05d: %s", f.part, fmt.Sprintf(format, args...))}
}
