package directory

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
)

// at is the default options on a clock that stands.
var firstDay = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func at(now time.Time) Options {
	o := DefaultOptions()
	o.Now = func() time.Time { return now }
	return o
}

func importAt(t *testing.T, dir string, now time.Time, files Files) {
	t.Helper()
	if _, err := Import(t.Context(), dir, files, at(now)); err != nil {
		t.Fatal(err)
	}
}

// searchesOf are the searches of one keyword by people of these names.
func searchesOf(t *testing.T, people ...string) Files {
	text := "keyword,searched_at,network_url\n"
	for i, p := range people {
		text += "tea," + firstDay.Add(-time.Duration(i)*time.Hour).Format(time.RFC3339) + ",network.example/in/" + p + "\n"
	}
	return Files{Searches: source(t, "searches.csv", text)}
}

// who are the names behind an edition, in order.
func who(t *testing.T, d *Directory, edition string) string {
	t.Helper()
	found, total, err := d.Searches().Find(t.Context(), resolution.KeywordSearch{Keywords: []string{"tea"}, Edition: edition}, 0, 100)
	if errors.Is(err, resolution.ErrNoEdition) {
		return "no edition"
	}
	if err != nil || total != int64(len(found)) {
		t.Fatal(total, err)
	}
	var names []string
	for _, f := range found {
		names = append(names, strings.TrimPrefix(f.NetworkURL, "network.example/in/"))
	}
	return strings.Join(names, " ")
}

func opened(t *testing.T, dir string, do func(d *Directory)) {
	t.Helper()
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	do(d)
	if err := d.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestEditions: an edition is answered for more than a day after it was
// replaced, by whoever opens the directory.
func TestEditions(t *testing.T) {
	dir := t.TempDir()
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	importAt(t, dir, start, searchesOf(t, "ada", "ben"))
	first := mustOpen(t, dir)
	ada := first.Searches().Edition()
	importAt(t, dir, start.Add(time.Minute), searchesOf(t, "cleo"))
	if got := who(t, first, ada); got != "ada ben" {
		t.Errorf("who was open before finds %q", got)
	}
	var cleo string
	opened(t, dir, func(d *Directory) {
		cleo = d.Searches().Edition()
		for _, f := range []struct{ edition, want string }{{"", "cleo"}, {cleo, "cleo"}, {ada, "ada ben"}, {ada, "ada ben"}, {"other", "no edition"}, {noEdition, ""}} {
			if got := who(t, d, f.edition); got != f.want {
				t.Errorf("edition %q: %q, want %q", f.edition, got, f.want)
			}
		}
	})
	if ada == cleo || ada == "" {
		t.Errorf("editions %q and %q", ada, cleo)
	}
	people := Files{People: source(t, "people.csv", samplePeople)}
	for _, f := range []struct {
		name  string
		after time.Duration // since it was replaced
		want  string
	}{
		{"another kind", time.Hour, "ada ben"},
		{"just before", 25 * time.Hour, "ada ben"},
		{"just after", 25*time.Hour + time.Second, "no edition"},
	} {
		importAt(t, dir, start.Add(time.Minute).Add(f.after), people)
		opened(t, dir, func(d *Directory) {
			if got := who(t, d, ada); got != f.want || who(t, d, cleo) != "cleo" {
				t.Errorf("%s: %q, want %q", f.name, got, f.want)
			}
		})
	}
	if got := who(t, first, ada); got != "ada ben" {
		t.Errorf("who was open before finds %q in the end", got)
	}
	if got := len(files(t, dir)); got != 4 {
		t.Errorf("files stay: %v", files(t, dir))
	}
}

// TestEditionRemovedUnderReader: a reader that never opened it cannot any more.
func TestEditionRemovedUnderReader(t *testing.T) {
	dir := t.TempDir()
	importAt(t, dir, firstDay, searchesOf(t, "ada"))
	ada := mustOpen(t, dir).Searches().Edition()
	importAt(t, dir, firstDay, searchesOf(t, "cleo"))
	late, early := mustOpen(t, dir), mustOpen(t, dir)
	if got := who(t, early, ada); got != "ada" {
		t.Error(got)
	}
	importAt(t, dir, firstDay.Add(26*time.Hour), searchesOf(t, "dan"))
	if got := who(t, early, ada); got != "ada" {
		t.Errorf("opened before: %q", got)
	}
	if got := who(t, late, ada); got != "no edition" {
		t.Errorf("not opened before: %q", got)
	}
	if err := late.Verify(t.Context()); err != nil {
		t.Errorf("verify of a view whose retired files are gone: %v", err)
	}
}

// TestSameSearchesAgain: content, not its import, is the edition, so that two
// imports of it need no second file.
func TestSameSearchesAgain(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	ada, cleo := searchesOf(t, "ada"), searchesOf(t, "cleo")
	importAt(t, dir, firstDay, ada)
	edition := mustOpen(t, dir).Searches().Edition()
	for i, step := range []struct {
		files Files
		want  int // files of searches
	}{{ada, 1}, {cleo, 2}, {ada, 2}, {ada, 2}, {cleo, 2}} {
		importAt(t, dir, firstDay.Add(time.Duration(i)*time.Minute), step.files)
		if got := len(files(t, dir)) - 1; got != step.want {
			t.Errorf("after import %d: %v", i, files(t, dir))
		}
		opened(t, dir, func(d *Directory) {
			if got := who(t, d, edition); got != "ada" {
				t.Errorf("after import %d: %q", i, got)
			}
		})
	}
	importAt(t, other, firstDay.AddDate(1, 0, 0), ada)
	if got := mustOpen(t, other).Searches().Edition(); got != edition {
		t.Errorf("elsewhere it is %s, here %s", got, edition)
	}
}

// TestFailedImportKeepsEditions also those that it would have let go.
func TestFailedImportKeepsEditions(t *testing.T) {
	dir := t.TempDir()
	importAt(t, dir, firstDay, searchesOf(t, "ada"))
	ada := mustOpen(t, dir).Searches().Edition()
	importAt(t, dir, firstDay, searchesOf(t, "cleo"))
	before := files(t, dir)
	bad := Files{Searches: source(t, "s.csv", "keyword,searched_at,email\ntea,never,a@x.example\n")}
	if _, err := Import(t.Context(), dir, bad, at(firstDay.AddDate(0, 0, 9))); !errors.Is(err, resolution.ErrInvalid) {
		t.Error(err)
	}
	if got := files(t, dir); strings.Join(got, " ") != strings.Join(before, " ") {
		t.Errorf("files %v, want %v", got, before)
	}
	opened(t, dir, func(d *Directory) {
		if got := who(t, d, ada); got != "ada" {
			t.Error(got)
		}
	})
}

// TestNoSearches: an edition of nothing stays one.
func TestNoSearches(t *testing.T) {
	dir := t.TempDir()
	importAt(t, dir, firstDay, Files{People: source(t, "people.csv", samplePeople)})
	var none string
	opened(t, dir, func(d *Directory) {
		none = d.Searches().Edition()
		if got := who(t, d, ""); got != "" {
			t.Error(got)
		}
	})
	importAt(t, dir, firstDay, searchesOf(t, "ada"))
	opened(t, dir, func(d *Directory) {
		if got := who(t, d, none); got != "" || d.Searches().Edition() == none {
			t.Errorf("%q in edition %q of %q", got, none, d.Searches().Edition())
		}
	})
}

// TestDirectoryOfAnEarlierVersion: a directory with files of earlier formats says what to import
// again, takes the imports one by one, and is whole after them.
func TestDirectoryOfAnEarlierVersion(t *testing.T) {
	dir := t.TempDir()
	old := manifest{Format: 2, Generation: 5, Kinds: map[Kind]entry{}}
	for k, format := range map[Kind]string{People: "cols2", Companies: "sqlite", IPRanges: "mmdb", Searches: "columns", Visits: "cols"} {
		e := entry{File: dataFileName(k, 5, format), Source: "the " + string(k), Bytes: 3, Content: "0123456789"}
		old.Kinds[k] = e
		if err := os.WriteFile(filepath.Join(dir, e.File), []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := old.write(dir); err != nil {
		t.Fatal(err)
	}
	refused := func(kinds ...Kind) {
		t.Helper()
		d, err := Open(dir)
		command := "leadetl directory import --directory " + dir
		for _, k := range kinds {
			command += fmt.Sprintf(" --%s 'the %s'", k, k)
		}
		if !errors.Is(err, resolution.ErrInvalid) || !strings.HasSuffix(err.Error(), ": "+command) {
			t.Errorf("%v, %v; want %q", d, err, command)
		}
	}
	refused(Kinds...)
	files := sampleFiles(t)
	mustImport(t, dir, Files{People: files.People, Searches: files.Searches})
	refused(Companies, IPRanges, Visits)
	mustImport(t, dir, files)
	opened(t, dir, func(d *Directory) {
		if p, err := d.Person("network.example/in/ada"); err != nil || p == nil {
			t.Error(p, err)
		}
	})
	if left, err := filepath.Glob(filepath.Join(dir, "*-000005.*")); err != nil || len(left) > 0 {
		t.Errorf("%v stay: %v", left, err)
	}
}

// TestVerifyOfWrongData: whatever does not match the manifest is damage, which is not a failure
// of the machine.
func TestVerifyOfWrongData(t *testing.T) {
	dir := t.TempDir()
	importAt(t, dir, firstDay, searchesOf(t, "ada"))
	importAt(t, dir, firstDay, searchesOf(t, "cleo"))
	for _, f := range []struct {
		name, says string
		change     func(*testing.T, *Directory)
	}{
		{"a count of rows", "searches: searches-000002.cols5: the file is damaged: 1 rows, the import counted 7", func(_ *testing.T, d *Directory) {
			e := d.manifest.Kinds[Searches]
			e.Rows = 7
			d.manifest.Kinds[Searches] = e
		}},
		{"a checksum", "searches: searches-000002.cols5: the file is damaged: its checksum differs", func(_ *testing.T, d *Directory) {
			e := d.manifest.Kinds[Searches]
			e.SHA256 = d.manifest.Retired[0].SHA256
			d.manifest.Kinds[Searches] = e
		}},
		{"retired searches", "retired searches: searches-000001.cols5: the file is damaged: its checksum differs", func(t *testing.T, d *Directory) {
			f, err := os.OpenFile(filepath.Join(dir, d.manifest.Retired[0].File), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.WriteAt([]byte("~"), 100)
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		d := mustOpen(t, dir)
		if err := d.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.change(t, d)
		if err := d.Verify(t.Context()); !errors.Is(err, keyed.ErrDamaged) || !strings.HasPrefix(err.Error(), f.says) {
			t.Errorf("%s: %v; want %q", f.name, err, f.says)
		}
	}
}

// TestOddRetired: a manifest cannot have files removed or read that are not
// the directory's.
func TestOddRetired(t *testing.T) {
	dir := t.TempDir()
	importAt(t, dir, firstDay, searchesOf(t, "ada"))
	importAt(t, dir, firstDay, searchesOf(t, "cleo"))
	path := filepath.Join(dir, manifestName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	m.Retired[0].File = "../" + m.Retired[0].File
	if err := m.write(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, resolution.ErrInvalid) {
		t.Error(err)
	}
}
