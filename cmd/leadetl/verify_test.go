package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/verify"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/place"
)

// raggedList has rows for three parts of four, one rejected, one malformed.
const raggedList = "id,email\n1,a@x.example\n2,b@x.example\n3,\n4,d@x.example\n" +
	"5,e@x.example,more\n6,f@x.example\n7,g@x.example\n8,h@x.example\n9,i@x.example\n10,j@x.example\n"

// ragged makes the dataset of raggedList.
func ragged(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte(raggedList), 0o644); err != nil {
		t.Fatal(err)
	}
	clitest.RunRaw(t, "run", "email_to_hem", "--in", in, "--out", out, "--set", "rows_per_part=4", "--state", filepath.Join(dir, "state"), "--quiet")
	return out
}

// editManifest changes the manifest of a dataset.
func editManifest(t *testing.T, dataset string, edit func(*sinks.Manifest)) {
	t.Helper()
	path := filepath.Join(dataset, "_manifest.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m sinks.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	edit(&m)
	if data, err = json.Marshal(m); err == nil {
		err = errors.Join(os.WriteFile(path, data, 0o644), os.WriteFile(filepath.Join(dataset, "_SUCCESS"), fmt.Appendf(nil, "sha256 %x _manifest.json\n", sha256.Sum256(data)), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// rewrite changes the bytes of a file.
func rewrite(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(data), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestVerifyFindsDamageAnywhere changes each file of a dataset in each of its parts: all but the two
// reports.
func TestVerifyFindsDamageAnywhere(t *testing.T) {
	out := ragged(t)
	found := func() bool {
		r, err := verify.Check(t.Context(), clitest.OpenLocal(t, out), verify.Options{Rules: program.VerifyRules, Workers: 2})
		return err != nil || len(r.Failures) > 0
	}
	names, err := clitest.OpenLocal(t, out).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, place.IsReport)
	files := make([][]byte, len(names))
	for i, name := range names {
		if files[i], err = os.ReadFile(filepath.Join(out, name)); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range names {
		whole, other := files[i], files[(i+1)%len(names)]
		damages := map[string][]byte{"empty": {}, "cut": whole[:len(whole)-1], "longer": append(slices.Clone(whole), 0), "half": whole[:len(whole)/2], "replaced": other, "gone": nil}
		for place := range 12 {
			flipped := slices.Clone(whole)
			flipped[(2*place+1)*len(whole)/24] ^= 1 << (place % 8)
			damages[fmt.Sprintf("a bit in place %d", place)] = flipped
		}
		for from := 0; from < len(whole); from += 512 {
			zeroed := slices.Clone(whole)
			clear(zeroed[from:min(from+512, len(zeroed))])
			damages[fmt.Sprintf("zeros from %d", from)] = zeroed
		}
		for damage, data := range damages {
			path := filepath.Join(out, name)
			if err := errors.Join(os.RemoveAll(path), write(path, data)); err != nil {
				t.Fatal(err)
			}
			if !found() {
				t.Errorf("%s: %s: nothing is found", name, damage)
			}
		}
		if err := write(filepath.Join(out, name), whole); err != nil {
			t.Fatal(err)
		}
	}
	if found() {
		t.Error("the dataset as it was has a failure")
	}
}

// write writes a file, unless data is nil.
func write(path string, data []byte) error {
	if data == nil {
		return nil
	}
	return os.WriteFile(path, data, 0o644)
}

// TestVerifyNamesEveryDamage does to a dataset what disks, people and copies
// do, one thing at a time.
func TestVerifyNamesEveryDamage(t *testing.T) {
	whole := ragged(t)
	if found := clitest.Failures(t, whole); len(found) > 0 {
		t.Fatalf("the dataset as it was written: %q", found)
	}
	flip := func(name string, at func(size int) int) func(*testing.T, string) {
		return func(t *testing.T, out string) {
			rewrite(t, filepath.Join(out, name), func(data []byte) []byte { data[at(len(data))] ^= 4; return data })
		}
	}
	remove := func(name string) func(*testing.T, string) {
		return func(t *testing.T, out string) {
			if err := os.Remove(filepath.Join(out, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	add := func(name string) func(*testing.T, string) {
		return func(t *testing.T, out string) {
			data, err := os.ReadFile(filepath.Join(out, "part-00000.parquet"))
			if err == nil {
				err = os.MkdirAll(filepath.Dir(filepath.Join(out, name)), 0o755)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(out, name), data, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	edit := func(change func(*sinks.Manifest)) func(*testing.T, string) {
		return func(t *testing.T, out string) { editManifest(t, out, change) }
	}
	const sum, stranger = "its SHA-256 differs from the manifest", "unexpected file; readers would load it as data"
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, out string)
		want   []string // each in some line
	}{
		{"a bit of a page", flip("part-00001.parquet", func(int) int { return 90 }), []string{"part-00001.parquet: " + sum}},
		{"a bit of a page's header", flip("part-00000.parquet", func(int) int { return 5 }), []string{"part-00000.parquet: " + sum}},
		{"a bit of the footer", flip("part-00002.parquet", func(n int) int { return n - 60 }), []string{"part-00002.parquet: " + sum}},
		{"a bit of the footer's length", flip("part-00002.parquet", func(n int) int { return n - 7 }), []string{"part-00002.parquet: " + sum}},
		{"a bit of the last byte", flip("part-00002.parquet", func(n int) int { return n - 1 }), []string{"part-00002.parquet: " + sum}},
		{"a bit of the rejects", flip("_rejects/part-00001.parquet", func(int) int { return 40 }), []string{"_rejects/part-00001.parquet: " + sum}},
		{"a byte too many", func(t *testing.T, out string) {
			rewrite(t, filepath.Join(out, "part-00000.parquet"), func(data []byte) []byte { return append(data, 0) })
		}, []string{"part-00000.parquet: it has", "bytes; the manifest says"}},
		{"a part cut off", func(t *testing.T, out string) {
			rewrite(t, filepath.Join(out, "part-00000.parquet"), func(data []byte) []byte { return data[:len(data)/2] })
		}, []string{"part-00000.parquet: it has", "bytes; the manifest says"}},
		{"an empty part", func(t *testing.T, out string) {
			rewrite(t, filepath.Join(out, "part-00000.parquet"), func([]byte) []byte { return nil })
		}, []string{"part-00000.parquet: it has 0 bytes"}},
		{"a part gone", remove("part-00001.parquet"), []string{"part-00001.parquet: it is missing"}},
		{"rejects gone", remove("_rejects/part-00001.parquet"), []string{"_rejects/part-00001.parquet: it is missing"}},
		{"_SUCCESS gone", remove("_SUCCESS"), []string{"_SUCCESS is missing"}},
		{"one part more", add("part-00003.parquet"), []string{"part-00003.parquet: " + stranger}},
		{"a part in a folder", add("country=US/part-00000.parquet"), []string{"country=US/part-00000.parquet: " + stranger}},
		{"another file", add("notes.csv"), []string{"notes.csv: " + stranger}},
		{"rejects more", add("_rejects/part-00000.parquet"), []string{"_rejects/part-00000.parquet: " + stranger}},
		{"files that are no data", func(t *testing.T, out string) {
			for _, name := range []string{".part-00009.parquet.tmp", "_report.json", "_report.html", "_old/part-00000.parquet"} {
				add(name)(t, out)
			}
		}, nil},
		{"two parts swapped", func(t *testing.T, out string) {
			a, b, c := filepath.Join(out, "part-00000.parquet"), filepath.Join(out, "part-00001.parquet"), filepath.Join(out, "c")
			for _, move := range [][2]string{{a, c}, {b, a}, {c, b}} {
				if err := os.Rename(move[0], move[1]); err != nil {
					t.Fatal(err)
				}
			}
		}, []string{"part-00000.parquet: it has", "part-00001.parquet: it has"}},
		{"a part twice", func(t *testing.T, out string) { add("part-00001.parquet")(t, out) }, []string{"part-00001.parquet: it has"}},
		{"entries swapped", edit(func(m *sinks.Manifest) { m.Parts[0], m.Parts[2] = m.Parts[2], m.Parts[0] }), []string{
			"_manifest.json: part 1 of the manifest should be called part-00000.parquet",
			"part-00000.parquet, row group 1, column source_row, row 1: rows are not in the order of the input",
		}},
		{"a part forgotten", edit(func(m *sinks.Manifest) { m.Parts = m.Parts[:2] }), []string{"part-00002.parquet: " + stranger, "_manifest.json: totals"}},
		{"no part", edit(func(m *sinks.Manifest) { m.Parts, m.Totals = nil, sinks.Totals{} }), []string{"_manifest.json: it lists no parts"}},
		{"a part of elsewhere", edit(func(m *sinks.Manifest) { m.Parts[0].Name = "../in.csv" }), []string{"_manifest.json: part 1 of the manifest should be called"}},
		{"a wrong checksum", edit(func(m *sinks.Manifest) { m.Parts[0].SHA256 = strings.Repeat("0", 64) }), []string{"part-00000.parquet: " + sum}},
		{"no checksum", edit(func(m *sinks.Manifest) { m.Parts[0].SHA256 = "" }), []string{"part 1 of the manifest has no SHA-256"}},
		{"a wrong size", edit(func(m *sinks.Manifest) { m.Parts[0].Bytes++ }), []string{"part-00000.parquet: it has"}},
		{"a wrong total", edit(func(m *sinks.Manifest) { m.Totals.Matched++ }), []string{"_manifest.json: totals"}},
		{"a wrong count, carried through", edit(func(m *sinks.Manifest) {
			m.Parts[0].Totals.Matched--
			m.Parts[0].Totals.CountReason("no_match", "no_match", 1)
			m.Parts[0].Totals.NoMatch++
			m.Totals = sinks.Totals{}
			for _, p := range m.Parts {
				m.Totals.Add(p.Totals)
			}
		}), []string{"part-00000.parquet, column outcome: 3 rows are matched; the manifest says 2", "column outcome: 0 rows are no_match"}},
		{"a wrong reason, carried through", edit(func(m *sinks.Manifest) {
			for _, t := range []*sinks.Totals{&m.Parts[0].Totals, &m.Totals} {
				t.Reasons["rejected"] = map[string]int64{"multiple": 1}
			}
		}), []string{"part-00000.parquet, column reason: the counts of reasons of rejected rows differ from the manifest"}},
		{"a wrong reason of a malformed line, carried through", edit(func(m *sinks.Manifest) {
			for _, t := range []*sinks.Totals{&m.Parts[1].Totals, &m.Totals} {
				t.Reasons["malformed"] = map[string]int64{"stray_quote": 1}
			}
		}), []string{"_rejects/part-00001.parquet, column reason: the counts of reasons of malformed lines differ from the manifest"}},
		{"rows too many, carried through", edit(func(m *sinks.Manifest) {
			for _, t := range []*sinks.Totals{&m.Parts[0].Totals, &m.Totals} {
				t.Rows, t.Matched = t.Rows+1, t.Matched+1
			}
			m.Parts[0].Rows++
		}), []string{"part-00000.parquet: it has 4 rows by its footer, 4 in its row groups, and 5 in the manifest"}},
		{"another operation", edit(func(m *sinks.Manifest) { m.Operation = "ip_to_company" }), []string{
			"part-00000.parquet: the footer and the manifest differ in operation", "_manifest.json, column hem_md5: the operation has no such column"}},
		{"an unknown operation", edit(func(m *sinks.Manifest) { m.Operation = "magic" }), []string{`the rules of operation "magic", schema version 2, are not known`}},
		{"a later schema", edit(func(m *sinks.Manifest) { m.SchemaVersion = columns.SchemaVersion + 1 }), []string{"are not known to this version", "differ in schema_version"}},
		{"a type", edit(func(m *sinks.Manifest) { m.Schema[3].Type = "INT32" }), []string{
			"part-00000.parquet, column source_row: it is INT64 NOT NULL in the file; the manifest says INT32 NOT NULL",
			"_manifest.json, column source_row: it is INT32 NOT NULL; it should be INT64 NOT NULL"}},
		{"a column gone", edit(func(m *sinks.Manifest) { m.Schema = m.Schema[:len(m.Schema)-1] }), []string{"part-00000.parquet, column network_url: the file has this column; the manifest does not"}},
		{"a column twice", edit(func(m *sinks.Manifest) { m.Schema[0].Name = "EMAIL" }), []string{"_manifest.json, column email: two columns have this name"}},
		{"columns out of order", edit(func(m *sinks.Manifest) { s := m.Schema; s[5], s[6] = s[6], s[5] }), []string{"or has it at another position", "the file has another column at position 6"}},
		{"no JSON", func(t *testing.T, out string) {
			rewrite(t, filepath.Join(out, "_manifest.json"), func(data []byte) []byte { return data[:len(data)-9] })
		}, []string{"_manifest.json: not readable"}},
		{"JSON and more", func(t *testing.T, out string) {
			rewrite(t, filepath.Join(out, "_manifest.json"), func(data []byte) []byte { return append(data, "{}"...) })
		}, []string{"_manifest.json: not readable: invalid character"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			if err := os.CopyFS(out, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			c.damage(t, out)
			found := clitest.Failures(t, out)
			if len(c.want) == 0 && len(found) > 0 || len(c.want) > 0 && len(found) == 0 {
				t.Errorf("found %q, want %q", found, c.want)
			}
			for _, want := range c.want {
				if !slices.ContainsFunc(found, func(line string) bool { return strings.Contains(line, want) }) {
					t.Errorf("%q is not found, but\n%s", want, strings.Join(found, "\n"))
				}
			}
		})
	}
}

// forge makes the manifest agree with a file that was changed.
func forge(t *testing.T, out string, part int, data []byte) {
	t.Helper()
	sum := sha256.Sum256(data)
	editManifest(t, out, func(m *sinks.Manifest) {
		m.Parts[part].SHA256, m.Parts[part].Bytes = hex.EncodeToString(sum[:]), int64(len(data))
	})
}

// TestVerifySurvivesForgedFiles flips every 37th byte of a part whose checksum
// is then made to fit: readers meet what they should not, and what they make of
// it is a failure, never a panic. Some bytes are of no consequence.
func TestVerifySurvivesForgedFiles(t *testing.T) {
	out := ragged(t)
	path := filepath.Join(out, "part-00000.parquet")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tried, found := 0, 0
	for at := 0; at < len(good); at += 37 {
		data := slices.Clone(good)
		data[at] ^= 1 << (at % 8)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		forge(t, out, 0, data)
		tried++
		if lines := clitest.Failures(t, out); len(lines) > 0 {
			found++
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "part-0000") }) {
				t.Errorf("byte %d: no part is named, but %q", at, lines)
			}
		}
	}
	if found*4 < tried*3 {
		t.Errorf("of %d flipped bytes only %d were found", tried, found)
	}
}

// TestVerifyEveryOperation: what every operation writes is whole, with
// identifiers and without, and where people are suppressed.
func TestVerifyEveryOperation(t *testing.T) {
	dir := t.TempDir()
	sample := func(name string) string { return filepath.Join(clitest.Samples, name) }
	clitest.RunRaw(t, "directory", "import", "--directory", dir, "--people", sample("directory/people.csv"), "--companies", sample("directory/companies.csv"),
		"--ip-ranges", sample("directory/ip-ranges.csv"), "--searches", sample("directory/searches.csv"), "--visits", sample("directory/visits.csv"))
	optouts := filepath.Join(t.TempDir(), "optouts.txt")
	if err := os.WriteFile(optouts, []byte("ada.example@bakery.example\nben.specimen@rockets.example\ncleo.fixture@books.example\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	suppressed := 0
	for op, list := range map[resolution.Operation]string{
		resolution.EmailToHEM: "emails.csv", resolution.NetworkToHEM: "profiles.csv", resolution.NetworkToPhone: "profiles.csv",
		resolution.Enrichment: "profiles.csv", resolution.IPToCompany: "ips.csv", resolution.Deanonymization: "ips.csv",
		resolution.KeywordToLead: "searches.csv", resolution.KeywordToLeadCount: "searches.csv",
	} {
		for name, extra := range map[string][]string{"all": nil, "without identifiers": {"--drop-identifier"}, "suppressed": {"--suppress", optouts}} {
			t.Run(string(op)+" "+name, func(t *testing.T) {
				out := filepath.Join(t.TempDir(), "out")
				args := []string{"run", string(op), "--in", sample(list), "--directory", dir, "--out", out, "--set", "rows_per_part=10", "--state", t.TempDir(), "--quiet"}
				if op.IsKeyword() {
					args = append(args, "--as-of", "2026-11-15", "--select", "id,answers")
				}
				clitest.RunRaw(t, append(args, extra...)...)
				clitest.RunRaw(t, "verify", out, "--quiet")
				m, err := sinks.ReadManifest(clitest.OpenLocal(t, out))
				if err != nil {
					t.Fatal(err)
				}
				suppressed += int(m.Totals.Suppressed)
			})
		}
	}
	if suppressed == 0 {
		t.Error("no person is suppressed")
	}
}

// TestVerifyHasRulesForEveryOperation: without rules nothing is checked.
func TestVerifyHasRulesForEveryOperation(t *testing.T) {
	for _, op := range slices.Concat(resolution.SingleRecord, resolution.Keyword) {
		if _, known := program.VerifyRules(&sinks.Manifest{Operation: string(op), SchemaVersion: columns.SchemaVersion}); !known {
			t.Errorf("the rules of %s are not known", op)
		}
	}
}

func TestVerifyBoundsWhatItPrints(t *testing.T) {
	out := ragged(t)
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(out, fmt.Sprintf("part-%05d.parquet", 100+i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var stdout bytes.Buffer
	if code := program.Execute(t.Context(), []string{"verify", out}, nil, &stdout, io.Discard); code != cli.ExitRejects {
		t.Errorf("exit code %d", code)
	}
	if lines := strings.Split(strings.TrimSpace(stdout.String()), "\n"); len(lines) != 201 || lines[200] != "… and 100 more" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}
