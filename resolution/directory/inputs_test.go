package directory

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
)

// TestInputs: an import reads what a run reads: many files, whose columns
// differ, packed or not, and standard input.
func TestInputs(t *testing.T) {
	from := t.TempDir()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a.csv":     "domain,name\na.example,A\n,invalid\n",
		"b.csv":     "NAME;DOMAIN\nB;b.example\n",
		"c.csv.gz":  packed(t, "domain\nc.example\n"),
		"d.csv.zst": string(z.EncodeAll([]byte("domain,city\nd.example,\"Two\nlines\"\n\nno domain,Town\n"), nil)),
	} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	glob := filepath.Join(from, "*.csv*")
	for _, c := range []struct {
		uri  string
		rows int64
		bad  string
	}{
		{glob, 4, from + "/a.csv:3: domain: empty; " + from + "/d.csv.zst:5: domain: invalid_domain"},
		{"-", 2, "-:3: ragged_row"},
	} {
		o := lax()
		o.Open = func(ctx context.Context, uri string) (*sources.List, error) {
			return sources.Open(ctx, []string{uri}, sources.Options{Stdin: strings.NewReader("domain\na.example\n1,2\nb.example\n")})
		}
		dir := t.TempDir()
		report, err := Import(t.Context(), dir, Files{Companies: c.uri}, o)
		if err != nil {
			t.Fatal(err)
		}
		var bad []string
		for _, line := range report.Kinds[0].BadLines {
			bad = append(bad, line.String())
		}
		if got := strings.Join(bad, "; "); got != c.bad || report.Kinds[0].Rows != c.rows {
			t.Errorf("%s: %d rows, bad %s; want %d, %s", c.uri, report.Kinds[0].Rows, got, c.rows, c.bad)
		}
		for _, domain := range []string{"a.example", "b.example"} {
			if company, err := mustOpen(t, dir).Company(domain); err != nil || company == nil {
				t.Errorf("%s: %v, %v", domain, company, err)
			}
		}
	}
}

// TestListOfOne: a list with one value is that value in every column, an empty one is none.
func TestListOfOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.jsonl")
	text := `{"domain":["a.example"],"name":["A",null],"city":[],"state":[null],"about":["x","y"],"year_founded":[1999]}` + "\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := Import(t.Context(), dir, Files{Companies: path}, lax()); err != nil {
		t.Fatal(err)
	}
	c, err := mustOpen(t, dir).Company("a.example")
	if err != nil || c == nil {
		t.Fatalf("%v, %v", c, err)
	}
	if c.Name != "A" || c.Address != (resolution.Address{}) || c.About != `["x","y"]` || c.YearFounded == nil || *c.YearFounded != 1999 {
		t.Errorf("%+v", c)
	}
}

// TestMarks: the marks of spreadsheets are no part of a text, in every column.
func TestMarks(t *testing.T) {
	companies := source(t, "c.csv", "domain,name,street,zip_code,city,about,employee_count\n'a.example,'Acme,'+1 Main,\"=\"\"02138\"\"\",'s-Hertogenbosch,'-,\"=\"\"11-50\"\"\"\n")
	dir := t.TempDir()
	if _, err := Import(t.Context(), dir, Files{Companies: companies}, lax()); err != nil {
		t.Fatal(err)
	}
	c, err := mustOpen(t, dir).Company("a.example")
	if err != nil || c == nil {
		t.Fatalf("%v, %v", c, err)
	}
	want := resolution.Company{Name: "Acme", Domain: "a.example", EmployeeCount: "11-50", About: "-",
		Address: resolution.Address{Street: "+1 Main", ZipCode: "02138", City: "'s-Hertogenbosch"}}
	if !reflect.DeepEqual(*c, want) {
		t.Errorf("%+v\nwant %+v", *c, want)
	}
}

// TestCalled: columns are found under the names the caller says.
func TestCalled(t *testing.T) {
	companies := source(t, "c.csv", "Web Site,Firm\na.example,A\n")
	for _, c := range []struct {
		called map[string]string
		says   string // of the error
	}{
		{map[string]string{"domain": "Web Site", "name": "firm"}, ""},
		{map[string]string{"name": "Firm"}, `has no column "domain"; it has: Web Site, Firm`},
		{map[string]string{"domain": "Web Site", "name": "Company"}, `has no column "Company"; it has: Web Site, Firm`},
		{map[string]string{"domain": "Web Site", "headline": "Firm"}, "column headline is in none of the kinds that are imported"},
	} {
		o := DefaultOptions()
		o.Called = c.called
		dir := t.TempDir()
		_, err := Import(t.Context(), dir, Files{Companies: companies}, o)
		if c.says != "" {
			if !errors.Is(err, resolution.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v: %v, want ErrInvalid that says %s", c.called, err, c.says)
			}
			continue
		}
		if company, err := mustOpen(t, dir).Company("a.example"); err != nil || company.Name != "A" {
			t.Errorf("%v: %+v, %v", c.called, company, err)
		}
	}
}
