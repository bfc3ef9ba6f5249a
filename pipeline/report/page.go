package report

import (
	"bytes"
	_ "embed" // for the two files of the page
	"fmt"
	"html/template"
	"sync"
)

//go:embed page/page.html
var pageHTML string

//go:embed page/page.css
var pageCSS string

// Render makes the page of a run from its _report.json: one file of HTML and
// SVG without scripts and external resources. It contains counts, reasons and
// file names, but no data of any row. It counts unknown calls and does not
// identify them. A report of another version is an error.
func Render(report []byte) ([]byte, error) {
	r, err := parse(report)
	if err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	return render(r)
}

// RenderManifest makes the page of a finished dataset without a report from its
// _manifest.json. It shows what the dataset contains, not how the run went.
func RenderManifest(manifest []byte) ([]byte, error) {
	r, err := parseManifest(manifest)
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	return render(r)
}

func render(r *Report) ([]byte, error) {
	v := newView(r)
	v.Style = template.CSS(pageCSS)
	var b bytes.Buffer
	if err := pageTemplate().Execute(&b, v); err != nil {
		return nil, fmt.Errorf("make the page: %w", err)
	}
	return b.Bytes(), nil
}

var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page.html").Parse(pageHTML))
})
