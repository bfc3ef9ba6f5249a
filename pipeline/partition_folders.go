package pipeline

import (
	"fmt"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/sinks"
)

// partitionFolders are those that the rows of one part are parted into.
type partitionFolders struct {
	layout *columns.Layout
	part   int
	seen   map[string]bool
}

func newPartitionFolders(layout *columns.Layout, part int) *partitionFolders {
	return &partitionFolders{layout: layout, part: part, seen: map[string]bool{}}
}

// isParted reports whether rows are parted by a column.
func (f *partitionFolders) isParted() bool { return f.layout.Partition() != "" }

// empty is the folder of a part without rows.
func (f *partitionFolders) empty() string {
	if !f.isParted() {
		return ""
	}
	folder, _ := sinks.PartitionFolder(f.layout.Partition(), "")
	return folder
}

// folderRows are rows of a batch and the folder that they go to.
type folderRows struct {
	folder string
	*columns.Batch
}

// of parts the rows of a batch, in an order that follows from them. Without a
// column to part by all of them go to the dataset's own folder.
func (f *partitionFolders) of(b *columns.Batch) ([]folderRows, error) {
	if !f.isParted() {
		return []folderRows{{"", b}}, nil
	}
	var all []folderRows
	for _, p := range f.layout.ByPartition(b) {
		folder, err := f.add(p.Value)
		if err != nil {
			return nil, err
		}
		all = append(all, folderRows{folder, p.Batch})
	}
	return all, nil
}

// add is the folder of a value, which is one of the part's.
func (f *partitionFolders) add(value string) (folder string, err error) {
	column := f.layout.Partition()
	folder, ok := sinks.PartitionFolder(column, value)
	if !ok {
		return "", f.fail("a value of %s has %d bytes, which is too long for the name of a folder; part by a column of short values", column, len(value))
	}
	f.seen[folder] = true
	if len(f.seen) > sinks.MaxPartitions {
		return "", f.fail("its rows have more than %d values of %s, each of which is a file; part by a column of fewer values, sort the input by it, or give fewer --rows-per-part",
			sinks.MaxPartitions, column)
	}
	return folder, nil
}

func (f *partitionFolders) fail(format string, args ...any) error {
	return &JobError{fmt.Errorf("part-%05d: %s", f.part, fmt.Sprintf(format, args...))}
}
