package embedded

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
	"github.com/leadetl/leadetl/resolution/values"
)

// damageRows is how many rows of each kind the tests of damage import: enough for files of
// several pages, so that a file with a damaged page can be opened.
const damageRows = 1500

// damageSample imports rows whose files have several pages, and that refer to each other.
func damageSample(t *testing.T) (dir string) {
	var people, companies, ranges, visits, searches strings.Builder
	people.WriteString("network_url,first_name,headline,emails,phones,company_domain\n")
	companies.WriteString("domain,name,about\n")
	ranges.WriteString("cidr,company_domain,name,org_type\n")
	visits.WriteString("ip,network_url,seen_at,confidence\n")
	searches.WriteString("keyword,searched_at,network_url,email,city,job_title\n")
	for i := range damageRows {
		fmt.Fprintf(&people, "network.example/in/p%d,First%d,%s,p%d@x.example;q%d@%s.example,+1202555%04d,c%d.example\n", i, i%7, strings.Repeat("head ", i%9), i, i, strings.Repeat("y", 60), i, i)
		fmt.Fprintf(&companies, "c%d.example,%s,%s%d\n", i, [2]string{fmt.Sprint("Company ", i)}[i%2], strings.Repeat("about ", 25+i%9), i)
		fmt.Fprintf(&ranges, "8.%d.%d.0/28,c%d.example,Range %d,business\n", i/250, i%250, i, i)
		fmt.Fprintf(&visits, "9.%d.%d.1,network.example/in/p%d,2026-11-01,0.5\n9.%d.%d.1,network.example/in/%s%d,,0.9\n", i/250, i%250, i, i/250, i%250, strings.Repeat("x", 110), i)
		fmt.Fprintf(&searches, "tea %d,2026-11-%02d,network.example/in/p%d,,City %d,Title of the one and great and very only number %d\ntea,2026-10-01,,r%d@z.example,,\n", i%50, 1+i%28, i, i%100, i%100, i)
	}
	dir = t.TempDir()
	files := directory.Files{People: file(t, "p.csv", people.String()), Companies: file(t, "c.csv", companies.String()),
		IPRanges: file(t, "r.csv", ranges.String()), Visits: file(t, "v.csv", visits.String()), Searches: file(t, "s.csv", searches.String())}
	if _, err := directory.Import(t.Context(), dir, files, directory.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// question is a way to ask an engine for many rows.
type question struct {
	name string
	ask  func(*Engine) (any, error)
}

// damageKeys are keys all over the sample.
func damageKeys(op resolution.Operation) (keys []string) {
	for i := 0; i < damageRows; i += 59 {
		key := fmt.Sprintf("network.example/in/p%d", i)
		switch op {
		case resolution.EmailToHEM:
			key = fmt.Sprintf("q%d@%s.example", i, strings.Repeat("y", 60))
		case resolution.IPToCompany:
			key = fmt.Sprintf("8.%d.%d.1", i/250, i%250)
		case resolution.Deanonymization:
			key = fmt.Sprintf("%d.%d.%d.1", 8+i%2, i/250, i%250)
		}
		keys = append(keys, key)
	}
	return keys
}

// questions are all ways to read the directory: the operations on one record, and searches.
func questions() (all []question) {
	for i, op := range slices.Concat(resolution.SingleRecord, resolution.SingleRecord) {
		keys, byRows := damageKeys(op), i >= len(resolution.SingleRecord)
		all = append(all, question{string(op), func(e *Engine) (any, error) {
			got, err := resolutiontest.Ask(context.Background(), e.NewBatch(op), op, keys...)
			if err == nil && byRows {
				rows := resolutiontest.Answers()
				list := rows.Companies.Table.(*resolution.CompanyList)
				rows.Companies.Table = rowsTable{list}
				if _, err = e.NewBatch(op).Resolve(context.Background(), resolutiontest.Questions(op, keys...), math.MaxInt, rows); err == nil {
					listRows(&rows.Companies, list)
				}
				got = rows
			}
			var leads []*resolution.Lead
			for i := range got.Len() {
				leads = append(leads, got.Lead(i))
			}
			return []any{leads, got.Reasons, got.OrgTypes}, err
		}})
	}
	search := resolution.KeywordSearch{Keywords: []string{"tea 7"}}
	return append(all,
		question{"search", func(e *Engine) (any, error) {
			return e.Search(context.Background(), search, resolution.SearchPage{Number: 1, Limit: 50, HEMs: 9, Deanonymize: true, SuperEnrichment: true})
		}},
		question{"count", func(e *Engine) (any, error) { return e.Count(context.Background(), search, 1) }},
	)
}

// rightAnswers are the answers of an undamaged directory, in JSON.
func rightAnswers(t *testing.T, dir string) (right []string) {
	d, err := directory.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, q := range questions() {
		answer, err := q.ask(New(d, Options{}))
		text, jsonErr := json.Marshal(answer)
		if err := errors.Join(err, jsonErr); err != nil {
			t.Fatal(q.name, err)
		}
		right = append(right, string(text))
	}
	return right
}

// askDamaged asks all questions. Each is answered rightly, or its error names the damaged kind.
// It returns how many failed.
func askDamaged(t *testing.T, d *directory.Directory, kind directory.Kind, what string, right []string) (failed int) {
	t.Helper()
	e := New(d, Options{})
	for i, q := range questions() {
		answer, err := q.ask(e)
		if err != nil {
			failed++
			for line := range strings.SplitSeq(err.Error(), "\n") {
				again := cmp.Or(map[directory.Kind]string{"joins": "people, companies or ip-ranges"}[kind], string(kind))
				if !strings.Contains(line, fmt.Sprintf("the file of %s is damaged, import the %s again: ", kind, again)) {
					t.Errorf("%s, %s: %s: %s", kind, what, q.name, line)
				}
			}
			if !errors.Is(err, keyed.ErrDamaged) || !errors.Is(err, resolution.ErrUnavailable) {
				t.Errorf("%s, %s: %s: %v, want ErrDamaged and ErrUnavailable", kind, what, q.name, err)
			}
			continue
		}
		if text, err := json.Marshal(answer); err != nil || string(text) != right[i] {
			t.Errorf("%s, %s: %s: another answer, %v", kind, what, q.name, err)
		}
	}
	return failed
}

// eachFile calls do with the path of the file of each kind.
func eachFile(t *testing.T, dir string, do func(kind directory.Kind, path string)) {
	t.Helper()
	d, err := directory.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, s := range d.Stat() {
		do(s.Kind, filepath.Join(dir, s.File))
	}
	do("joins", filepath.Join(dir, "joins-000001."+values.DirectoryFormat))
}

// TestDamage changes one byte of a file at a time: in every section, in the checksum of every
// page, and in every word of the trailer. No look-up answers wrongly. Those that meet the
// damage name the kind, and so does Verify of a directory that was open before.
func TestDamage(t *testing.T) {
	dir := damageSample(t)
	right := rightAnswers(t, dir)
	eachFile(t, dir, func(kind directory.Kind, path string) {
		c, err := keyed.OpenColumns(disk.Dir(dir), filepath.Base(path))
		if err != nil {
			t.Fatal(err)
		}
		places := c.Places()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		before, err := directory.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer before.Close()
		refused, failed, pages := 0, 0, 0
		for _, place := range places {
			if strings.HasPrefix(place.Of, "the checksum of page ") {
				pages++
			}
			flip(t, path, place.Offset)
			d, err := directory.Open(dir)
			switch {
			case err == nil:
				failed += askDamaged(t, d, kind, place.Of, right)
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			case !errors.Is(err, keyed.ErrDamaged) || !errors.Is(err, resolution.ErrInvalid) || !strings.Contains(err.Error(), path):
				t.Errorf("%s, %s: open: %v", kind, place.Of, err)
			default:
				refused++
			}
			if err := before.Verify(t.Context()); !errors.Is(err, keyed.ErrDamaged) || !strings.HasPrefix(err.Error(), string(kind)+": ") {
				t.Errorf("%s, %s: verify: %v", kind, place.Of, err)
			}
			flip(t, path, place.Offset)
		}
		if pages < 4 {
			t.Errorf("%s: only %d pages", kind, pages)
		}
		if refused == 0 || failed == 0 {
			t.Errorf("%s: of %d places, %d were noticed by Open, and %d look-ups met others", kind, len(places), refused, failed)
		}
		if err := before.Verify(t.Context()); err != nil {
			t.Errorf("%s, put right: %v", kind, err)
		}
	})
}

// TestCutWhileOpen: a file of any kind that is cut while it is open is an error that names the
// kind, and never the end of the process.
func TestCutWhileOpen(t *testing.T) {
	dir := damageSample(t)
	right := rightAnswers(t, dir)
	eachFile(t, dir, func(kind directory.Kind, path string) {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []struct {
			name string
			left int64
			used bool // before it was cut
		}{
			{"nothing left", 0, false},
			{"half left", int64(len(whole) / 2), false},
			{"nothing left of what was read", 0, true},
		} {
			d, err := directory.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if f.used {
				askDamaged(t, d, kind, "whole", right)
			}
			if err := os.Truncate(path, f.left); err != nil {
				t.Fatal(err)
			}
			if askDamaged(t, d, kind, f.name, right) == 0 {
				t.Errorf("%s, %s: no look-up met it", kind, f.name)
			}
			if err := d.Verify(t.Context()); !errors.Is(err, keyed.ErrDamaged) || !strings.HasPrefix(err.Error(), string(kind)+": ") {
				t.Errorf("%s, %s: verify: %v", kind, f.name, err)
			}
			if err := errors.Join(os.WriteFile(path, whole, 0o644), d.Close()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// flip inverts a byte of a file.
func flip(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	b[0] = ^b[0]
	_, writeErr := f.WriteAt(b[:], at)
	if err := errors.Join(err, writeErr, f.Close()); err != nil {
		t.Fatal(err)
	}
}
