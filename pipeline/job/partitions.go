package job

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/suggest"
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
		case figures.IsNoDay(p.Value):
			errs = append(errs, fmt.Errorf("partition %s is %s, a day that does not exist", p.Name, p.Value))
		default:
			seen[folded] = true
		}
	}
	return errs
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// partitionColumn is the input column that a job's rows are partitioned by, spelled as
// in kept; empty when rows are not partitioned.
func partitionColumn(j Job, kept []string) (string, error) {
	if j.PartitionBy == "" {
		return "", nil
	}
	name := matchFold(kept, j.PartitionBy)
	kind, personal := keys.KindOfColumn(name)
	switch identifies := name == identifierColumn(j, kept); {
	case !slices.Contains(kept, name):
		return "", fmt.Errorf("cannot partition rows by %q: it is not among the kept input columns%s; name it in --select", j.PartitionBy, suggest.Name(j.PartitionBy, kept))
	case identifies && !j.Operation.IsKeyword():
		return "", fmt.Errorf("cannot partition rows by %q: it identifies them, and paths appear in logs and reports", name)
	case identifies && j.DropIdentifier:
		return "", fmt.Errorf("cannot partition rows by %q: --drop-identifier leaves it out", name)
	case personal:
		return "", fmt.Errorf("cannot partition rows by %q: its name says that it holds identifiers (%s), and paths appear in logs and reports", name, kind)
	}
	return name, nil
}

// checkPartitionName refuses a name that an input column would have in paths.
func checkPartitionName(column, name string) error {
	kind, personal := keys.KindOfColumn(name)
	switch {
	case !partitionName.MatchString(name) || len(name) > maxPartitionValue:
		return fmt.Errorf("cannot partition rows by %q: the name of a folder has letters, digits and underscores, and begins with a letter; give it such a name with --rename", column)
	case personal:
		return fmt.Errorf("cannot partition rows by %q: its name %s says that it holds identifiers (%s), and paths appear in logs and reports", column, name, kind)
	}
	return nil
}
