package warehouse

import (
	"encoding/json"
	"strings"

	"github.com/leadetl/leadetl/sinks/schema"
)

// dbt writes a source of dbt, with the meanings of columns and tests of what is always so.
// Source: docs.getdbt.com, "Source properties" and "About data tests property", of dbt 1.10.5.
func (w *writer) dbt() {
	t := w.table
	w.line("# %s, schema version %d: a source of dbt 1.10.5 or later", t.Operation, t.Version)
	w.line("version: 2\n\nsources:\n  - name: leadetl")
	parts := strings.Split(t.name(), ".")
	for i, key := range []string{"schema", "database"} {
		if at := len(parts) - 2 - i; at >= 0 {
			w.line("    %s: %s", key, yamlText(parts[at]))
		}
	}
	w.line("    tables:\n      - name: %s", yamlText(t.temporary("")))
	w.line("        description: %s\n        columns:", yamlText(t.Operation+" of leadetl"))
	for _, c := range w.columns {
		w.dbtColumn(c, c.about())
	}
	for _, p := range t.partitions() {
		w.dbtColumn(parsed{Column: schema.Column{Name: p.Name, Nullable: p.varies}}, "in the path of every file")
	}
}

func (w *writer) dbtColumn(c parsed, about string) {
	w.line("          - name: %s", yamlText(c.Name))
	if about != "" {
		w.line("            description: %s", yamlText(about))
	}
	var tests []string
	if !c.Nullable {
		tests = append(tests, "              - not_null")
	}
	if words, is := strings.CutPrefix(c.Meaning.Form, "one of: "); is {
		tests = append(tests, "              - accepted_values:\n                  arguments:\n                    values: ["+strings.ReplaceAll(words, " ", ", ")+"]")
	}
	if len(tests) > 0 {
		w.line("            data_tests:\n%s", strings.Join(tests, "\n"))
	}
}

// yamlText writes a text in YAML, in which JSON strings are strings.
func yamlText(s string) string {
	data, _ := json.Marshal(s)
	return string(data)
}
