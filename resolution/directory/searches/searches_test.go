package searches

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/imports"
)

const searchesName = "searches-000001.cols"

// searched is a file of these searches.
func searched(tb testing.TB, dir string, all []cells) *File {
	tb.Helper()
	to, err := atomicfile.Create(filepath.Join(dir, searchesName), 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	b := newBuilder(imports.File{Writer: to, Scratch: dir})
	for _, s := range all {
		if err := b.addSearch(s); err != nil {
			tb.Fatal(err)
		}
	}
	if err := errors.Join(b.write(tb.Context()), b.close(), to.Commit()); err != nil {
		tb.Fatal(err)
	}
	f, err := Open(disk.Dir(dir), searchesName)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// scan is Find by looking at every search.
func scan(all []cells, q resolution.KeywordSearch) (found []Found) {
	type lead struct {
		Found
		key     string
		matched []bool
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b cells) int { return cmp.Compare(b.at, a.at) })
	leads := map[string]*lead{}
	for _, s := range sorted {
		matched := make([]bool, len(q.Keywords))
		for i, k := range q.Keywords {
			matched[i] = hasPhrase(s.keyword, k)
		}
		if len(q.Keywords) > 0 && !slices.Contains(matched, true) || !holds(s, q) {
			continue
		}
		key := "n" + s.person
		if s.person == "" {
			key = "e" + s.email
		}
		id := leadIDOf(key)
		l := leads[key]
		if l == nil {
			l = &lead{key: key, matched: make([]bool, len(q.Keywords)), Found: Found{LeadID: fmt.Sprintf("lead_%x", id),
				LeadType: s.leadType, SearchedAt: time.UnixMicro(s.at).UTC(), NetworkURL: s.person, EmailKey: s.email, JobTitle: s.jobTitle,
				Address: resolution.Address{City: s.city, State: s.state, ZipCode: s.zip}}}
			leads[key] = l
		}
		for i, m := range matched {
			l.matched[i] = l.matched[i] || m
		}
	}
	for _, l := range leads {
		for i, m := range l.matched {
			if m {
				l.MatchedKeywords = append(l.MatchedKeywords, q.Keywords[i])
			}
		}
		found = append(found, l.Found)
	}
	slices.SortFunc(found, func(a, b Found) int {
		return cmp.Or(b.SearchedAt.Compare(a.SearchedAt), strings.Compare(a.LeadID, b.LeadID))
	})
	return found
}

func hasPhrase(text, phrase string) bool {
	plain := func(s string) string {
		return " " + strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), " ") + " "
	}
	if plain(phrase) == "  " {
		return phrase == text
	}
	return strings.Contains(plain(text), plain(phrase))
}

func holds(s cells, q resolution.KeywordSearch) bool {
	any := func(values []string, is func(string) bool) bool {
		return len(values) == 0 || slices.ContainsFunc(values, is)
	}
	same := func(as string) func(string) bool { return func(v string) bool { return strings.EqualFold(v, as) } }
	in := func(part string) bool {
		return s.jobTitle != "" && strings.Contains(strings.ToLower(s.jobTitle), strings.ToLower(part))
	}
	at := time.UnixMicro(s.at)
	return any(q.Cities, same(s.city)) && any(q.States, same(s.state)) && any(q.Zips, same(s.zip)) &&
		(q.LeadType == "" || q.LeadType == s.leadType) &&
		any(q.JobTitleInclusions, in) && !slices.ContainsFunc(q.JobTitleExclusions, in) &&
		(q.Start.IsZero() || !at.Before(q.Start)) && (q.End.IsZero() || at.Before(q.End.Add(24*time.Hour)))
}

var (
	someWords  = []string{"tea", "green", "rye", "été", "cup", "9001", "*", "🍵", "te"}
	someTitles = []string{"", "Head Baker", "head baker", "Baker", "Éditeur", "Engineer II", "er", "B"}
	someCities = []string{"", "Ipsum", "IPSUM", "San Example", "Ipsu"}
	firstDay   = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
)

func someText(t *rapid.T, name string) string {
	picked := rapid.SliceOfN(rapid.SampledFrom(someWords), 1, 4).Draw(t, name)
	return strings.Join(picked, " ")
}

func some(t *rapid.T, name string, of []string) []string {
	return rapid.SliceOfN(rapid.SampledFrom(of), 0, 2).Draw(t, name)
}

func someSearch(t *rapid.T) cells {
	s := cells{
		keyword: someText(t, "keyword"),
		// Few moments, so that many are equal.
		at:       firstDay.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "at")) * 6 * time.Hour).UnixMicro(),
		city:     rapid.SampledFrom(someCities).Draw(t, "city"),
		state:    rapid.SampledFrom([]string{"", "CA", "NY"}).Draw(t, "state"),
		zip:      rapid.SampledFrom([]string{"", "94105", "94105-1234"}).Draw(t, "zip"),
		jobTitle: rapid.SampledFrom(someTitles).Draw(t, "title"),
		leadType: rapid.SampledFrom(leadTypes).Draw(t, "type"),
	}
	who := rapid.IntRange(0, 15).Draw(t, "who")
	if who%3 != 0 {
		s.person = fmt.Sprint("network.example/in/p", who)
	}
	if who%2 == 0 || s.person == "" {
		s.email = fmt.Sprintf("p%d@mail.example", who)
	}
	return s
}

func someQuery(t *rapid.T) resolution.KeywordSearch {
	q := resolution.KeywordSearch{
		Cities:             some(t, "cities", someCities),
		States:             some(t, "states", []string{"ca", "NY", "FL"}),
		Zips:               some(t, "zips", []string{"94105", "94105-1234", "1"}),
		LeadType:           rapid.SampledFrom(leadTypes).Draw(t, "lead type"),
		JobTitleInclusions: some(t, "inclusions", []string{"baker", "ER", "é", "x", "d b"}),
		JobTitleExclusions: some(t, "exclusions", []string{"head", "ii", "x"}),
	}
	for range rapid.IntRange(0, 3).Draw(t, "keywords") {
		q.Keywords = append(q.Keywords, someText(t, "wanted"))
	}
	if rapid.Bool().Draw(t, "dated") {
		q.Start = firstDay.AddDate(0, 0, rapid.IntRange(0, 3).Draw(t, "start"))
		q.End = q.Start.AddDate(0, 0, rapid.IntRange(0, 2).Draw(t, "days"))
	}
	return q
}

// TestFindIsScan compares the columns with looking at every search.
func TestFindIsScan(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(someSearch), 0, 80).Draw(rt, "searches")
		d := searched(t, dir, all)
		defer d.Close()
		if _, _, err := d.Verify(t.Context()); err != nil {
			rt.Fatal(err)
		}
		for range 10 {
			q := someQuery(rt)
			want := scan(all, q)
			skip, limit := rapid.IntRange(0, 5).Draw(rt, "skip"), rapid.IntRange(1, 20).Draw(rt, "limit")
			found, total, err := d.Find(t.Context(), q, int64(skip), limit)
			if err != nil || total != int64(len(want)) {
				rt.Fatalf("%+v: %d leads, %v; want %d", q, total, err, len(want))
			}
			want = want[min(skip, len(want)):]
			want = want[:min(limit, len(want))]
			if len(found) != len(want) || len(want) > 0 && !reflect.DeepEqual(found, want) {
				rt.Fatalf("%+v:\n got %+v\nwant %+v", q, found, want)
			}
		}
	})
}

// manyOf is n searches by n people, two seconds apart, the last by the first.
func manyOf(n int) (all []cells) {
	for i := range n {
		all = append(all, cells{keyword: "tea", at: firstDay.Add(-time.Duration(i) * 2 * time.Second).UnixMicro(),
			person: fmt.Sprint("network.example/in/p", i)})
	}
	return all
}

func TestSample(t *testing.T) {
	for _, f := range []struct{ leads, most, want, every int }{
		{0, 10, 0, 1}, {9, 10, 9, 1}, {10, 10, 10, 1}, {11, 10, 6, 2}, {20, 10, 10, 2}, {21, 10, 6, 4}, {1000, 10, 8, 128},
		{1000, 1, 1, 1024}, {7, 3, 2, 4}, {1000, 7, 4, 256},
	} {
		d := searched(t, t.TempDir(), manyOf(f.leads))
		found, total, err := d.Sample(t.Context(), resolution.KeywordSearch{}, f.most)
		if err != nil || total != int64(f.leads) || len(found) != f.want {
			t.Errorf("%d of %d: %d, total %d, %v; want %d", f.most, f.leads, len(found), total, err, f.want)
		}
		for i, s := range found {
			if want := fmt.Sprint("network.example/in/p", i*f.every); s.NetworkURL != want {
				t.Errorf("%d of %d: number %d is %s, want %s", f.most, f.leads, i, s.NetworkURL, want)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestManyRows crosses the borders of words of bits, of blocks and of what one
// processor does alone.
func TestManyRows(t *testing.T) {
	const n = 5*block + 130
	all := manyOf(n)
	for i := range all {
		all[i].leadType = leadTypes[1+i%2]
		if i%1000 == 7 {
			all[i].city = "Ipsum"
		}
	}
	d := searched(t, t.TempDir(), all)
	defer d.Close()
	for _, f := range []struct {
		name string
		q    resolution.KeywordSearch
		want int64
	}{
		{"all", resolution.KeywordSearch{Keywords: []string{"tea"}}, n},
		{"half", resolution.KeywordSearch{LeadType: "b2c"}, n / 2},
		{"few", resolution.KeywordSearch{Cities: []string{"ipsum"}}, (n + 992) / 1000},
		{"few of half", resolution.KeywordSearch{Cities: []string{"ipsum"}, LeadType: "b2c"}, (n + 992) / 1000},
		{"none of half", resolution.KeywordSearch{Cities: []string{"ipsum"}, LeadType: "b2b"}, 0},
		{"the day before", resolution.KeywordSearch{Start: firstDay.AddDate(0, 0, -1), End: firstDay.AddDate(0, 0, -1)}, 12 * 60 * 60},
		{"the first second", resolution.KeywordSearch{Start: firstDay}, 1},
		{"the rest", resolution.KeywordSearch{End: firstDay.AddDate(0, 0, -2)}, n - 12*60*60 - 1},
	} {
		_, total, err := d.Find(t.Context(), f.q, 0, 1)
		if err != nil || total != f.want {
			t.Errorf("%s: %d, %v; want %d", f.name, total, err, f.want)
		}
	}
}

// TestDamagedSearches: a file that is not what was written is an error, never
// the end of the process.
func TestDamagedSearches(t *testing.T) {
	everything := resolution.KeywordSearch{Keywords: []string{"tea"}, Cities: []string{"Ipsum", "x"}, LeadType: "b2b"}
	for _, f := range []struct {
		name   string
		change func(path string, table *keyed.Columns) error
	}{
		{"a code of nothing", func(path string, table *keyed.Columns) error {
			return poke(path, table.Offset("city"), "\xff\xff\xff\xff")
		}},
		{"a lead of nothing", func(path string, table *keyed.Columns) error {
			return poke(path, table.Offset("lead"), "\xff\xff\xff\x7f")
		}},
		{"an offset of nothing", func(path string, table *keyed.Columns) error {
			return poke(path, table.Offset("keyword_words_offsets")+8, "\xff\xff\xff\xff\xff\xff\xff\xff")
		}},
		{"cut while it is open", func(path string, _ *keyed.Columns) error { return os.Truncate(path, 0) }},
	} {
		all := manyOf(100)
		for i := range all {
			all[i].leadType, all[i].city, all[i].keyword = "b2b", []string{"Ipsum", "x", ""}[i%3], fmt.Sprint("tea ", i%7)
		}
		everything.Keywords = []string{"tea 3", "tea 0"}
		dir := t.TempDir()
		d := searched(t, dir, all)
		if err := f.change(filepath.Join(dir, searchesName), d.file); err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.Find(t.Context(), everything, 0, 100); !errors.Is(err, resolution.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", f.name, err)
		}
		if _, _, err := d.Verify(t.Context()); !errors.Is(err, keyed.ErrDamaged) {
			t.Errorf("%s: verify: %v, want ErrDamaged", f.name, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestVerifyOfWrongColumns: the checksums are right, but the columns do not match each other.
func TestVerifyOfWrongColumns(t *testing.T) {
	for _, f := range []struct {
		name, says string
		change     func(*File)
	}{
		{"order", "search 1 is out of order", func(f *File) { f.at = []int64{f.at[1], f.at[0]} }},
		{"a code of nothing", "keyword: number 0 belongs to nothing", func(f *File) { f.keyword = []uint32{7, 0} }},
		{"the words of a keyword", "the words are in other keywords", func(f *File) { f.wordKeywords = keyed.Lists{Offsets: []uint64{0, 0}} }},
	} {
		d := searched(t, t.TempDir(), manyOf(2))
		f.change(d)
		if _, _, err := d.Verify(t.Context()); !errors.Is(err, keyed.ErrDamaged) || !strings.Contains(err.Error(), f.says) {
			t.Errorf("%s: %v; want ErrDamaged and %q", f.name, err, f.says)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

func poke(path string, at int64, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(text), at)
	return errors.Join(err, f.Close())
}

// TestOpenNoColumns: whatever the bytes, a file is refused in words.
func TestOpenNoColumns(t *testing.T) {
	const magic, trailer = "LEADCOL2", 48
	dir := t.TempDir()
	d := searched(t, dir, manyOf(3))
	path := filepath.Join(dir, searchesName)
	whole, err := os.ReadFile(path)
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	end := len(whole) - trailer
	for _, f := range []struct{ name, text, says string }{
		{"nothing", "", "not a column file"},
		{"a few bytes", magic, "not a column file"},
		{"a database", strings.Repeat("SQLite format 3\x00", 10), "not a column file"},
		{"cut", string(whole[:len(whole)-1]), "not a column file"},
		{"another byte order", string(whole[:end]) + string(whole[end:end+32]) + "\x01\x02\x03\x04\x05\x06\x07\x08" + magic, "another byte order"},
		{"a table out of place", string(whole[:end]) + strings.Repeat("\xff", 16) + string(whole[end+16:]), "out of place"},
		{"a section out of place", strings.Replace(string(whole), `"name":"lead","width":4,"offset":`, `"name":"lead","width":4,"offset":9`, 1), ""},
		{"a section of other numbers", strings.Replace(string(whole), `"name":"lead","width":4`, `"name":"lead","width":2`, 1), "wrong checksum"},
		{"a section missing", strings.Replace(string(whole), `"name":"state"`, `"name":"stale"`, 1), "wrong checksum"},
	} {
		if err := os.WriteFile(path, []byte(f.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(disk.Dir(dir), searchesName); err == nil || !strings.Contains(err.Error(), f.says) {
			t.Errorf("%s: %v, %v; want an error that says %q", f.name, s, err, f.says)
		}
	}
}
