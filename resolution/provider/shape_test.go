package provider

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/leadetl/leadetl/resolution/values"
)

// TestPage: docs/reference/entries.md has every member of the schema, and the schema every list among the columns.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/entries.md")
	var schema struct {
		Defs map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err == nil {
		err = json.Unmarshal(Schema, &schema)
	}
	if err == nil {
		var document any
		document, err = jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
		c := jsonschema.NewCompiler()
		if err == nil {
			err = c.AddResource("https://leadetl.example/entries.json", document)
		}
		if err == nil {
			_, err = c.Compile("https://leadetl.example/entries.json")
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{"entry", "batch", "later", "documented"} {
		for name := range schema.Defs[of].Properties {
			if !strings.Contains(string(page), "`"+name+"`") && !strings.Contains(string(page), name+": ") {
				t.Errorf("the page does not say what %s of %s is", name, of)
			}
		}
	}
	var lists []string
	for name, v := range values.ByName {
		if v.IsList() && slices.Contains(fillable(), name) {
			lists = append(lists, name)
		}
	}
	slices.Sort(lists)
	if got := slices.Sorted(maps.Keys(schema.Defs["fields"].Properties)); !slices.Equal(got, lists) {
		t.Errorf("lists %s, want %s", got, lists)
	}
}
