package secret_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/leadetl/leadetl/internal/secret"
)

const variable = "LEADETL_TEST_SECRET"

func TestReadVariable(t *testing.T) {
	for _, c := range []struct {
		name, value, want string
		err               string // part of the error; "" for none
	}{
		{"as it is", hidden, hidden, ""},
		{"line end at its end", hidden + "\r\n", hidden, ""},
		{"space around", " " + hidden + "\t", hidden, ""},
		{"space inside", "two words", "two words", ""},
		{"empty", "", "", "the environment variable " + variable + " is empty or not set"},
		{"blank", " \n", "", "the environment variable " + variable + " is empty or not set"},
		{"two lines", hidden + "\n" + hidden, "", "more than one line"},
		{"a tab", hidden + "\tx", "", "control characters"},
	} {
		t.Setenv(variable, c.value)
		wantRead(t, c.name, "", c.want, c.err)
	}
}

func TestReadFile(t *testing.T) {
	t.Setenv(variable, "of-the-environment")
	for _, c := range []struct {
		name, content string
		mode          fs.FileMode
		want, err     string
	}{
		{"before the variable", hidden, 0o600, hidden, ""},
		{"line end at its end", hidden + "\n", 0o600, hidden, ""},
		{"only readable", hidden, 0o400, hidden, ""},
		{"empty", "", 0o600, "", "key is empty, write the secret to it"},
		{"blank", "\n", 0o600, "", "is empty"},
		{"two lines", "a\nb", 0o600, "", "more than one line"},
		{"a NUL", hidden + "\x00x", 0o600, "", "control characters"},
		{"too large", strings.Repeat("a", 64<<10+1), 0o600, "", "too large"},
		{"readable for the process's group", hidden, 0o640, hidden, ""},
		{"as mounted secrets are", hidden, 0o440, hidden, ""},
		{"readable for the group, and for others", hidden, 0o444, "", "has mode 0444 and is open to other users: chmod 600"},
		{"readable for all", hidden, 0o644, "", "has mode 0644"},
		{"readable for others", hidden, 0o604, "", "has mode 0604"},
		{"writable for the group", hidden, 0o620, "", "has mode 0620"},
	} {
		file := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, c.mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
		wantRead(t, c.name, file, c.want, c.err)
		if _, err := secret.Read(t.Context(), "", file); errors.Is(err, secret.ErrExposed) != (c.mode&0o027 != 0) {
			t.Errorf("%s: got %v, ErrExposed or not", c.name, err)
		}
	}
}

func TestReadPipe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(file, 0o644); err != nil {
		t.Fatal(err)
	}
	written := make(chan error)
	go func() { written <- os.WriteFile(file, []byte(hidden+"\n"), 0) }()
	wantRead(t, "pipe", file, hidden, "")
	if err := <-written; err != nil {
		t.Fatal(err)
	}
}

func TestReadNothing(t *testing.T) {
	if _, err := secret.Read(t.Context(), variable, filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: got %v, want %v", err, fs.ErrNotExist)
	}
	if _, err := secret.Read(t.Context(), variable, t.TempDir()); err == nil {
		t.Error("a folder: no error")
	}
	if _, err := secret.Read(t.Context(), variable, ""); !errors.Is(err, secret.ErrNotGiven) {
		t.Errorf("variable not set: got %v, want %v", err, secret.ErrNotGiven)
	}
}

func wantRead(t *testing.T, name, file, want, wantErr string) {
	t.Helper()
	got, err := secret.Read(t.Context(), variable, file)
	if got.Reveal() != want {
		t.Errorf("%s: got %q, want %q", name, got.Reveal(), want)
	}
	switch {
	case wantErr == "" && err != nil, wantErr != "" && err == nil:
		t.Errorf("%s: error %v, want %q", name, err, wantErr)
	case err == nil:
	case !strings.Contains(err.Error(), wantErr):
		t.Errorf("%s: error %v, want %q", name, err, wantErr)
	case strings.Contains(err.Error(), hidden):
		t.Errorf("%s: the error holds the secret: %v", name, err)
	}
}

func TestReadWords(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        int
		err         string // part of the error; "" for none
	}{
		{"one", hidden, 1, ""},
		{"two lines", hidden + "\n" + hidden + "\n", 2, ""},
		{"side by side", " " + hidden + "\t" + hidden, 2, ""},
		{"none", " \r\n", 0, "keys is empty, write the secret to it"},
		{"a NUL", hidden + "\x00", 0, "control characters"},
	} {
		file := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(file, []byte(c.value), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := secret.ReadWords(t.Context(), variable, file)
		if (err == nil) != (c.err == "") || err != nil && (!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), hidden)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.err)
		}
		if len(got) != c.want {
			t.Errorf("%s: %d secrets, want %d", c.name, len(got), c.want)
		}
		for _, s := range got {
			if s.Reveal() != hidden {
				t.Errorf("%s: another secret", c.name)
			}
		}
	}
	t.Setenv(variable, hidden+" "+hidden)
	if got, err := secret.ReadWords(t.Context(), variable, ""); err != nil || len(got) != 2 {
		t.Errorf("of the environment: %d secrets, %v", len(got), err)
	}
	if _, err := secret.ReadWords(t.Context(), variable, "missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
