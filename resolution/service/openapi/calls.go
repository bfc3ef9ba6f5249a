package openapi

import (
	"fmt"
	"html/template"
	"strings"
)

// languages are those of the examples, each with a writer of a call.
var languages = []struct {
	name  string // of its class
	title string
	write func(c call) string
}{
	{"curl", "curl", curl},
	{"python", "Python", python},
	{"javascript", "JavaScript", javascript},
}

// call is an example of a call.
type call struct {
	path, method string
	body         string // JSON; empty without one
	credentials  bool
}

// code returns the call in all languages. A script shows the one that the reader chose.
func (c call) code() template.HTML {
	var b strings.Builder
	for _, l := range languages {
		fmt.Fprintf(&b, "<div class=\"in %s\"><p class=\"language\">%s</p>%s</div>\n", l.name, l.title, code(l.write(c)))
	}
	return template.HTML(b.String())
}

func curl(c call) string {
	var b strings.Builder
	fmt.Fprintf(&b, "curl {base_url}%s", c.path)
	if c.credentials {
		b.WriteString(" \\\n  -H 'Authorization: Bearer <API_KEY>'")
	}
	if c.body != "" {
		b.WriteString(" \\\n  -H 'Content-Type: application/json'")
		fmt.Fprintf(&b, " \\\n  -d '%s'", strings.NewReplacer("'", `'\''`, "\n", "\n  ").Replace(c.body))
	}
	return b.String()
}

func python(c call) string {
	var b strings.Builder
	fmt.Fprintf(&b, "import json, urllib.request\n\nrequest = urllib.request.Request(\n    \"{base_url}%s\",\n", c.path)
	if c.body != "" {
		fmt.Fprintf(&b, "    data=r'''%s'''.encode(),\n", c.body)
	}
	c.headers(&b, "    headers={", "},\n")
	b.WriteString(")\nwith urllib.request.urlopen(request) as answer:\n    print(json.load(answer))")
	return b.String()
}

func javascript(c call) string {
	var b strings.Builder
	fmt.Fprintf(&b, "const answer = await fetch(\"{base_url}%s\", {\n", c.path)
	if c.body != "" {
		b.WriteString("  method: \"POST\",\n")
	}
	c.headers(&b, "  headers: {", "},\n")
	if c.body != "" {
		fmt.Fprintf(&b, "  body: JSON.stringify(%s),\n", strings.ReplaceAll(c.body, "\n", "\n  "))
	}
	b.WriteString("});\nconsole.log(await answer.json());")
	return b.String()
}

// headers writes the headers of a call, as both JavaScript and Python have them.
func (c call) headers(b *strings.Builder, begin, end string) {
	var all []string
	if c.credentials {
		all = append(all, `"Authorization": "Bearer <API_KEY>"`)
	}
	if c.body != "" {
		all = append(all, `"Content-Type": "application/json"`)
	}
	if len(all) > 0 {
		b.WriteString(begin + strings.Join(all, ", ") + end)
	}
}
