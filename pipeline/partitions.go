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

// partitionName is the form of a name that every warehouse accepts for a
// column, and that no warehouse takes for a hidden folder.
var partitionName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// maxPartitionValue is in bytes. Escaping may turn each byte into three, and
// file systems accept 255 for the name of a folder.
const maxPartitionValue = 64

func checkPartitions(partitions []sinks.Partition) (errs []error) {
	seen := map[string]bool{}
	for _, p := range partitions {
		switch folded := strings.ToLower(p.Name); {
		case !partitionName.MatchString(p.Name) || len(p.Name) > maxPartitionValue:
			errs = append(errs, fmt.Errorf("partition %q is not a valid name; use letters, digits and underscores, and begin with a letter", p.Name))
		case seen[folded]:
			errs = append(errs, fmt.Errorf("partition %q is given twice", p.Name))
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

// PartitionColumn is the column that a job's rows are partitioned by, spelled as
// in kept; empty when rows are not partitioned.
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
		return "", fmt.Errorf("cannot partition rows by %q: it identifies them, and paths appear in logs and reports", name)
	case identifies && j.DropIdentifier:
		return "", fmt.Errorf("cannot partition rows by %q: --drop-identifier leaves it out", name)
	case !partitionName.MatchString(name) || len(name) > maxPartitionValue:
		return "", fmt.Errorf("cannot partition rows by %q: the name of a folder has letters, digits and underscores, and begins with a letter; rename the column in the input", name)
	case personal:
		return "", fmt.Errorf("cannot partition rows by %q: its name says that it holds identifiers (%s), and paths appear in logs and reports", name, kind)
	}
	return name, nil
}

// partitionFolders are the folders that the rows of one part go to.
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

// empty is the folder of a part without rows.
func (f *partitionFolders) empty() string {
	if !f.isPartitioned() {
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

// split sorts the rows of a batch by folder, in an order that follows from the
// rows. Without a partition column all rows go to the dataset's own folder.
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

// add returns the folder of a value, and counts it as one of the part's.
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
	return &JobError{fmt.Errorf("part-%05d: %s", f.part, fmt.Sprintf(format, args...))}
}
