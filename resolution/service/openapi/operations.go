package openapi

import (
	"html/template"
	"strings"
)

// group holds the operations of one tag.
type group struct {
	ID, Name   string
	Text       template.HTML
	Operations []operation
}

// operation is an operation as the page shows it.
type operation struct {
	ID, Method, Path, Title string
	Text                    template.HTML
	Open                    bool // needs no credentials
	Request                 []field
	Calls                   []example
	Answers                 []shape
	Examples                []example // of answers
	Refusals                []refusal
	Callback                *callback
}

// Words are what a search finds the operation by.
func (o operation) Words() string {
	words := []string{o.Title, o.ID, o.Path}
	for _, f := range o.Request {
		words = append(words, f.Name)
	}
	for _, a := range o.Answers {
		for _, f := range a.Fields {
			words = append(words, f.Name)
		}
	}
	return strings.Join(words, " ")
}

type example struct {
	Title string
	Code  template.HTML
}

// refusal is a status other than success.
type refusal struct {
	Status string
	Text   template.HTML
}

type callback struct {
	Text     template.HTML
	Examples []example
}

// groups reads the operations, in the order of the document.
func (r *reader) groups() []group {
	var all []group
	for _, t := range r.document.list("tags") {
		tag := t.(*object)
		g := group{ID: anchor(tag.text("name")), Name: tag.text("name"), Text: inline(tag.text("description"))}
		for _, path := range r.document.object("paths").members {
			for _, method := range path.value.(*object).members {
				o := method.value.(*object)
				if o.list("tags")[0] == g.Name {
					g.Operations = append(g.Operations, r.operation(path.name, method.name, o))
				}
			}
		}
		all = append(all, g)
	}
	return all
}

func (r *reader) operation(path, method string, o *object) operation {
	op := operation{
		ID: o.text("operationId"), Method: strings.ToUpper(method), Path: path,
		Title: o.text("summary"), Text: inline(o.text("description")), Open: o.get("security") != nil,
	}
	asks := r.body(o.object("requestBody"))
	if asks != nil {
		r.request = true
		_, schema := r.resolve(asks.object("schema"))
		op.Request = r.fields(schema, "", 0)
		r.request = false
	}
	for _, p := range o.list("parameters") {
		if _, p := r.resolve(p.(*object)); p.text("in") == "query" {
			s := p.object("schema")
			kind, _ := r.kind("", s, 0)
			op.Request = append(op.Request, field{Name: p.text("name"), Type: kind, Bounds: r.bounds(s), Text: inline(p.text("description"))})
		}
	}
	for _, e := range r.examples(asks) {
		op.Calls = append(op.Calls, example{e.title, call{path, method, layout(e.value), !op.Open}.code()})
	}
	if asks == nil {
		op.Calls = []example{{"", call{path, method, "", !op.Open}.code()}}
	}
	for _, m := range o.object("responses").members {
		_, response := r.resolve(m.value.(*object))
		if m.name == "304" { // no body, and no refusal
			continue
		}
		if m.name != "200" {
			op.Refusals = append(op.Refusals, refusal{m.name, inline(response.text("description"))})
			continue
		}
		answers := r.body(response)
		op.Answers = r.shapes(answers.object("schema"))
		op.Examples = r.bodies(answers)
	}
	if c := o.object("callbacks").object("finished"); c != nil {
		post := c.members[0].value.(*object).object("post")
		op.Callback = &callback{inline(post.text("description")), r.bodies(r.body(post.object("requestBody")))}
	}
	return op
}

// body returns the JSON content of a request or response, nil without one.
func (r *reader) body(o *object) *object {
	if o == nil {
		return nil
	}
	_, o = r.resolve(o)
	return o.object("content").object("application/json")
}

type titled struct {
	title string
	value any
}

// examples returns the examples of a body: one, or several with titles.
func (r *reader) examples(body *object) []titled {
	var all []titled
	if e := body.get("example"); e != nil {
		all = append(all, titled{"", e})
	}
	if several := body.object("examples"); several != nil {
		for _, m := range several.members {
			_, e := r.resolve(m.value.(*object))
			all = append(all, titled{e.text("summary"), e.get("value")})
		}
	}
	return all
}

func (r *reader) bodies(body *object) []example {
	var all []example
	for _, e := range r.examples(body) {
		all = append(all, example{e.title, code(layout(e.value))})
	}
	return all
}
