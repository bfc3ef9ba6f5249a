package pipeline

import (
	"fmt"
	"regexp"
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
