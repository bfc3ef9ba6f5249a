package directory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/imports"
)

// lax takes everything that has one good line.
func lax() Options {
	o := DefaultOptions()
	o.MaxBadLines = 1
	return o
}

func TestBadLines(t *testing.T) {
	for _, f := range []struct {
		name          string
		kind          Kind
		text          string
		rows          int64
		bad, dropped  string // "line reason; line reason"
		replacedLines int64
	}{
		{"people", People, "network_url,emails,phones,last_seen_at,company_domain\n" +
			"network.example/in/ada,ada@x.example,,,\n" +
			",b@x.example,,,\n" + // 3
			"network.example/company/acme,,,,\n" + // 4
			"network.example/in/cleo,no address;c@x.example,6.50555E+09,yesterday,no domain\n" + // 5
			"one,two\n" + // 6
			"network.example/in/d\x00,,,,\n" + // 7
			"network.example/in/\"quoted\",,,,\n" + // 8
			"network.example/in/ada,,,,\n", // 9, again
			3, "3 network_url: empty; 4 network_url: not_a_profile; 6 ragged_row; 7 nul_byte; 8 network_url: invalid_url",
			"5 email: invalid_character; 5 phone: excel_damage; 5 company_domain: invalid_domain; 5 last_seen_at: invalid_time", 1},
		{"companies", Companies, "domain,name,year_founded\na.example,A,1990\n,B,\nno domain,C,\na.example,A again,soon\n",
			2, "3 domain: empty; 4 domain: invalid_domain", "5 year_founded: invalid_year", 1},
		{"ip-ranges", IPRanges, "cidr,range_start,range_end,name,org_type\n192.31.196.0/24,,,A,business\n10.0.0.0/8,,,B,isp\nhello,,,C,\n" +
			",192.31.196.9,192.31.196.1,D,\n,192.31.196.9,2001:20::1,E,\n,,,F,\n192.31.196.0/24,,,,\n192.31.196.7,,,G,circus\n",
			2, "3 ip_class:private; 4 cidr: invalid_range; 5 range_start, range_end: invalid_range; " +
				"6 range_start, range_end: invalid_range; 7 cidr: empty; 8 company_domain, name: empty", "", 0},
		{"visits", Visits, "ip,network_url,confidence,seen_at\n192.31.196.1,network.example/in/ada,0.5,\n10.0.0.1,network.example/in/ada,0.5,\n" +
			"192.31.196.1,,0.5,\nx,network.example/in/ada,0.5,\n192.31.196.1,network.example/in/ben,1.5,never\n",
			2, "3 ip: ip_class:private; 4 network_url: empty; 5 ip: invalid_ip", "6 seen_at: invalid_time; 6 confidence: invalid_share", 0},
		{"searches", Searches, "keyword,searched_at,email,state,lead_type\ntea,2026-01-02,a@x.example,CA,b2b\n,2026-01-02,a@x.example,,\n" +
			"tea,,a@x.example,,\ntea,2026-13-02,a@x.example,,\ntea,2026-01-02,,,\ntea,2026-01-02,a@x.example,California,b2x\n",
			2, "3 keyword: empty; 4 searched_at: empty; 5 searched_at: invalid_time; 6 network_url, email: nobody_searched",
			"7 state: invalid_state; 7 lead_type: invalid_lead_type", 0},
	} {
		t.Run(f.name, func(t *testing.T) {
			path := source(t, "in.csv", f.text)
			report, err := Import(t.Context(), t.TempDir(), only(f.kind, path), lax())
			if err != nil {
				t.Fatal(err)
			}
			k := report.Kinds[0]
			if got := places(k.BadLines); got != f.bad || k.Bad != int64(len(k.BadLines)) {
				t.Errorf("bad:\n got %s\nwant %s", got, f.bad)
			}
			if got := places(k.DroppedCells); got != f.dropped {
				t.Errorf("dropped:\n got %s\nwant %s", got, f.dropped)
			}
			if k.Rows != f.rows || k.Replaced != f.replacedLines || k.Lines != k.Rows+k.Bad {
				t.Errorf("rows %d of %d, replaced %d; want %d and %d", k.Rows, k.Lines, k.Replaced, f.rows, f.replacedLines)
			}
			if k.BadLines[0].File != path {
				t.Errorf("file %q", k.BadLines[0].File)
			}
		})
	}
}

func only(k Kind, path string) Files {
	switch k {
	case People:
		return Files{People: path}
	case Companies:
		return Files{Companies: path}
	case IPRanges:
		return Files{IPRanges: path}
	case Searches:
		return Files{Searches: path}
	}
	return Files{Visits: path}
}

func places(lines []imports.BadLine) string {
	var all []string
	for _, l := range lines {
		all = append(all, fmt.Sprintf("%d %s", l.Line, l.Reason))
	}
	return strings.Join(all, "; ")
}

func TestRefusedSources(t *testing.T) {
	for _, f := range []struct {
		name string
		kind Kind
		text string
		says string
	}{
		{"an empty file", People, "", "header"},
		{"a missing column", People, "name,email\na,b\n", `has no column "network_url"; it has: name, email. Name the column of the file that holds it: --map network_url=NAME`},
		{"neither range nor network", IPRanges, "name\na\n", `has no column "cidr" or "range_start"`},
		{"UTF-16", People, "\xff\xfen\x00e\x00", "iconv"},
		{"half of the lines bad", Companies, "domain\na.example\n,\n", "bad"},
		{"an open quote that swallows the rest", Companies, "domain,name\na.example,A\nb.example,\"B\nc.example,C\nd.example,D\n", "bad"},
		{"gzip that was cut", Companies, packed(t, "domain\na.example\n")[:20], "is truncated: its compressed data ends too early"},
		{"damaged gzip", Companies, packed(t, "domain\na.example\n") + "other data", "has extra data after its gzip-compressed data"},
		{"an open quote before more than memory should hold", Companies,
			packed(t, "domain,name\na.example,A\nb.example,\""+strings.Repeat("x", 64<<20+1)), "1 of 2 lines are bad"},
		{"not Parquet after all", People, "PAR1xxxx", ""},
	} {
		t.Run(f.name, func(t *testing.T) {
			dir := t.TempDir()
			mustImport(t, dir, sampleFiles(t))
			before := mustOpen(t, dir)
			_, err := Import(t.Context(), dir, only(f.kind, source(t, "in.csv", f.text)), DefaultOptions())
			if !errors.Is(err, resolution.ErrInvalid) || !strings.Contains(err.Error(), f.says) {
				t.Errorf("error %v, want ErrInvalid that says %q", err, f.says)
			}
			if before.Changed() {
				t.Error("the old data is gone")
			}
			d := mustOpen(t, dir)
			if err := d.Verify(t.Context()); err != nil {
				t.Error(err)
			}
			if got := len(files(t, dir)); got != 2+len(Kinds) {
				t.Errorf("%d files: %v", got, files(t, dir))
			}
		})
	}
}

func files(tb testing.TB, dir string) (names []string) {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestSpellingsOfCSV(t *testing.T) {
	for _, f := range []struct{ name, text string }{
		{"plain", "domain,name\na.example,A\n"},
		{"other order, other columns, capitals", "extra, NAME ,Domain\nx,A,a.example\n"},
		{"BOM and CRLF", "\ufeffdomain,name\r\na.example,A\r\n"},
		{"no final newline", "domain,name\na.example,A"},
		{"semicolons", "domain;name\na.example;A\n"},
		{"tabs", "domain\tname\na.example\tA\n"},
		{"pipes", "domain|name\na.example|A\n"},
		{"blank lines and spaces", "domain,name\n\n  a.example , A \n\n"},
		{"gzip", packed(t, "domain,name\na.example,A\n")},
	} {
		dir := t.TempDir()
		mustImport(t, dir, Files{Companies: source(t, "c.csv", f.text)})
		c, err := mustOpen(t, dir).Company("a.example")
		if err != nil || c == nil || c.Name != "A" {
			t.Errorf("%s: %+v, %v", f.name, c, err)
		}
	}
}

func packed(tb testing.TB, text string) string {
	tb.Helper()
	var b strings.Builder
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// TestReplaceUnderReader imports again and again while readers look up: each
// sees one whole generation, and an old one keeps working.
func TestReplaceUnderReader(t *testing.T) {
	dir := t.TempDir()
	generation := func(n int) Files {
		name := fmt.Sprint("Name", n)
		return Files{
			People:    source(t, "p.csv", "network_url,first_name,company_domain\nnetwork.example/in/ada,"+name+",a.example\n"),
			Companies: source(t, "c.csv", "domain,name\na.example,"+name+"\n"),
		}
	}
	mustImport(t, dir, generation(0))
	old := mustOpen(t, dir)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				d, err := Open(dir)
				if err != nil {
					t.Error(err)
					return
				}
				p, err := d.Person("network.example/in/ada")
				if err != nil || p == nil {
					t.Error(p, err)
				} else if c, err := d.Company(p.CompanyDomain); err != nil || c == nil || c.Name != p.FirstName {
					t.Errorf("person of %s, company %+v, %v", p.FirstName, c, err)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	const last = 10
	for n := 1; n <= last; n++ {
		mustImport(t, dir, generation(n))
		p, err := old.Person("network.example/in/ada")
		if err != nil || p.FirstName != "Name0" {
			t.Fatalf("the old view after import %d: %+v, %v", n, p, err)
		}
	}
	close(stop)
	wg.Wait()
	if !old.Changed() {
		t.Error("ten imports later nothing has changed")
	}
	now := mustOpen(t, dir)
	if p, err := now.Person("network.example/in/ada"); err != nil || p.FirstName != fmt.Sprint("Name", last) || now.Changed() {
		t.Errorf("the new view: %+v, %v", p, err)
	}
	if got := files(t, dir); len(got) != 4 {
		t.Errorf("files of old generations stay: %v", got)
	}
}

// TestLeftovers: what a killed import left is gone after the next, and other
// people's files are not.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	mustImport(t, dir, sampleFiles(t))
	for _, name := range []string{"people-000099.sqlite", filepath.Base(atomicfile.TempName("ip-ranges-000002.mmdb")),
		filepath.Base(atomicfile.TempName(manifestName)), ".nameless-7.tmp", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	mustImport(t, dir, Files{Visits: source(t, "v.csv", sampleVisits)})
	got := strings.Join(files(t, dir), " ")
	want := "companies-000001.cols5 directory.json ip-ranges-000001.cols5 joins-000001.cols5 notes.txt people-000001.cols5 searches-000001.cols5 visits-000002.cols5"
	if got != want {
		t.Errorf("files %s, want %s", got, want)
	}
}

// atErr is a context that does something, once, when it is first asked whether
// it is over, and is from then on.
type atErr struct {
	context.Context
	once *sync.Once
	do   func()
}

func (c atErr) Err() error {
	c.once.Do(c.do)
	return context.Canceled
}

// manyPeople is long enough for an import to ask its context on the way.
func manyPeople(tb testing.TB) Files {
	return Files{People: source(tb, "people.csv", "network_url\n"+strings.Repeat("network.example/in/ada\n", 5000))}
}

// TestFailedImportKeepsData whatever happens to the manifest meanwhile.
func TestFailedImportKeepsData(t *testing.T) {
	dir := t.TempDir()
	mustImport(t, dir, sampleFiles(t))
	path := filepath.Join(dir, manifestName)
	before := files(t, dir)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	spoil := atErr{t.Context(), &sync.Once{}, func() {
		if err := os.WriteFile(path, []byte("not what it was"), 0o644); err != nil {
			t.Error(err)
		}
	}}
	if _, err := Import(spoil, dir, manyPeople(t), DefaultOptions()); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if got := files(t, dir); !slices.Equal(got, before) {
		t.Errorf("files %v, want %v", got, before)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, dir).Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLostManifest: data without a manifest are not removed.
func TestLostManifest(t *testing.T) {
	dir := t.TempDir()
	mustImport(t, dir, sampleFiles(t))
	if err := os.Remove(filepath.Join(dir, manifestName)); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	_, err := Import(t.Context(), dir, sampleFiles(t), DefaultOptions())
	if !errors.Is(err, resolution.ErrInvalid) || !strings.Contains(err.Error(), "no directory.json") {
		t.Errorf("error %v", err)
	}
	if got := files(t, dir); !slices.Equal(got, before) {
		t.Errorf("files %v, want %v", got, before)
	}
}

// TestFirstImportKilled between its data and its commit: that is no directory,
// and the next import makes it one.
func TestFirstImportKilled(t *testing.T) {
	dir := t.TempDir()
	kill := atErr{t.Context(), &sync.Once{}, func() {
		if _, err := Open(dir); !errors.Is(err, resolution.ErrInvalid) {
			t.Errorf("open before the commit: %v", err)
		}
		killed := t.TempDir()
		if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(filepath.Join(killed, "companies-000001.sqlite"), nil, 0o644); err != nil {
			t.Error(err)
		}
		mustImport(t, killed, Files{Visits: source(t, "v.csv", sampleVisits)})
		if got := strings.Join(files(t, killed), " "); got != "directory.json visits-000001.cols5" {
			t.Errorf("files %s", got)
		}
	}}
	if _, err := Import(kill, dir, manyPeople(t), DefaultOptions()); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if got := files(t, dir); len(got) > 0 {
		t.Errorf("a failed first import leaves %v", got)
	}
}

// TestFailedImportTakesItsFolder with it, and no other's.
func TestFailedImportTakesItsFolder(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"new", "new/below"} {
		if _, err := Import(t.Context(), filepath.Join(root, dir), Files{People: source(t, "in.csv", "")}, DefaultOptions()); !errors.Is(err, resolution.ErrInvalid) {
			t.Fatal(err)
		}
		if got := files(t, root); len(got) > 0 {
			t.Errorf("%s: %v stays", dir, got)
		}
	}
}

func TestTwoImports(t *testing.T) {
	dir := t.TempDir()
	lock, err := filelock.Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if _, err := Import(t.Context(), dir, sampleFiles(t), DefaultOptions()); !errors.Is(err, resolution.ErrUnavailable) {
		t.Errorf("a second import: %v", err)
	}
}

func TestCancelledImport(t *testing.T) {
	dir := t.TempDir()
	mustImport(t, dir, sampleFiles(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(t.TempDir(), "people.csv")
	if err := os.WriteFile(path, []byte("network_url\n"+strings.Repeat("network.example/in/ada\n", 5000)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Import(ctx, dir, Files{People: path}, DefaultOptions()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if got := len(files(t, dir)); got != 2+len(Kinds) {
		t.Errorf("files %v", files(t, dir))
	}
}

// TestRepeatedKeys: one key on every line costs no more than as many keys, and
// the last line stays.
func TestRepeatedKeys(t *testing.T) {
	const lines = 20_000
	repeated := func(header, key string) string {
		var text strings.Builder
		text.WriteString(header + ",city\n")
		for i := range lines {
			fmt.Fprintf(&text, "%s,city %d\n", key, i+1)
		}
		return text.String()
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // comparing all pairs takes longer, with the race detector
	defer cancel()
	report, err := Import(ctx, dir, Files{
		People:    source(t, "people.csv", repeated("network_url", "network.example/in/ada")),
		Companies: source(t, "companies.csv", repeated("domain", "a.example")),
	}, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range report.Kinds {
		if k.Rows != lines || k.Replaced != lines-1 {
			t.Errorf("%s: %d rows, %d replaced", k.Kind, k.Rows, k.Replaced)
		}
	}
	opened(t, dir, func(d *Directory) {
		p, err := d.Person("network.example/in/ada")
		c, errCompany := d.Company("a.example")
		if err := errors.Join(err, errCompany); err != nil || p == nil || c == nil || p.Address.City != "city 20000" || c.Address.City != "city 20000" {
			t.Errorf("%+v, %+v, %v", p, c, err)
		}
	})
}

func TestOptionsValidate(t *testing.T) {
	for _, f := range []struct {
		name   string
		change func(*Options)
	}{
		{"share above one", func(o *Options) { o.MaxBadLines = 1.5 }},
		{"negative share", func(o *Options) { o.MaxBadLines = -1 }},
		{"no region", func(o *Options) { o.DefaultRegion = "" }},
		{"no fields", func(o *Options) { o.Fields = imports.Fields{} }},
	} {
		o := DefaultOptions()
		f.change(&o)
		if _, err := Import(t.Context(), t.TempDir(), Files{People: "x"}, o); !errors.Is(err, resolution.ErrInvalid) {
			t.Errorf("%s: %v", f.name, err)
		}
	}
	if _, err := Import(t.Context(), t.TempDir(), Files{}, DefaultOptions()); !errors.Is(err, resolution.ErrInvalid) {
		t.Errorf("no files: %v", err)
	}
	if _, err := Import(t.Context(), t.TempDir(), Files{People: "/no/such/file.csv"}, DefaultOptions()); !errors.Is(err, resolution.ErrInvalid) {
		t.Errorf("a missing file: %v", err)
	}
}
