package pipeline

import (
	"fmt"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/sinks"
)

// partitionFolders tracks the folders that hold the rows of a part.
type partitionFolders struct {
	layout *columns.Layout
	part   int
	seen   map[string]bool
}

func newPartitionFolders(layout *columns.Layout, part int) *partitionFolders {
	return &partitionFolders{layout: layout, part: part, seen: map[string]bool{}}
}

// isPartitioned reports whether rows are partitioned by a column.
func (f *partitionFolders) isPartitioned() bool { return f.layout.Partition() != "" }

// empty returns the folder of a part without rows.
func (f *partitionFolders) empty() string {
	if !f.isPartitioned() {
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
func (f *partitionFolders) split(b *columns.Batch) ([]folderRows, error) {
	if !f.isPartitioned() {
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

// add returns the folder for a value, and counts it as a folder of the part.
func (f *partitionFolders) add(value string) (folder string, err error) {
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

func (f *partitionFolders) fail(format string, args ...any) error {
	return &job.Error{Err: fmt.Errorf("part-%05d: %s", f.part, fmt.Sprintf(format, args...))}
}
