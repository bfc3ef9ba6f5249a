// Package reportpage shows how a run went as a page for people: one file of
// HTML and SVG, complete without scripts and without anything else to load. It
// is made of _report.json alone, or of _manifest.json where there is none, so
// that the page of any dataset can be made again.
//
// The page holds counts, reasons and names of files, as the report does, and
// nothing of any row. Calls that are unknown are counted, not named.
package reportpage

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"sync"
)

//go:embed page
var pageFiles embed.FS

// Render makes the page of a _report.json. One of a newer version, or what is
// no report, is an error.
func Render(report []byte) ([]byte, error) {
	r, err := read(report)
	if err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	return render(r)
}

// RenderManifest makes the page of a finished dataset without a report from
// its _manifest.json: what it holds, not how it came to be.
func RenderManifest(manifest []byte) ([]byte, error) {
	r, err := readManifest(manifest)
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	return render(r)
}

func render(r *report) ([]byte, error) {
	v := newView(r)
	v.Style = template.CSS(pageFile("page.css"))
	var b bytes.Buffer
	if err := pageTemplate().Execute(&b, v); err != nil {
		return nil, fmt.Errorf("make the page: %w", err)
	}
	return b.Bytes(), nil
}

var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page.html").ParseFS(pageFiles, "page/page.html"))
})

func pageFile(name string) string {
	text, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		panic(fmt.Sprintf("reportpage: %v", err))
	}
	return string(text)
}
