package pipeline_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/testkit/rapidtest"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/keys"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/sinks"
)

// Which row is in which part follows from the input and rows-per-part alone:
// any count of workers makes the same bytes, and any cut the same rows.
func TestAnyCutAndAnyWorkers(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	n := 0
	rapidtest.Checks(t, 10) // each is three runs on disk
	rapid.Check(t, func(rt *rapid.T) {
		n++
		s := setup{dir: fmt.Sprint(top, "/", n)}
		defer os.RemoveAll(s.dir)
		rowCount := 0
		for i := range rapid.IntRange(1, 4).Draw(rt, "files") {
			lines := rapid.SliceOfN(anyLine, 0, 25).Draw(rt, "lines")
			s.input(rt, fmt.Sprintf("%d.csv", i), "id,email,note\n"+strings.Join(lines, ""))
			rowCount += len(lines)
		}
		multiple := rapid.SampledFrom([]keys.Multiple{"", keys.First, keys.Last, keys.Each, keys.Each}).Draw(rt, "multiple")
		where := rapid.SampledFrom([][]job.Condition{nil, {{Column: "ID", Value: "7"}}, {{Column: "note", Value: ""}, {Column: "id", Value: "8"}}}).Draw(rt, "where")
		s.job = func(j *job.Job) {
			j.Multiple, j.Where = multiple, where
			if n%8 == 0 {
				j.Compression = sinks.Zstd
			}
		}
		whole := s
		whole.out = "whole"
		whole.mustDo(rt)
		wholeFiles := content(rt, whole.outDir())

		cut := s
		cut.out = "cut"
		cut.rowsPerPart = rapid.IntRange(max(1, rowCount/8), rowCount+2).Draw(rt, "rows per part")
		cut.batchRows = rapid.IntRange(1, 30).Draw(rt, "batch rows")
		result := cut.mustDo(rt)
		cutFiles := content(rt, cut.outDir())
		for i, p := range result.Manifest.Parts {
			if i < len(result.Manifest.Parts)-1 && p.Totals.InputRows() != int64(cut.rowsPerPart) {
				rt.Errorf("%s has %d rows of the input, not %d", p.Name, p.Totals.InputRows(), cut.rowsPerPart)
			}
		}
		for kind, of := range map[string]func(map[string]string) map[string]string{"rows": parts, "rejects": rejects} {
			got, want := rows(rt, of(cutFiles)), rows(rt, of(wholeFiles))
			if !slices.Equal(got, want) {
				rt.Errorf("%s differ\n%q\n%q", kind, got, want)
			}
		}

		other := cut
		other.out = "other"
		other.workers = rapid.IntRange(1, 8).Draw(rt, "workers")
		if rapid.Bool().Draw(rt, "asked row by row") {
			other.resolver = &hashing{}
		}
		other.mustDo(rt)
		requireSame(rt, content(rt, other.outDir()), cutFiles)
	})
}

// anyLine is a row with an address, one that is rejected, one that is
// malformed, or a blank line.
var anyLine = rapid.OneOf(
	rapid.StringMatching(`[0-9]{1,3},[a-z]{1,12}@[a-z]{1,8}\.example,[a-z ]{0,20}\n`),
	rapid.StringMatching(`[0-9]{1,3},[a-z]{1,3}@mail\.example,\n`),
	rapid.StringMatching(`[0-9]{1,3},[0-9a-f]{40},"quoted ""note"""\n`),
	rapid.StringMatching(`[0-9],"[a-z]{1,3}@mail\.example; ([a-z]{1,3}@mail\.example,){0,4}junk,Doe, Jane <j@x\.example>",\n`),
	rapid.SampledFrom([]string{"7,invalid,\n", "8,,\n", "too,few\n", "too,many,fields,here\n", "\n", "9,\"stray\"quote,\n"}),
)

// A part runs on across input files; its malformed lines are those before its
// last row, and the last part has those at the very end.
func TestWhichPart(t *testing.T) {
	for _, c := range []struct {
		name        string
		files       []string // lines, one character each: r row, x malformed
		rowsPerPart int
		want        []string // the part's files and row numbers / malformed lines
	}{
		{"no file has a row", []string{"", ""}, 3, []string{""}},
		{"one part", []string{"rrr"}, 5, []string{"0:1 0:2 0:3"}},
		{"as many as fit", []string{"rrr"}, 3, []string{"0:1 0:2 0:3"}},
		{"one more", []string{"rrrr"}, 3, []string{"0:1 0:2 0:3", "0:4"}},
		{"across files", []string{"rr", "rr", "rrr"}, 3, []string{"0:1 0:2 1:1", "1:2 2:1 2:2", "2:3"}},
		{"across an empty file", []string{"rr", "", "r"}, 3, []string{"0:1 0:2 2:1"}},
		{"malformed between", []string{"rxr", "xr"}, 2, []string{"0:1 0:3 / 0:3", "1:2 / 1:2"}},
		{"malformed alone", []string{"xx", "x"}, 2, []string{"/ 0:2 0:3 1:2"}},
		{"malformed at the end of a full part", []string{"rrxx"}, 2, []string{"0:1 0:2 / 0:4 0:5"}},
		{"malformed at the end of a full part's file", []string{"rrx", "x", ""}, 2, []string{"0:1 0:2 / 0:4 1:2"}},
		{"malformed before the next part", []string{"rrx", "r"}, 2, []string{"0:1 0:2 / 0:4", "1:1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := setup{dir: t.TempDir(), rowsPerPart: c.rowsPerPart}
			for i, kinds := range c.files {
				lines := "id,email\n"
				for _, kind := range kinds {
					lines += map[rune]string{'r': "1,a@mail.example\n", 'x': "malformed\n"}[kind]
				}
				s.input(t, fmt.Sprintf("%d.csv", i), lines)
			}
			s.mustDo(t)
			files := content(t, s.outDir())
			var got []string
			for _, name := range slices.Sorted(maps.Keys(parts(files))) {
				var text []string
				for _, row := range rowsOf(t, files[name]) {
					text = append(text, place(t, s, row, "source_row"))
				}
				if data, ok := files["_rejects/"+name]; ok {
					text = append(text, "/")
					for _, row := range rowsOf(t, data) {
						text = append(text, place(t, s, row, "line"))
					}
				}
				got = append(got, strings.Join(text, " "))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// place is where a row or malformed line came from: file:number.
func place(t *testing.T, s setup, row, number string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(field(t, row, "source"), s.dir+"/in/"), ".csv")
	_, after, _ := strings.Cut(row, fmt.Sprintf("%q: ", number))
	digits, _, _ := strings.Cut(after, ",")
	return name + ":" + strings.TrimSuffix(digits, "}")
}

// A dataset without a row is one still: a part with all columns.
func TestNoRows(t *testing.T) {
	for name, input := range map[string]string{"header alone": "id,email\n", "no line end": "id,email", "malformed alone": "id,email\nx\n"} {
		s := setup{dir: t.TempDir()}
		s.input(t, "a.csv", input)
		result := s.mustDo(t)
		if len(result.Manifest.Parts) != 1 || result.Manifest.Parts[0].Rows != 0 {
			t.Errorf("%s: parts %+v", name, result.Manifest.Parts)
		}
		if again := s.mustDo(t); again.Parts.Made != 0 || again.Parts.Earlier != 1 {
			t.Errorf("%s: again made %d, skipped %d", name, again.Parts.Made, again.Parts.Earlier)
		}
	}
}

// The raw text of a malformed line is kept, bytes that are no UTF-8 spelled
// out, and left out where identifiers are.
func TestRejectedLines(t *testing.T) {
	s := setup{dir: t.TempDir()}
	s.input(t, "a.csv", "id,email\n1,ä@mail.example\nx\xff\xc3y\n2\n")
	s.mustDo(t)
	source := fmt.Sprintf("%q", s.dir+"/in/a.csv")
	want := []string{
		`{"source": ` + source + `, "line": 3, "reason": "invalid_utf8", "raw_line": "x\\xFF\\xC3y"}`,
		`{"source": ` + source + `, "line": 4, "reason": "ragged_row", "raw_line": "2"}`,
	}
	if got := rows(t, rejects(content(t, s.outDir()))); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}

	s.out = "dropped"
	s.job = func(j *job.Job) { j.DropIdentifier = true }
	s.mustDo(t)
	for name, data := range content(t, s.outDir()) {
		for _, row := range rowsOf(t, data) {
			if strings.Contains(row, "mail.example") || strings.Contains(row, "raw_line") || strings.Contains(row, `"key"`) {
				t.Errorf("%s: %s", name, row)
			}
		}
	}
}

// A value of megabytes passes, and so does what follows it.
func TestLargeValue(t *testing.T) {
	s := setup{dir: t.TempDir(), workers: 2}
	long := strings.Repeat("a note of some length, ", 1<<17)
	s.input(t, "a.csv", "email,note\na@mail.example,\""+long+"\"\nb@mail.example,short\n")
	s.mustDo(t)
	got := rows(t, content(t, s.outDir()))
	if len(got) != 2 || field(t, got[0], "note") != long || field(t, got[1], "note") != "short" {
		t.Errorf("%d rows, notes of %d and %d bytes", len(got), len(field(t, got[0], "note")), len(field(t, got[1], "note")))
	}
}
