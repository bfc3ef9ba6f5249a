package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/schema"
)

func registerPartitions(flags *pflag.FlagSet, to *[]string) {
	flags.StringSliceVar(to, "partition-by", nil, "`NAME=VALUE`, such as dt=2026-11-20: a folder below --out for the dataset, which warehouses read as a column of all its rows; or a kept COLUMN: a folder for each of its values; several with commas are folders in folders, the column last")
}

// parsePartitions reads NAME=VALUE, and a column behind the last. What may be a
// name and a value is the job's to say.
func parsePartitions(texts []string) (partitions []sinks.Partition, column string, err error) {
	for i, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		switch name, value = strings.TrimSpace(name), strings.TrimSpace(value); {
		case ok:
			partitions = append(partitions, sinks.Partition{Name: name, Value: value})
		case name == "":
			return nil, "", fmt.Errorf("--partition-by %q; write NAME=VALUE, such as dt=2026-11-20, or the name of a column", text)
		case i < len(texts)-1:
			return nil, "", fmt.Errorf("--partition-by %s is a column with more behind it; one column can be named, and it comes last", name)
		default:
			column = name
		}
	}
	return partitions, column, nil
}

// partitionFolder is the place of a dataset that is a partition of what is in
// a folder, or below a URI.
func partitionFolder(out string, partitions []sinks.Partition) string {
	if len(partitions) == 0 {
		return out
	}
	return strings.TrimSuffix(out, "/") + "/" + schema.PartitionPath(partitions)
}
