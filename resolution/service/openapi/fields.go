package openapi

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// field is one member of a body as the page shows it.
type field struct {
	Name     string
	Type     string
	Object   string // the object that the type names, or ""
	Required string // "required" of a request, "always" in an answer, or ""
	Bounds   []template.HTML
	Text     template.HTML
}

// shape is one form that a body can have.
type shape struct {
	Text   template.HTML
	Fields []field // its own
	Usual  []field // those that all answers have
}

// reader reads schemas. It collects the objects that fields name, in the order of
// their first use, so that the page can show each of them once.
type reader struct {
	document *object
	named    []string
	request  bool // null means missing, so it is not shown
}

// resolve follows a $ref, if there is one, and returns its last part.
func (r *reader) resolve(schema *object) (name string, target *object) {
	for schema.text("$ref") != "" {
		parts := strings.Split(strings.TrimPrefix(schema.text("$ref"), "#/"), "/")
		name, schema = parts[len(parts)-1], r.document
		for _, p := range parts {
			schema = schema.object(strings.NewReplacer("~1", "/", "~0", "~").Replace(p))
		}
	}
	return name, schema
}

// shapes returns the forms of a body: one, or those of a oneOf. An anyOf stands for
// the forms of other operations.
func (r *reader) shapes(schema *object) []shape {
	_, schema = r.resolve(schema)
	if schema.list("anyOf") != nil {
		return []shape{{Text: inline(schema.text("description"))}}
	}
	if choice := schema.list("oneOf"); choice != nil {
		var all []shape
		for _, one := range choice {
			all = append(all, r.shapes(one.(*object))...)
		}
		return all
	}
	one := shape{Text: inline(schema.text("description"))}
	for _, f := range r.fields(schema, "", 1) {
		if isUsual(f.Name) {
			one.Usual = append(one.Usual, f)
		} else {
			one.Fields = append(one.Fields, f)
		}
	}
	return []shape{one}
}

// isUsual reports whether a member belongs to the envelope, which the guide
// explains.
func isUsual(name string) bool {
	name, _, _ = strings.Cut(name, ".")
	return slices.Contains([]string{"success", "message", "test", "data", "resolution", "payload"}, name)
}

// fields lists the members of an object. It lists the members of inner objects too,
// under dotted names, down to depth; deeper objects are named only.
func (r *reader) fields(schema *object, prefix string, depth int) []field {
	var all []field
	properties := schema.object("properties")
	if properties == nil {
		return nil
	}
	for _, m := range properties.members {
		name, s := r.resolve(m.value.(*object))
		f := field{Name: prefix + m.name, Bounds: r.bounds(s), Text: inline(s.text("description"))}
		switch {
		case !slices.Contains(schema.list("required"), any(m.name)):
		case r.request:
			f.Required = "required"
		default:
			f.Required = "always"
		}
		deeper := depth
		if m.name == "error" { // the section on errors explains it
			deeper = 0
		}
		f.Type, f.Object = r.kind(name, s, deeper)
		if s.get("nullable") == true && !r.request {
			f.Type += " or null"
		}
		all = append(all, f)
		if deeper > 0 && s.object("properties") != nil {
			all = append(all, r.fields(s, f.Name+".", deeper-1)...)
		}
	}
	return all
}

// kind returns the type of a value, and the object that it names.
func (r *reader) kind(name string, s *object, depth int) (text, object string) {
	switch s.text("type") {
	case "array":
		itemName, item := r.resolve(s.object("items"))
		text, object = r.kind(itemName, item, 0)
		return "list of " + text, object
	case "object":
		if depth == 0 && name != "" && s.object("properties") != nil {
			if !slices.Contains(r.named, name) {
				r.named = append(r.named, name)
			}
			return name, name
		}
	}
	return s.text("type"), ""
}

// formats explains formats whose names are not clear.
var formats = map[string]string{
	"email": "an email address", "uri": "a URL", "uri-reference": "a URL", "date": "YYYY-MM-DD", "date-time": "RFC 3339",
}

// bounds describes the values that a schema allows.
func (r *reader) bounds(s *object) []template.HTML {
	var all []template.HTML
	add := func(format string, a ...any) { all = append(all, inline(fmt.Sprintf(format, a...))) }

	if enum := s.list("enum"); len(enum) > 0 {
		var values []string
		for _, v := range enum {
			if v != nil {
				values = append(values, "`"+strings.Trim(flatten(v), `"`)+"`")
			}
		}
		add("%s", strings.Join(values, " or "))
	}
	if f := formats[s.text("format")]; f != "" {
		add("%s", f)
	} else if p := s.text("pattern"); p != "" {
		add("`%s`", p)
	}
	between(add, s, "minLength", "maxLength", "characters")
	between(add, s, "minimum", "maximum", "")
	between(add, s, "minItems", "maxItems", "items")
	between(add, s, "minProperties", "maxProperties", "members")
	if items := s.object("items"); items != nil {
		if _, item := r.resolve(items); item.text("type") != "object" {
			for _, b := range r.bounds(item) {
				all = append(all, "each "+b)
			}
		}
	}
	if v := s.get("x-default"); v != nil {
		add("default `%s`", flatten(v))
	}
	return all
}

// between describes a range. It does not mention that a text is not empty.
func between(add func(string, ...any), s *object, least, most, unit string) {
	low, high := s.get(least), s.get(most)
	if unit != "" {
		unit = " " + unit
	}
	switch {
	case low != nil && high != nil && (least != "minLength" || flatten(low) != "1"):
		add("%s to %s%s", flatten(low), grouped(high), unit)
	case high != nil:
		add("at most %s%s", grouped(high), unit)
	case low != nil && least == "minimum":
		add("at least %s", flatten(low))
	}
}

// grouped writes a number with commas between thousands.
func grouped(number any) string {
	digits := flatten(number)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
