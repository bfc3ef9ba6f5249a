package sinks

import (
	"encoding/json"
	"maps"
	"testing"
)

// TestKeptFrom: which columns are kept from the input, and what they are called there, follows from
// the job.
func TestKeptFrom(t *testing.T) {
	for _, c := range []struct {
		name    string
		columns []string
		job     string
		kept    map[string]string
	}{
		{"none", []string{"source", "outcome"}, `{}`, map[string]string{}},
		{"in any order", []string{"source", "id", "outcome", "in_source"}, `{"input_columns":["source","id"]}`, map[string]string{"id": "id", "in_source": "source"}},
		{"a name of its own with the prefix", []string{"in_id", "id"}, `{"input_columns":["in_id","id"]}`, map[string]string{"in_id": "in_id", "id": "id"}},
		{"other names", []string{"in_id", "id", "in_source", "source"}, `{"input_columns":["Record ID","in_id","id","source"],"renamed":{"in_id":"Record ID","x":"in_id"}}`,
			map[string]string{"in_id": "Record ID", "x": "in_id", "id": "id", "in_source": "source"}},
		{"the one in the paths", []string{"source"}, `{"input_columns":["source"]}`, map[string]string{"in_source": "source"}},
		{"a damaged job", []string{"id", "source"}, `{"input_columns":7}`, nil},
	} {
		m := Manifest{Job: json.RawMessage(c.job), PartitionBy: "in_source"}
		for _, name := range c.columns {
			m.Schema = append(m.Schema, Column{Name: name})
		}
		if got := m.KeptFrom(); !maps.Equal(got, c.kept) {
			t.Errorf("%s: %v, want %v", c.name, got, c.kept)
		}
	}
}
