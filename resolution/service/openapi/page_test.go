package openapi

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// elements are all elements of a page in order.
func elements(t *testing.T, page []byte) []*html.Node {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var all []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			all = append(all, n)
		}
	}
	return all
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func inner(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// TestPageIsWellFormed reads the page tag by tag: every element is closed in
// its turn, which a parser that forgives would not tell.
func TestPageIsWellFormed(t *testing.T) {
	for _, page := range Pages() {
		isWellFormed(t, page)
	}
}

func isWellFormed(t *testing.T, page []byte) {
	void := map[string]bool{"meta": true, "link": true, "br": true, "input": true}
	var open []string
	z := html.NewTokenizer(bytes.NewReader(page))
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		name, _ := z.TagName()
		switch {
		case kind == html.StartTagToken && !void[string(name)]:
			open = append(open, string(name))
		case kind == html.EndTagToken && (len(open) == 0 || open[len(open)-1] != string(name)):
			t.Fatalf("</%s> closes %v", name, open)
		case kind == html.EndTagToken:
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("not closed: %v", open)
	}
}

func TestPageShowsTheDocument(t *testing.T) {
	text := make(map[string]string) // of what has an id
	for name, page := range Pages() {
		seen := map[string]bool{}
		for _, n := range elements(t, page) {
			id := attribute(n, "id")
			if id == "" {
				continue
			}
			if seen[id] {
				t.Errorf("id %s occurs twice on page %q", id, name)
			}
			seen[id], text[id] = true, inner(n)
		}
	}
	for _, c := range operations {
		for _, want := range []string{c.path, "{base_url}" + c.path, "200"} {
			if !strings.Contains(text[c.id], want) {
				t.Errorf("%s: %q is not shown", c.id, want)
			}
		}
		if got := strings.Contains(text[c.id], "Callback"); got != c.posts {
			t.Errorf("%s: a callback is shown: %t", c.id, got)
		}
	}
	for _, c := range []struct{ id, want string }{
		{"keyword_to_lead", "keywords list of string required"},
		{"keyword_to_lead", "1 to 100 items · each at most 200 characters"},
		{"keyword_to_lead", "1 to 1,000 · default 100"},
		{"keyword_to_lead", "b2b or b2c"},
		{"keyword_to_lead", "date_start string"},
		{"keyword_to_lead_result", "lead.leads list of FoundLead always"},
		{"keyword_to_lead_result", "404"},
		{"ip_to_company", "lead.company Company"},
		{"Company", "industry string or null always"},
		{"Company", "year_founded integer or null always"},
		{"Problem", "errors list of FieldProblem always"},
		{"deanonymization", "0 to 1"},
		{"validation_error", "400"},
		{"insufficient_credits", "shortfall"},
		{"authentication", "Authorization: Bearer <API_KEY>"},
		{"verifying-a-callback", "hmac.compare_digest"},
		{"idempotency", "Idempotent-Replayed: true"},
		{"headers", "X-Credits-Remaining"},
		{"headers", "webhook-signature"},
	} {
		if got := strings.Join(strings.Fields(text[c.id]), " "); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q is not shown in\n%s", c.id, c.want, got)
		}
	}
	for _, m := range usual().tree.object("components").object("examples").members {
		if text[m.name] == "" {
			t.Errorf("error %s has no anchor", m.name)
		}
	}
}

// TestPageLoadsNothing: links lead to the page itself or to the document, and
// there is nothing else that a browser would fetch.
func TestPageLoadsNothing(t *testing.T) {
	pages := Pages()
	ids := make(map[string]map[string]bool) // by page
	for name, page := range pages {
		ids[name] = make(map[string]bool)
		for _, n := range elements(t, page) {
			ids[name][attribute(n, "id")] = true
		}
	}
	for name, page := range pages {
		loadsNothing(t, elements(t, page), func(link string) bool {
			if id, here := strings.CutPrefix(link, "#"); here {
				return ids[name][id]
			}
			path, below := strings.CutPrefix(link, "/docs")
			path, id, _ := strings.Cut(path, "#")
			of, exists := ids[strings.TrimPrefix(path, "/")]
			return link == "/openapi.json" || below && exists && (id == "" || of[id])
		})
	}
	for _, loads := range []string{"@import", "url(", "fetch(", "XMLHttpRequest", "import("} {
		if strings.Contains(pageFile("page.css")+pageFile("page.js"), loads) {
			t.Errorf("style or script has %s", loads)
		}
	}
}

func loadsNothing(t *testing.T, page []*html.Node, leads func(link string) bool) {
	for _, n := range page {
		switch n.Data {
		case "img", "iframe", "object", "embed", "video", "audio", "form", "base":
			t.Errorf("the page has a <%s>", n.Data)
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "src", a.Key == "srcset", a.Key == "style", strings.HasPrefix(a.Key, "on"):
				t.Errorf("<%s> has %s", n.Data, a.Key)
			case a.Key != "href":
			case n.Data == "link" && strings.HasPrefix(a.Val, "data:"):
			case !leads(a.Val):
				t.Errorf("<%s> leads to %s, where nothing is", n.Data, a.Val)
			}
		}
	}
}

// TestPolicy: the policy knows the style and the script as they are in the
// page.
func TestPolicy(t *testing.T) {
	for _, n := range elements(t, Pages()["enrichment"]) {
		directive := map[string]string{"style": "style-src", "script": "script-src"}[n.Data]
		if directive == "" {
			continue
		}
		if want := directive + " '" + hash(inner(n)) + "'"; !strings.Contains(ContentSecurityPolicy(), want) {
			t.Errorf("%q is not in %q", want, ContentSecurityPolicy())
		}
	}
	for _, directive := range []string{"default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(ContentSecurityPolicy(), directive) {
			t.Errorf("the policy has no %s", directive)
		}
	}
	if strings.Contains(ContentSecurityPolicy(), "unsafe") {
		t.Error("the policy is unsafe")
	}
}

func TestMarkdown(t *testing.T) {
	intro, parts := sections("One & two.\n\n## A title\n\nWith `<code>`, **weight** and [a link](#a-title).\n\n- one\n- two\n\n| a | b |\n| --- | --- |\n| `c` | d |\n\n```sh\ncurl {base_url} \\\n  '<'\n```\n## Next\nend")
	if want := "<p>One &amp; two.</p>\n"; string(intro) != want {
		t.Errorf("intro %q, want %q", intro, want)
	}
	want := "<p>With <code>&lt;code&gt;</code>, <strong>weight</strong> and <a href=\"#a-title\">a link</a>.</p>\n" +
		"<ul><li>one</li><li>two</li></ul>\n" +
		"<div class=\"wide\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">a</th><th scope=\"col\">b</th></tr></thead><tbody><tr><td><code>c</code></td><td>d</td></tr></tbody></table></div>\n" +
		"<pre tabindex=\"0\"><code>curl <span class=\"base\">{base_url}</span> \\\n  &#39;&lt;&#39;</code></pre>\n"
	if len(parts) != 2 || parts[0].ID != "a-title" || string(parts[0].Body) != want {
		t.Errorf("parts %q, want body %q", parts, want)
	}
}

func TestLayout(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{}`, `{}`},
		{`{"b":1,"a":[true,"<"]}`, `{"b": 1, "a": [true, "<"]}`},
		{
			`{"message":"a text that is rather long","lead":{"company":{"name":"another text, about as long"}}}`,
			"{\n  \"message\": \"a text that is rather long\",\n  \"lead\": {\"company\": {\"name\": \"another text, about as long\"}}\n}",
		},
		{
			`["a text that is rather long","another text that is about as long"]`,
			"[\n  \"a text that is rather long\",\n  \"another text that is about as long\"\n]",
		},
	} {
		o, err := parse([]byte(`{"v":` + c.in + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := layout(o.get("v")); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.in, got, c.want)
		}
	}
}
