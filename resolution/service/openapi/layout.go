package openapi

import (
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// layoutWidth is the longest line; a longer object or list is broken up.
const layoutWidth = 66

// layout writes v as JSON for people. What fits on one line is on one line.
func layout(v any) string {
	var b strings.Builder
	write(&b, v, 0, 0)
	return b.String()
}

// write appends v with an indent, after used characters of its line.
func write(b *strings.Builder, v any, indent, used int) {
	flat := flatten(v)
	o, isObject := v.(*object)
	list, isList := v.([]any)
	if indent+used+utf8.RuneCountInString(flat) <= layoutWidth || !isObject && !isList {
		b.WriteString(flat)
		return
	}
	margin := strings.Repeat(" ", indent+2)
	if isObject {
		b.WriteString("{\n")
		for i, m := range o.members {
			name := flatten(m.name) + ": "
			b.WriteString(margin + name)
			write(b, m.value, indent+2, len(name)+1)
			b.WriteString(ending(i, len(o.members)))
		}
		b.WriteString(margin[2:] + "}")
		return
	}
	b.WriteString("[\n")
	for i, item := range list {
		b.WriteString(margin)
		write(b, item, indent+2, 1)
		b.WriteString(ending(i, len(list)))
	}
	b.WriteString(margin[2:] + "]")
}

func ending(i, n int) string {
	if i < n-1 {
		return ",\n"
	}
	return "\n"
}

// flatten writes v on one line.
func flatten(v any) string {
	switch v := v.(type) {
	case *object:
		parts := make([]string, len(v.members))
		for i, m := range v.members {
			parts[i] = flatten(m.name) + ": " + flatten(m.value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = flatten(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic("openapi: " + err.Error()) // v was read from JSON
	}
	return string(text)
}
