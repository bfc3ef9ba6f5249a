package warehouse

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/sinks/schema"
)

// TestMerge compares the statements for each warehouse with testdata. DuckDB runs its own in
// internal/testkit/duckdbtest.
func TestMerge(t *testing.T) {
	of := func(name, kind string) schema.Column { return schema.Column{Name: name, Type: kind, Nullable: true} }
	m := Merge{
		Table: Table{
			Name: "crm.leads", Operation: "enrichment", Version: 1, Partitions: []schema.Partition{{Name: "dt", Value: "2026-11-21"}},
			Columns: []schema.Column{of("id", "STRING"), of("key", "STRING"), of("outcome", "STRING"), of("seen_at", timestamp), of("phones", "LIST<STRUCT<phone STRING, type STRING>>")},
		},
		Changes: []string{"change", "changed", "was_phones", "since", "key_hash", "row_hash", "was_row_hash"},
		By:      1, Answers: []bool{false, false, false, true, true}, Since: "0a1b",
	}
	for _, d := range Warehouses {
		got, err := WriteMerge(d, m)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "merge_"+string(d)+".sql")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || got != string(want) {
			t.Errorf("%s is not what is printed; go test ./sinks/warehouse -run TestMerge -update rewrites it (%v):\n%s", path, err, got)
		}
	}
	m.Since = "" // the first night has nobody to find by a hash
	if got, err := WriteMerge(DuckDB, m); err != nil || strings.Contains(got, "sha256") {
		t.Errorf("%v\n%s", err, got)
	}
	if _, err := WriteMerge(Markdown, m); err == nil {
		t.Error("a merge for people")
	}
}
