package pipeline

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/sinks"
)

// partitionName is what all warehouses take for a column, and none for a
// folder that is not data.
var partitionName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// maxPartitionValue keeps a folder's name, of which every byte may become
// three, below what file systems take.
const maxPartitionValue = 64

func checkPartitions(partitions []sinks.Partition) (errs []error) {
	seen := map[string]bool{}
	for _, p := range partitions {
		switch folded := strings.ToLower(p.Name); {
		case !partitionName.MatchString(p.Name) || len(p.Name) > maxPartitionValue:
			errs = append(errs, fmt.Errorf("partition %q; a name has letters, digits and underscores, and begins with a letter", p.Name))
		case seen[folded]:
			errs = append(errs, fmt.Errorf("partition %q is there twice", p.Name))
		case p.Value == "" || len(p.Value) > maxPartitionValue || !utf8.ValidString(p.Value) || strings.ContainsFunc(p.Value, isControl):
			errs = append(errs, fmt.Errorf("partition %s needs a value of 1 to %d bytes, without control characters", p.Name, maxPartitionValue))
		default:
			seen[folded] = true
		}
	}
	return errs
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func partitionNames(partitions []sinks.Partition) (names []string) {
	for _, p := range partitions {
		names = append(names, p.Name)
	}
	return names
}

// PartitionColumn is the column that a job's rows are parted by, as it is
// spelled among those that are kept; empty when they are not parted.
func PartitionColumn(j Job, kept []string) (string, error) {
	if j.PartitionBy == "" {
		return "", nil
	}
	name := matchFold(kept, j.PartitionBy)
	kind, personal := keys.KindOfColumn(name)
	switch identifies := name == IdentifierColumn(j, kept); {
	case !slices.Contains(kept, name):
		return "", fmt.Errorf("cannot partition rows by %q: it is not among the kept input columns; name it in --keep", j.PartitionBy)
	case identifies && !j.Operation.IsKeyword():
		return "", fmt.Errorf("rows cannot be parted by %q: it is what they are resolved by, and paths are in logs and reports", name)
	case identifies && j.DropIdentifier:
		return "", fmt.Errorf("rows cannot be parted by %q: --drop-identifier leaves it out", name)
	case !partitionName.MatchString(name) || len(name) > maxPartitionValue:
		return "", fmt.Errorf("rows cannot be parted by %q: a folder's name has letters, digits and underscores, and begins with a letter; rename the column in the input", name)
	case personal:
		return "", fmt.Errorf("rows cannot be parted by %q: by its name it holds identifiers (%s), and paths are in logs and reports", name, kind)
	}
	return name, nil
}

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
