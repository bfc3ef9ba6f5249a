package report

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/sinks"
)

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		render           func([]byte) ([]byte, error)
	}{
		{"no JSON", `{"format"`, "read the report: unexpected end of JSON input", Render},
		{"another type", `{"format": "one"}`, "cannot unmarshal string", Render},
		{"nothing", `{}`, "it is not the report of a run", Render},
		{"newer", `{"format": 3, "operation": "enrichment"}`, "format 3 is of another version of leadetl; this one reads 2", Render},
		{"older", `{"format": 1, "operation": "enrichment", "service": {"calls": {"twins": 3}}}`, "format 1 is of another version of leadetl; this one reads 2", Render},
		{"no manifest", `{"format": 1}`, "it is not the manifest of a dataset", RenderManifest},
		{"newer manifest", `{"format": 3, "operation": "enrichment"}`, "format 3 is of another version", RenderManifest},
	} {
		if page, err := c.render([]byte(c.text)); page != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestWithoutMembers: what is not there is not shown, and a reason that is
// not known is.
func TestWithoutMembers(t *testing.T) {
	page, err := Render([]byte(`{"format": 2, "operation": "enrichment", "stop": {"reason": "moon_phase"}, "totals": {"rows": 2, "matched": 2}}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"Stopped: moon phase": true, "Started": false, "0001": false, "Over time": false, `id="calls"`: false, "matched 2 (100.0%)": true} {
		if strings.Contains(string(page), text) != want {
			t.Errorf("%q is on the page: %v, want %v", text, !want, want)
		}
	}
}

// TestManyFiles: many are folded away, and of very many the first are listed
// and the others counted.
func TestManyFiles(t *testing.T) {
	for _, c := range []struct {
		files      int
		open, more string
	}{
		{openFiles, `<details class="files" open><summary>Written: 12 files, 12 B</summary>`, ""},
		{openFiles + 1, `<details class="files"><summary>Written: 13 files, 13 B</summary>`, ""},
		{maxFiles, `<details class="files"><summary>Written: 500 files, 500 B</summary>`, ""},
		{maxFiles + 1234, `<details class="files"><summary>Written: 1,734 files, 1.7 kB</summary>`, "1,234 more files, all in _report.json"},
	} {
		r := Report{Format: Format, Operation: "enrichment", Stop: Stop{Reason: StopFinished}}
		for n := range c.files {
			r.Files = append(r.Files, sinks.File{Name: fmt.Sprintf("part-%05d.parquet", n), Bytes: 1})
		}
		page, err := render(&r)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(page); !strings.Contains(text, c.open) || strings.Contains(text, "more file") != (c.more != "") || !strings.Contains(text, c.more) {
			t.Errorf("%d files are not shown as %s … %s", c.files, c.open, c.more)
		}
		if listed := strings.Count(string(page), ".parquet"); listed != min(c.files, maxFiles) {
			t.Errorf("%d of %d files are listed", listed, c.files)
		}
	}
}

// TestCanary: of what a report holds of calls, the page shows no word that
// tells one from another.
func TestCanary(t *testing.T) {
	data, err := os.ReadFile("testdata/remote.json")
	if err != nil {
		t.Fatal(err)
	}
	page, err := Render(data)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"key_hash"`; !strings.Contains(string(data), want) {
		t.Fatalf("no %s in the report: it lists no unknown call", want)
	}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case `"key_hash"`, `"idempotency_key"`, `"request_id"`:
			if word := strings.Trim(value, `",`); strings.Contains(string(page), word) {
				t.Errorf("the page shows the %s %s", name, word)
			}
		}
	}
}

// TestNothingIsLoaded and nothing is HTML that came from a report.
func TestNothingIsLoaded(t *testing.T) {
	evil := `"><script src=http://evil.example/x.js></script><img src=http://evil.example/x>`
	page, err := Render(fmt.Appendf(nil, `{"format": 2, "operation": %[1]q, "output": %[1]q, "program": %[1]q, "job_id": %[1]q, "stop": {"reason": %[1]q, "detail": %[1]q},
		"inputs": [{"uri": %[1]q, "bytes": 1}], "files": [{"name": %[1]q, "sha256": %[1]q}], "totals": {"rows": 3, "matched": 1, "no_match": 1, "rejected": 1, "reasons": {"no_match": {%[1]q: 1}, "rejected": {%[1]q: 1}}},
		"service": {"name": %[1]q, "calls": {"asked": 2, "by_class": {%[1]q: 2}, "retries": {%[1]q: 1}}, "waits_seconds": {%[1]q: 1}}}`, evil))
	if err != nil {
		t.Fatal(err)
	}
	for _, never := range []string{"<script", "<img", "<link rel=\"stylesheet", "@import", "url("} {
		if strings.Contains(strings.ToLower(string(page)), never) {
			t.Errorf("%s is on the page", never)
		}
	}
	if !strings.Contains(string(page), `content="default-src 'none';`) {
		t.Error("the page has no policy that forbids to load anything")
	}
}

// TestOutcomes: a page is green only if nothing was lost.
func TestOutcomes(t *testing.T) {
	reasons := map[string]map[string]int64{"rejected": {"empty": 3, "multiple": 1}, "malformed": {"ragged_row": 1}}
	for _, c := range []struct {
		name             string
		totals           sinks.Totals
		kind, word, text string
	}{
		{"all matched", sinks.Totals{Rows: 100}, "good", "Finished", ""},
		{"less than 5%", sinks.Totals{Rows: 100, Rejected: 4, Malformed: 1, Reasons: reasons}, "good", "Finished", ""},
		{"5%", sinks.Totals{Rows: 99, Rejected: 4, Malformed: 1, Reasons: reasons}, "mixed", "Finished, with rejected lines", "5.0% of the lines were rejected: empty 3, multiple 1, ragged_row 1"},
		{"failed rows too", sinks.Totals{Rows: 9, Failed: 1, Rejected: 4, Malformed: 1, Reasons: reasons}, "mixed", "Finished, with failed rows",
			"1 row got no answer. The column reason says why. 50.0% of the lines were rejected: empty 3, multiple 1, ragged_row 1"},
		{"searches", sinks.Totals{Rows: 90_004, Searches: 20, Rejected: 4, Reasons: map[string]map[string]int64{"rejected": {"keywords:missing": 4}}}, "mixed", "Finished, with rejected lines",
			"20.0% of the lines were rejected: keywords:missing 4"},
		{"a search without leads", sinks.Totals{Rows: 1, NoMatch: 1, Searches: 1}, "good", "Finished", ""},
		{"no rows", sinks.Totals{}, "mixed", "Finished, without rows", "The input held no rows."},
	} {
		got := newOutcome(&Report{Stop: Stop{Reason: StopFinished}, Counts: Counts{Totals: c.totals}})
		if want := (outcome{Kind: c.kind, Word: c.word, Text: c.text}); got != want {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
	}
}
