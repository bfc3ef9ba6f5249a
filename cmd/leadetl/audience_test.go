package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
	"github.com/leadetl/leadetl/transforms/platform"
)

// A platform's limits of a file, in rows and in bytes, are kept in a folder, and refused in one file, of which
// nothing stays.
func TestLimitsOfPlatforms(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	list := "email\n"
	for i := range 5 {
		list += fmt.Sprintf("p%d@mail.example\n", i)
	}
	if err := os.WriteFile(filepath.Join(dir, "list.csv"), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	clitest.RunRaw(t, "run", "email_to_hem", "--in", filepath.Join(dir, "list.csv"), "--out", filepath.Join(dir, "list"), "--quiet")
	meta := platform.ByName("meta")
	was := *meta
	defer func() { *meta = was }()
	const header, line = len("email\n"), 65
	for _, c := range []struct {
		name        string
		rows, bytes int64
		flag        string
		want        []int // lines of each file
	}{
		{"rows", 2, 0, "", []int{2, 2, 1}},
		{"bytes", 0, int64(header + 3*line), "", []int{3, 2}},
		{"both", 2, int64(header + line), "", []int{1, 1, 1, 1, 1}},
		{"a full file", 5, 0, "", []int{5}},
		{"fewer, by a flag", 4, 0, "3", []int{3, 2}},
		{"not more, by a flag", 2, 0, "3", []int{2, 2, 1}},
	} {
		meta.MaxRows, meta.MaxBytes = c.rows, c.bytes
		out := filepath.Join(dir, c.name)
		args := []string{"export", filepath.Join(dir, "list"), "--for", "meta", "--out", out}
		if c.flag != "" {
			args = append(args, "--rows-per-file", c.flag)
		}
		printed := clitest.RunRaw(t, args...)
		if strings.Contains(printed, "split into") != (len(c.want) > 1) {
			t.Errorf("%s: it is not said whether the list is split:\n%s", c.name, printed)
		}
		for i, lines := range append(c.want, 0) {
			text, err := os.ReadFile(filepath.Join(out, fmt.Sprintf("export-%05d.csv", i)))
			if want := header + lines*line; len(text) != want && (lines > 0 || !os.IsNotExist(err)) {
				t.Errorf("%s: file %d has %d bytes, want %d", c.name, i, len(text), want)
			}
		}
		if len(c.want) == 1 || c.flag != "" {
			continue
		}
		var errOut bytes.Buffer
		args[len(args)-1] += ".csv"
		code := program.Execute(t.Context(), args, strings.NewReader(""), &bytes.Buffer{}, &errOut)
		if _, err := os.Stat(out + ".csv"); code != cli.ExitUsage || !os.IsNotExist(err) || !strings.Contains(errOut.String(), "name a folder") {
			t.Errorf("%s: one file ends with %d, %v, %s", c.name, code, err, &errOut)
		}
	}
}
