package provider

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/leadetl/leadetl/internal/yamltree"
)

// Schema is the JSON Schema of a file of entries: their shape and bounds. Its descriptions are what messages say
// that a value has to be.
//
//go:embed schema.json
var Schema []byte

const schemaURL = "https://leadetl.example/entries.json"

// schemas are the schemas of entries and of documented answers, with the document that has both.
var schemas = sync.OnceValue(func() (s struct {
	document         any
	entries, answers *jsonschema.Schema
}) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	c := jsonschema.NewCompiler()
	if err == nil {
		err = c.AddResource(schemaURL, document)
	}
	if err != nil {
		panic(err) // it is embedded, so every test would fail
	}
	s.document, s.entries, s.answers = document, c.MustCompile(schemaURL), c.MustCompile(schemaURL+"#/$defs/answers")
	return s
})

// value is a value as JSON has it. It refuses a member that is given twice.
func (p *problems) value(n *yamltree.Node) any {
	switch n.Kind {
	case yamltree.Null:
		return nil
	case yamltree.List:
		items := make([]any, len(n.Items))
		for i, item := range n.Items {
			items[i] = p.value(item)
		}
		return items
	case yamltree.Map:
		members := make(map[string]any, len(n.Items))
		for _, m := range n.Items {
			if _, is := members[m.Name]; is {
				p.fail(m, "%.60s is given twice; leave one of them out", m.Name)
			}
			members[m.Name] = p.value(m)
		}
		return members
	}
	if count, err := strconv.ParseInt(n.Text, 10, 64); err == nil && isDigits(n.Text) {
		return count
	}
	if n.Text == "true" || n.Text == "false" {
		return n.Text == "true"
	}
	return n.Text
}

// shape refuses what the schema does not allow.
func (p *problems) shape(root *yamltree.Node, by *jsonschema.Schema) {
	if failed, is := errors.AsType[*jsonschema.ValidationError](by.Validate(p.value(root))); is {
		p.refuse(root, failed)
	}
}

// refuse tells in the words of the schema what is wrong.
func (p *problems) refuse(root *yamltree.Node, failed *jsonschema.ValidationError) {
	switch failed.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference:
		for _, cause := range failed.Causes {
			p.refuse(root, cause)
		}
		return
	}
	n, is := root, schemaAt(failed.SchemaURL)
	for _, name := range failed.InstanceLocation {
		n = child(n, name)
	}
	title, _ := is["title"].(string)
	title = cmp.Or(title, titled(n))
	description, _ := is["description"].(string)
	switch k := failed.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		known, _ := is["properties"].(map[string]any)
		for _, name := range k.Properties {
			hint := ", which is " + description
			if len(known) > 0 {
				hint = suggest(name, slices.Sorted(maps.Keys(known)))
			}
			p.fail(child(n, name), "%s is no key of %s%s", quoted(name), title, hint)
		}
	case *kind.Required:
		for _, name := range k.Missing {
			p.fail(n, "%s has no %s", title, name)
		}
	case *kind.PropertyNames: // of the file: the library does not keep where others are
		p.fail(child(n, k.Property), "%s is no %s", quoted(k.Property), description)
	default:
		_, isType := k.(*kind.Type)
		switch {
		case isType && n.Kind == yamltree.Map && len(n.Items) == 1 && n.Items[0].Kind == yamltree.Null && n.Items[0].Text == "":
			p.fail(n, "%s is text; quote the placeholder: \"{%s}\"", title, n.Items[0].Name)
		case n.Kind == yamltree.Null || n.Kind == yamltree.Text && n.Text == "":
			p.fail(n, "%s has no value: it is %s", title, description)
		default:
			p.fail(n, "%s is %s%s", title, description, hint(n.Text, is))
		}
	}
}

// hint suggests a text that the schema names, "" if it names none.
func hint(text string, is map[string]any) string {
	var all []string
	for _, key := range []string{"enum", "examples"} {
		list, _ := is[key].([]any)
		for _, one := range list {
			all = append(all, fmt.Sprint(one))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return suggest(text, all)
}

// schemaAt is the part of the schema that an address names.
func schemaAt(url string) map[string]any {
	at := schemas().document
	if _, pointer, is := strings.Cut(url, "#/"); is {
		for name := range strings.SplitSeq(pointer, "/") {
			members, _ := at.(map[string]any)
			at = members[name]
		}
	}
	is, _ := at.(map[string]any)
	return is
}

// child is an item of a list by its number, or a member of a map; the last if it is given twice.
func child(n *yamltree.Node, name string) *yamltree.Node {
	for i, item := range slices.Backward(n.Items) {
		if n.Kind == yamltree.Map && item.Name == name || n.Kind == yamltree.List && strconv.Itoa(i) == name {
			return item
		}
	}
	return n
}

// members are those of a map by their names.
func members(n *yamltree.Node) map[string]*yamltree.Node {
	all := map[string]*yamltree.Node{}
	if n != nil && n.Kind == yamltree.Map {
		for _, m := range n.Items {
			all[m.Name] = m
		}
	}
	return all
}

// textOf is the text of a value, "" without one.
func textOf(n *yamltree.Node) string {
	if n == nil || n.Kind != yamltree.Text {
		return ""
	}
	return n.Text
}

// listOf are the items of a list, or the value itself.
func listOf(n *yamltree.Node) []*yamltree.Node {
	switch {
	case n == nil:
		return nil
	case n.Kind == yamltree.List:
		return n.Items
	}
	return []*yamltree.Node{n}
}

// count is a whole number; otherwise without one.
func count(n *yamltree.Node, otherwise int64) int64 {
	if count, err := strconv.ParseInt(textOf(n), 10, 64); err == nil {
		return count
	}
	return otherwise
}
