package openapi

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"regexp"
	"sync"
)

//go:embed page
var pageFiles embed.FS

// ContentSecurityPolicy is the value of the header for Pages. It allows the style
// and the script of the page, by their hashes, and its icon.
func ContentSecurityPolicy() string { return policy() }

// Pages returns the document as HTML pages by their path below /docs: the guide and
// what operations share under "", and each operation under its id. They load nothing
// else and work without scripts. Serve them with ContentSecurityPolicy.
func (i *Interface) Pages() map[string][]byte {
	t, err := template.ParseFS(pageFiles, "page/page.html")
	if err != nil {
		panic(fmt.Sprintf("openapi: %v", err))
	}
	c := contents(i.tree)
	all := map[string][]byte{"": nil}
	for _, g := range c.Groups {
		for _, o := range g.Operations {
			all[o.ID] = nil
		}
	}
	render := func(id string, only *operation) {
		c.Only = only
		var b bytes.Buffer
		if err := t.Execute(&b, c); err != nil {
			panic(fmt.Sprintf("openapi: %v", err))
		}
		all[id] = repoint(b.Bytes(), id, all)
	}
	render("", nil)
	for _, g := range c.Groups {
		for _, o := range g.Operations {
			render(o.ID, &o)
		}
	}
	return all
}

var anchors = regexp.MustCompile(`href="#([^"]+)"`)

// repoint points the links of a page to the pages where their targets are.
func repoint(page []byte, on string, pages map[string][]byte) []byte {
	return anchors.ReplaceAllFunc(page, func(link []byte) []byte {
		id := string(anchors.FindSubmatch(link)[1])
		_, isPage := pages[id]
		switch {
		case isPage:
			return []byte(`href="/docs/` + id + `"`)
		case on == "" || id == "content":
			return link
		}
		return []byte(`href="/docs#` + id + `"`)
	})
}

var policy = sync.OnceValue(func() string {
	return "default-src 'none'; style-src '" + hash(pageFile("page.css")) + "'; script-src '" + hash(pageFile("page.js")) +
		"'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
})

// hash writes the hash of a script or style for a policy. Source: Content Security
// Policy Level 3, 2.3.1.
func hash(source string) string {
	sum := sha256.Sum256([]byte(source))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func pageFile(name string) string {
	text, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		panic(fmt.Sprintf("openapi: %v", err))
	}
	return string(text)
}

// content is the data of page.html.
type content struct {
	Title, Version  string
	Style           template.CSS
	Script          template.JS
	Intro           template.HTML
	Guide           []section
	Groups          []group
	Only            *operation // of the page, nil on the page of the guide
	Objects         []named
	Errors          []fault
	Sent, Received  []header
	CallbackHeaders []header
}

// named is an object that is part of several answers.
type named struct {
	Name   string
	Text   template.HTML
	Fields []field
}

// fault is a code that an error may have.
type fault struct {
	Status, Code string
	Text         template.HTML
	Retryable    bool
}

type header struct {
	Name string
	Text template.HTML
	Code string // an example
}

func contents(tree *object) content {
	r := &reader{document: tree}
	info := r.document.object("info")
	c := content{
		Title: info.text("title"), Version: info.text("version"),
		Style: template.CSS(pageFile("page.css")), Script: template.JS(pageFile("page.js")),
	}
	c.Intro, c.Guide = sections(info.text("description"))
	c.Groups = r.groups()
	r.named = append(r.named, "Problem") // the section on errors names it
	parts := r.document.object("components")
	for i := 0; i < len(r.named); i++ { // an object may name further ones
		s := parts.object("schemas").object(r.named[i])
		c.Objects = append(c.Objects, named{r.named[i], inline(s.text("description")), r.fields(s, "", 0)})
	}
	for _, e := range parts.object("examples").members {
		inner := e.value.(*object).object("value").object("error")
		c.Errors = append(c.Errors, fault{
			Status: flatten(inner.get("status")), Code: inner.text("code"),
			Text: inline(e.value.(*object).text("summary")), Retryable: inner.get("retryable") == true,
		})
	}
	for _, p := range parts.object("parameters").members {
		o := p.value.(*object)
		h := header{p.name, inline(o.text("description")), o.text("example")}
		if o.get("required") == true {
			c.CallbackHeaders = append(c.CallbackHeaders, h)
		} else {
			c.Sent = append(c.Sent, h)
		}
	}
	seen := make(map[string]bool)
	for _, path := range r.document.object("paths").members {
		for _, method := range path.value.(*object).members {
			for _, response := range method.value.(*object).object("responses").members {
				_, resolved := r.resolve(response.value.(*object))
				for _, m := range resolved.object("headers").members {
					if !seen[m.name] {
						seen[m.name] = true
						_, h := r.resolve(m.value.(*object))
						c.Received = append(c.Received, header{m.name, inline(h.text("description")), fmt.Sprint(h.get("example"))})
					}
				}
			}
		}
	}
	return c
}
