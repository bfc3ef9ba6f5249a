package pipeline

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

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
	kind, personal := identifierColumns[strings.ToLower(name)]
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
