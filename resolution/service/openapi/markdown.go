package openapi

import (
	"fmt"
	"html"
	"html/template"
	"regexp"
	"slices"
	"strings"
)

// section is the part of the guide under a heading.
type section struct {
	ID, Title string
	Body      template.HTML
}

var (
	tags  = regexp.MustCompile(`<[^>]+>`)
	words = regexp.MustCompile(`[\p{L}\p{N}_-]{3,}`)
)

// Words are what a search finds the section by: each word of it once.
func (s section) Words() string {
	all := words.FindAllString(strings.ToLower(s.Title+" "+html.UnescapeString(tags.ReplaceAllString(string(s.Body), " "))), -1)
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// sections renders the guide: the text before the first heading, and the sections.
// It knows the Markdown that the guide uses: ## headings, paragraphs on one line,
// lists with -, tables, fenced code, and inside a line `code`, **strong** and
// [links](#anchors).
func sections(text string) (intro template.HTML, parts []section) {
	before, rest, _ := strings.Cut(text, "\n## ")
	intro = blocks(before)
	for _, part := range strings.Split(rest, "\n## ") {
		title, body, _ := strings.Cut(part, "\n")
		parts = append(parts, section{anchor(title), title, blocks(body)})
	}
	return intro, parts
}

// anchor makes an id of a title.
func anchor(title string) string {
	return strings.ReplaceAll(strings.ToLower(title), " ", "-")
}

// blocks renders lines without headings.
func blocks(text string) template.HTML {
	var b strings.Builder
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		switch line := lines[i]; {
		case line == "":
			i++
		case strings.HasPrefix(line, "```"):
			end := i + 1
			for end < len(lines) && lines[end] != "```" {
				end++
			}
			b.WriteString(string(code(strings.Join(lines[i+1:end], "\n"))))
			i = end + 1
		case strings.HasPrefix(line, "- "):
			b.WriteString("<ul>")
			for ; i < len(lines) && strings.HasPrefix(lines[i], "- "); i++ {
				fmt.Fprintf(&b, "<li>%s</li>", inline(lines[i][2:]))
			}
			b.WriteString("</ul>\n")
		case strings.HasPrefix(line, "|"):
			end := i
			for end < len(lines) && strings.HasPrefix(lines[end], "|") {
				end++
			}
			table(&b, lines[i:end])
			i = end
		default:
			fmt.Fprintf(&b, "<p>%s</p>\n", inline(line))
			i++
		}
	}
	return template.HTML(b.String())
}

// table renders a head, a line of dashes and the rows.
func table(b *strings.Builder, lines []string) {
	b.WriteString(`<div class="wide" tabindex="0"><table><thead>`)
	for i, line := range lines {
		if i == 1 {
			b.WriteString("</thead><tbody>")
			continue
		}
		cell, scope := "td", ""
		if i == 0 {
			cell, scope = "th", ` scope="col"`
		}
		b.WriteString("<tr>")
		for _, c := range strings.Split(strings.Trim(line, "| "), "|") {
			fmt.Fprintf(b, "<%s%s>%s</%s>", cell, scope, inline(strings.TrimSpace(c)), cell)
		}
		b.WriteString("</tr>")
	}
	b.WriteString("</tbody></table></div>\n")
}

var (
	spans   = regexp.MustCompile("`[^`]+`|[^`]+")
	strongs = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	links   = regexp.MustCompile(`\[([^\]]+)\]\((#[a-z_-]+)\)`)
)

// inline renders the text of a line.
func inline(text string) template.HTML {
	var b strings.Builder
	for _, span := range spans.FindAllString(text, -1) {
		if strings.HasPrefix(span, "`") {
			fmt.Fprintf(&b, "<code>%s</code>", template.HTMLEscapeString(strings.Trim(span, "`")))
			continue
		}
		span = template.HTMLEscapeString(span)
		span = strongs.ReplaceAllString(span, "<strong>$1</strong>")
		b.WriteString(links.ReplaceAllString(span, `<a href="$2">$1</a>`))
	}
	return template.HTML(b.String())
}

// code renders lines of code. A script of the page replaces {base_url} by the
// address of the server, and <API_KEY> by the key of the reader.
func code(text string) template.HTML {
	text = template.HTMLEscapeString(text)
	text = strings.ReplaceAll(text, "{base_url}", `<span class="base">{base_url}</span>`)
	text = strings.ReplaceAll(text, "&lt;API_KEY&gt;", `<span class="key">&lt;API_KEY&gt;</span>`)
	return template.HTML(`<pre tabindex="0"><code>` + text + "</code></pre>\n")
}
