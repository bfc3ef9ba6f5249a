package schema

import (
	"fmt"
	"net/url"
	"strings"
)

// Partition is a column with one value in all rows. It is in the path of the
// dataset, as NAME=VALUE, and in no file.
type Partition struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// PartitionPath is the path that partitions are in, from the outermost inwards.
func PartitionPath(partitions []Partition) string {
	folders := make([]string, len(partitions))
	for i, p := range partitions {
		folders[i] = p.Name + "=" + Escape(p.Value)
	}
	return strings.Join(folders, "/")
}

// Unescape is the inverse of Escape.
func Unescape(escaped string) (string, error) {
	if escaped == DefaultPartition {
		return "", nil
	}
	return url.PathUnescape(escaped)
}

// DefaultPartition stands in paths for a value that is not there.
const DefaultPartition = "__HIVE_DEFAULT_PARTITION__"

// Escape writes a value as it stands in a path of Hive partitions: what has a
// meaning to file systems or to Hive itself is a percent sign and two hex
// digits. Source: Apache Hive, FileUtils.escapePathName.
func Escape(value string) string {
	if value == "" {
		return DefaultPartition
	}
	var b strings.Builder
	for i := range len(value) {
		if c := value[i]; c < 0x20 || c == 0x7f || strings.IndexByte("\"#%'*/:=?\\{[]^", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// AbovePartitions is the folder or URI of a dataset without the folders of its partitions, so that every night has
// the same.
func AbovePartitions(out string, partitions []Partition) string {
	out = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(out, "/"), PartitionPath(partitions)), "/")
	if out == "" {
		return "."
	}
	return out
}
