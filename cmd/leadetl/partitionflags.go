package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/warehouse"
)

func registerPartitions(flags *pflag.FlagSet, to *[]string) {
	flags.StringSliceVar(to, "partition-by", nil, "`NAME=VALUE`, such as dt=2026-11-20: a folder below --out for the dataset, which warehouses read as a column of all its rows; several with commas are folders in folders")
}

// parsePartitions reads NAME=VALUE. What may be a name and a value is the
// job's to say.
func parsePartitions(texts []string) (partitions []sinks.Partition, err error) {
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--partition-by %q; write NAME=VALUE, such as dt=2026-11-20; this version does not part rows by the values of a column", text)
		}
		partitions = append(partitions, sinks.Partition{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)})
	}
	return partitions, nil
}

// partitionFolder is the place of a dataset that is a partition of what is in
// a folder, or below a URI.
func partitionFolder(out string, partitions []sinks.Partition) string {
	if len(partitions) == 0 {
		return out
	}
	return strings.TrimSuffix(out, "/") + "/" + warehouse.PartitionPath(warehousePartitions(partitions))
}

func warehousePartitions(partitions []sinks.Partition) (converted []warehouse.Partition) {
	for _, p := range partitions {
		converted = append(converted, warehouse.Partition(p))
	}
	return converted
}
