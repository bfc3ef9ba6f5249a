//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leadetl/leadetl/cmd/leadetl/program"
	"github.com/leadetl/leadetl/internal/invisible"
)

// Names may hold line ends, commands of a terminal, bidi marks and bytes that are not
// UTF-8. What is printed shows them as escapes, so that no line is forged.
func TestOddNamesAreEscaped(t *testing.T) {
	const odd = "a\nleadetl: done\x1b[2J\a\u202e\u200b\xff"
	dir := filepath.Join(t.TempDir(), odd)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	list, out := filepath.Join(dir, "list.csv"), filepath.Join(dir, "out")
	for name, text := range map[string]string{"list.csv": "email\na@example.com\nno address\n", "empty.csv": "", "no_column.csv": "name\nx\n", "job.yaml": "nothing: x\n", "key": "", "many.csv": "email\n" + strings.Repeat("x\n", 3)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	state := t.TempDir()
	for _, args := range [][]string{
		{"plan", "email_to_hem", "--in", list, "--out", out, "--state", state},
		{"run", "email_to_hem", "--in", list, "--out", out, "--state", state},
		{"run", "email_to_hem", "--in", list, "--out", out, "--state", state, "--log-format", "json"},
		{"run", "email_to_hem", "--in", in("empty.csv"), "--in", in("list.csv"), "--out", in("other"), "--state", state},
		{"run", "email_to_hem", "--in", in("many.csv"), "--out", in("many"), "--state", state, "--log-format", "json"},
		{"run", "email_to_hem", "--in", in("no_column.csv"), "--out", in("other"), "--state", state},
		{"run", "email_to_hem", "--in", in("none.csv"), "--out", in("other"), "--state", state},
		{"run", "email_to_hem", "--in", in("[.csv"), "--out", in("other"), "--state", state},
		{"run", "email_to_hem", "--in", list, "--out", list, "--state", state},
		{"run", "email_to_hem", "--in", list, "--out", in("other"), "--state", in("key")},
		{"run", "email_to_hem", "--in", list, "--out", in("other"), "--suppress", in("none.csv"), "--state", state},
		{"run", "--job", in("job.yaml")}, {"run", "--job", in("none.yaml")}, {"run", odd},
		{"run", "enrichment", "--in", list, "--out", out, "--resolver", "http://127.0.0.1:1", "--api-key-file", in("key")},
		{"doctor", "email_to_hem", "--in", list, "--out", in("other"), "--state", in("state")},
		{"verify", out}, {"verify", in("none")}, {"head", out}, {"head", in("none")}, {"schema", "--dataset", in("none")},
		{"directory", "import", "--into", in("directory"), "--people", list}, {"directory", "stat", in("directory")},
		{"answers", "stat", "--state", in("answers")}, {odd},
	} {
		var stdout, stderr bytes.Buffer
		code := program.Execute(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
		for _, said := range []string{stdout.String(), stderr.String()} {
			for line := range strings.Lines(said) {
				text := strings.TrimSuffix(line, "\n")
				if !utf8.ValidString(text) || strings.ContainsFunc(text, func(c rune) bool { return invisible.Escape(string(c)) != string(c) }) || strings.HasPrefix(text, "leadetl: done") {
					t.Errorf("%.40q: exit code %d, prints %q", args, code, line)
				}
			}
		}
	}
}
