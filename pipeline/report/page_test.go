package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/sinks"
)

var update = flag.Bool("update", false, "rewrite the golden pages")

// pages renders the report of every run under testdata, by name.
func pages(t testing.TB) map[string][]byte {
	t.Helper()
	reports, err := filepath.Glob("testdata/*.json")
	if err != nil || len(reports) == 0 {
		t.Fatal(reports, err)
	}
	made := map[string][]byte{}
	for _, path := range reports {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if made[name], err = report.Render(data); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return made
}

var style = regexp.MustCompile(`(?s)<style>.*</style>`)

// TestGolden compares the pages of some runs with what they were, but for
// their style, which is the same for all.
func TestGolden(t *testing.T) {
	for name, page := range pages(t) {
		if err := wellFormed(page); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		golden := "testdata/" + name + ".html"
		got := style.ReplaceAll(page, []byte("<style>…</style>"))
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("the page of testdata/%s.json is another; look at it after go test ./pipeline/report -update", name)
		}
	}
}

// wellFormed sees to it that what is opened is closed, and that ids are of one
// element each.
func wellFormed(page []byte) error {
	var open []string
	ids := map[string]bool{}
	z := html.NewTokenizer(bytes.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			if err := z.Err(); !errors.Is(err, io.EOF) {
				return err
			}
			if len(open) > 0 {
				return fmt.Errorf("%q are not closed", open)
			}
			return nil
		case html.StartTagToken:
			token := z.Token()
			for _, a := range token.Attr {
				if a.Key == "id" && ids[a.Val] {
					return fmt.Errorf("two elements with the id %q", a.Val)
				}
				if a.Key == "id" {
					ids[a.Val] = true
				}
			}
			if token.Data != "meta" && token.Data != "link" {
				open = append(open, token.Data)
			}
		case html.EndTagToken:
			token := z.Token()
			if len(open) == 0 || open[len(open)-1] != token.Data {
				return fmt.Errorf("</%s> closes %q", token.Data, open)
			}
			open = open[:len(open)-1]
		}
	}
}

// FuzzRender: whatever a report holds, its page is one, and no number of it is
// none.
// Names of files cannot turn the text of the page around or forge lines of it.
func TestPageEscapesNames(t *testing.T) {
	const name = "a\n\u202eb\u200b\u009b"
	data, err := json.Marshal(report.Report{Format: report.Format, Operation: "email_to_hem", Output: name, Inputs: []sinks.Input{{URI: name}}, Files: []sinks.File{{Name: name}}})
	if err != nil {
		t.Fatal(err)
	}
	page, err := report.Render(data)
	if err != nil {
		t.Fatal(err)
	}
	const want = `a\n\u202eb\u200b\u009b`
	if n := strings.Count(string(page), want); n != 4 || bytes.ContainsAny(page, "\u202e\u200b\u009b") { // title, head and tables
		t.Errorf("the page has %s %d times; want 4, and no such character", want, n)
	}
}

func FuzzRender(f *testing.F) {
	reports, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range reports {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) < 4000 {
			f.Add(data)
		}
	}
	f.Add(fmt.Appendf(nil, `{"format": 2, "operation": "enrichment", "seconds": %g, "totals": {"rows": %d, "matched": -1, "failed": %[2]d}, "service": {"calls": {"asked": -3}},
		"series": {"step_seconds": 1e-300, "rows_per_second": [1e300, 2, -3, 4], "calls_per_second": [1], "waiting": {"rate": [2, -1, 0, 1e9], "dead": [1]}}}`, 1e300, int64(math.MaxInt64)))
	f.Add([]byte(`{"format": 2, "operation": "x", "seconds": 5, "series": {"step_seconds": 1e308, "rows_per_second": [1, 2, 3, 4]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, render := range []func([]byte) ([]byte, error){report.Render, report.RenderManifest} {
			page, err := render(data)
			if err != nil {
				continue
			}
			if err := wellFormed(page); err != nil {
				t.Errorf("%v in\n%s", err, page)
			}
			if drawn := drawing.FindAll(page, -1); bytes.Contains(bytes.Join(drawn, nil), []byte("NaN")) || bytes.Contains(bytes.Join(drawn, nil), []byte("Inf")) {
				t.Errorf("a drawing of no number in\n%s", page)
			}
		}
	})
}

// drawing matches the attributes that hold numbers.
var drawing = regexp.MustCompile(` (style|d|x|x1|x2|y1|y2|width|height|viewBox)="[^"]*"`)
