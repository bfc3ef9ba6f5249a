package cliflag

import (
	"os"
	"path/filepath"
	"slices"
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
		{"keep: {a: b}", nil, ":1: keep takes a value, not keys of its own"},
	} {
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		got := flags.StringArray("rename", nil, "`OLD=NEW`")
		flags.StringSlice("keep", nil, "`columns`")
		path := filepath.Join(t.TempDir(), "job.yaml")
		if err := os.WriteFile(path, []byte(c.text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := ApplyFile("job", path, flags, nil)
		says := ""
		if err != nil {
			says = err.Error()[len(path):]
		}
		if says != c.err || !slices.Equal(*got, c.want) {
			t.Errorf("%s: %q, %s; want %q, %s", c.text, *got, says, c.want, c.err)
		}
	}
}
