// Package openapi has the Lead Resolution Service Interface as an OpenAPI 3.0.3
// document, and as a page for people that is made from it.
//
// The document is written by hand, in the files under document: one for each path,
// one for each kind of component, the guide in Markdown, and common.json with what
// all operations have. It binds both sides: the schemas of answers are closed, and
// tests of the service check every answer against them with openapitest.
package openapi

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed document
var files embed.FS

// paths lists the files of paths, in the order in which they are shown.
var paths = []string{
	"email_to_hem", "network_to_hem", "network_to_phone", "ip_to_company", "enrichment", "deanonymization", "single_result",
	"keyword_to_lead", "keyword_to_lead_result", "keyword_to_lead_count", "keyword_to_lead_count_result",
	"account", "service",
}

// components lists the kinds of components and their files.
var components = []struct {
	kind  string
	files []string
}{
	{"schemas", []string{"schemas/requests", "schemas/answers", "schemas/leads", "schemas/events", "schemas/account", "schemas/errors"}},
	{"requestBodies", []string{"requestBodies"}},
	{"responses", []string{"responses"}},
	{"parameters", []string{"parameters"}},
	{"headers", []string{"headers"}},
	{"examples", []string{"examples"}},
	{"securitySchemes", []string{"securitySchemes"}},
}

// build makes the whole document.
func build(s Settings) *object {
	read := func(name string) *object { return read(name, s) }
	d := read("head")
	d.object("info").set("description", s.fill(guide()))

	all := &object{}
	for _, name := range paths {
		all.merge(read("paths/" + name))
	}
	d.set("paths", all)

	parts := &object{}
	for _, c := range components {
		kind := &object{}
		for _, name := range c.files {
			kind.merge(read("components/" + name))
		}
		parts.set(c.kind, kind)
	}
	d.set("components", parts)
	markTests(parts.object("schemas"))
	repeatFields(parts.object("schemas"))

	share(d, read("common"))
	s.retire(all)
	return d
}

// markTests gives every answer the member that marks those to test keys.
func markTests(schemas *object) {
	for _, m := range schemas.members {
		if p := m.value.(*object).object("properties"); p != nil && p.get("success") != nil {
			mark := &object{}
			mark.set("$ref", "#/components/schemas/Test")
			p.set("test", mark)
		}
	}
}

// repeatFields gives the answer to a new count the fields of its request. A $ref
// to a member of another schema is valid, but generators of clients refuse it.
func repeatFields(schemas *object) {
	started := schemas.object("CountStarted").object("properties")
	for _, m := range schemas.object("KeywordRequest").object("properties").members {
		started.set(m.name, m.value)
	}
}

// share adds the members of common.json to every operation and response, and marks
// every operation as released, as the interface does.
func share(d, common *object) {
	everywhere := common.object("every").object("headers")
	for _, path := range d.object("paths").members {
		for _, method := range path.value.(*object).members {
			operation, rules := method.value.(*object), common.object(method.name)
			operation.set("x-status", "released")
			if p := rules.list("parameters"); p != nil {
				operation.set("parameters", p)
			}
			responses := operation.object("responses")
			responses.merge(rules.object("responses"))
			for _, r := range responses.members {
				withHeaders(r.value.(*object), everywhere, rules.object("headers"))
			}
		}
	}
	for _, r := range d.object("components").object("responses").members {
		withHeaders(r.value.(*object), everywhere, common.object("post").object("headers"))
	}
}

func withHeaders(response *object, groups ...*object) {
	if response.get("$ref") != nil {
		return
	}
	headers := &object{}
	headers.merge(response.object("headers"))
	for _, g := range groups {
		headers.merge(g)
	}
	response.set("headers", headers)
}

func read(name string, s Settings) *object {
	text, err := files.ReadFile("document/" + name + ".json")
	if err != nil {
		panic(fmt.Sprintf("openapi: %v", err))
	}
	o, err := parse([]byte(s.fill(string(text))))
	if err != nil {
		panic(fmt.Sprintf("openapi: document/%s.json: %v", name, err))
	}
	return o
}

// guide is what an integrator should know before the operations, in the
// subset of Markdown that markdown.go renders.
func guide() string {
	text, err := files.ReadFile("document/guide.md")
	if err != nil {
		panic(fmt.Sprintf("openapi: %v", err))
	}
	return strings.TrimSpace(string(text))
}
