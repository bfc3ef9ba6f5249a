package cliflag

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestPairsOfFile(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
		err  string // after the path
	}{
		{"rename: {a: b, Record ID: id}", []string{"a=b", "Record ID=id"}, ""},
		{"rename:\n  a: b\n  'c=d, e': f\n  2020: year", []string{"a=b", "c=d, e=f", "2020=year"}, ""},
		{"rename:\n  a: b", []string{"a=b"}, ""},
		{"rename: [a=b, Record ID=id]", []string{"a=b", "Record ID=id"}, ""},
		{"rename: a=b", []string{"a=b"}, ""},
		{"rename: {}", nil, ""},
		{"rename: {a: [b]}", nil, ":1: rename takes plain values"},
		{"rename: {a: {b: c}}", nil, ":1: rename takes plain values"},
		{"rename: {a: }", nil, ":1: rename takes plain values"},
		{"rename: null", nil, ":1: rename has no value"},
		{"rename: [a=b, ~]", nil, ":1: rename takes a list of plain values"},
		{"rename: 'null=b'", []string{"null=b"}, ""},
		{"rename: a=b\nrename: c=d", []string{"a=b"}, ":2: rename is given twice; write one list: [a, b]"},
		{"keep: {a: b}", nil, ":1: keep takes a value, not keys of its own"},
	} {
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		got := flags.StringArray("rename", nil, "`OLD=NEW`")
		flags.StringSlice("keep", nil, "`columns`")
		path := filepath.Join(t.TempDir(), "job.yaml")
		if err := os.WriteFile(path, []byte(c.text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := ApplyFile(t.Context(), "job", path, flags, Keys{})
		says := ""
		if err != nil {
			says = err.Error()[len(path):]
		}
		if says != c.err || !slices.Equal(*got, c.want) {
			t.Errorf("%s: %q, %s; want %q, %s", c.text, *got, says, c.want, c.err)
		}
	}
}

// Files that would take a parser gigabytes or minutes are refused before it reads them.
func TestBoundsOfFile(t *testing.T) {
	deep, many, large := "lists and keys are nested more than 16 deep", "there are more than 10000 keys and entries of lists", "is too large for a file of settings, which has at most 1024 KiB; check its name"
	for _, c := range []struct {
		name, text, err string // "" is no error
	}{
		{"lists in lists", "in: " + strings.Repeat("[", 60_000), deep},
		{"closed before", "in: " + strings.Repeat("]", 60_000) + strings.Repeat("[", 60_000), deep},
		{"maps in maps", strings.Repeat("a: {", 30_000), deep},
		{"lists and maps", strings.Repeat("[{a: ", 30_000), deep},
		{"dashes of a line", strings.Repeat("- ", 60_000), deep},
		{"by indentation", nested(700), deep},
		{"many keys", strings.Repeat("in: b\n", 10_001), many},
		{"many keys with question marks", strings.Repeat("? a\n", 10_001), "? where text is expected; write it in quotes"},
		{"many empty entries", "in:\n" + strings.Repeat("-\n", 10_001), "an item of a list without a value"},
		{"many problems", strings.Repeat("x: b\n", 60), "correct the problems above first; from here on the file was not read"},
		{"aliases of aliases", "in: &a [x, x]\nin: &b [*a, *a]\nin: *b", "an anchor; write the value out, or text in quotes"},
		{"a long list", "in:\n" + strings.Repeat("- a.csv\n", 9_000), ""},
		{"brackets in a text", "in: '" + strings.Repeat("[", 60_000) + "'", ""},
		{"the largest file", "in: a\n#" + strings.Repeat("x", 1<<20-7), ""},
		{"a larger file", "in: a\n#" + strings.Repeat("x", 1<<20-6), large},
	} {
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		flags.StringArray("in", nil, "`file`")
		path := filepath.Join(t.TempDir(), "job.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := ApplyFile(t.Context(), "job", path, flags, Keys{})
		if (err == nil) != (c.err == "") || err != nil && (!strings.HasSuffix(err.Error(), c.err) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%s: %.300v; want %s", c.name, err, c.err)
		}
	}
}

// nested is a map in a map, depth deep, by indentation.
func nested(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}
