package sinks

import (
	"encoding/json"
	"slices"
	"testing"
)

// TestFirstOwn: which columns are kept from the input follows from the job, and in a manifest
// of an older version from the name of the first of the others.
func TestFirstOwn(t *testing.T) {
	for _, c := range []struct {
		name    string
		columns []string
		job     string
		chosen  []string
		own     int
	}{
		{"all columns", []string{"id", "source", "outcome"}, `{}`, nil, 1},
		{"chosen ones", []string{"id", "in_source", "outcome", "source"}, `{"columns":["outcome","source"]}`, []string{"outcome", "source"}, 2},
		{"chosen ones and none kept", []string{"outcome", "reason"}, `{"columns":["outcome","reason"]}`, []string{"outcome", "reason"}, 0},
		{"more than there are", []string{"source"}, `{"columns":["source","outcome"]}`, nil, 0},
		{"a damaged job", []string{"id", "source"}, `{"columns":7}`, nil, 1},
		{"no column of the operation", []string{"id"}, `{}`, nil, 1},
	} {
		m := Manifest{Job: json.RawMessage(c.job)}
		for _, name := range c.columns {
			m.Schema = append(m.Schema, Column{Name: name})
		}
		if got := m.Chosen(); !slices.Equal(got, c.chosen) || m.FirstOwn() != c.own {
			t.Errorf("%s: chosen %q, the first is %d; want %q and %d", c.name, got, m.FirstOwn(), c.chosen, c.own)
		}
	}
}
