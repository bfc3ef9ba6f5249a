package sinks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestReportIsOfTheFolderAndNotOfTheDataset: what each method that goes
// through the folder does with a report.
func TestReportIsOfTheFolderAndNotOfTheDataset(t *testing.T) {
	reports := []string{"_report.html", "_report.json"}
	for _, c := range []struct {
		name  string
		files []string // beside the reports
		do    func(*Dataset) error
		left  []string
	}{
		{"open", nil, func(*Dataset) error { return nil }, reports},
		{"clear", []string{"_SUCCESS", "_manifest.json", "part-00000.parquet"}, (*Dataset).Clear, []string{}},
		{"tidy", []string{"._report.json.tmp", "part-00007.parquet"}, func(d *Dataset) error { return d.Tidy(&Manifest{}) }, reports},
		{"publish", []string{"part-00007.parquet"}, func(d *Dataset) error { return d.Publish(&Manifest{}) },
			append([]string{"_SUCCESS", "_manifest.json"}, reports...)},
		{"withdraw", []string{"_SUCCESS", "_manifest.json", "part-00000.parquet"}, (*Dataset).Withdraw, []string{"part-00000.parquet"}},
		{"close", nil, (*Dataset).Close, reports},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, append(c.files, reports...)...)
			d := open(t, dir)
			if err := c.do(d); err != nil {
				t.Fatal(err)
			}
			if left := ls(t, dir); !slices.Equal(left, c.left) {
				t.Errorf("left %q, want %q", left, c.left)
			}
		})
	}
}

func TestReportAloneIsNoDataset(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	if data, err := d.Report(); data != nil || err != nil {
		t.Errorf("report %q, %v before there is one", data, err)
	}
	for _, text := range []string{"first", "second"} {
		if err := d.WriteReport([]byte(text), []byte("page of the "+text)); err != nil {
			t.Fatal(err)
		}
		if data, err := d.Report(); string(data) != text || err != nil {
			t.Errorf("report %q, %v; want %q", data, err, text)
		}
		if page, err := os.ReadFile(filepath.Join(d.Dir(), ReportPageName)); string(page) != "page of the "+text || err != nil {
			t.Errorf("page %q, %v; want that of the %s", page, err, text)
		}
	}
	if left := ls(t, dir); !slices.Equal(left, []string{"_report.html", "_report.json"}) {
		t.Errorf("the folder holds %q", left)
	}
	empty, err := d.Empty()
	if m, merr := d.Manifest(); !empty || err != nil || m != nil || merr != nil {
		t.Errorf("empty %v (%v), manifest %v (%v)", empty, err, m, merr)
	}
}

// TestNoPageOfAnotherReport: when the second report cannot be written, the page
// of the first is not there as if it were the second's.
func TestNoPageOfAnotherReport(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	if err := d.WriteReport([]byte("first"), []byte("page")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "._report.json.tmp"), 0o755); err != nil { // in the way
		t.Fatal(err)
	}
	if err := d.WriteReport([]byte("second"), []byte("page")); err == nil {
		t.Fatal("the report was written")
	}
	if data, err := d.Report(); string(data) != "first" || err != nil {
		t.Errorf("report %q, %v", data, err)
	}
	if _, err := os.Stat(filepath.Join(d.Dir(), ReportPageName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the page: %v", err)
	}
}

func TestReportElsewhereIsForeign(t *testing.T) {
	for _, name := range []string{"_rejects/_report.json", "report.json", "_report.xml"} {
		dir := t.TempDir()
		write(t, dir, name)
		if d, err := Open(t.Context(), dir, Options{}); err == nil {
			d.Close()
			t.Errorf("a folder with %s was opened", name)
		}
	}
}
