//go:build unix

package wholefile_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/leadetl/leadetl/internal/wholefile"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size int) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	refused := errors.New("refused")
	key := wholefile.Kind{Name: "a key", Bytes: 2 << 10}
	none := wholefile.Kind{Name: "a key", Bytes: 2 << 10, Check: func(string, fs.FileInfo) error { return refused }}
	for _, c := range []struct {
		what, file string
		kind       wholefile.Kind
		ctx        context.Context
		size       int
		wraps      error
		says       string
	}{
		{"an empty file", write("empty", 0), key, t.Context(), 0, nil, ""},
		{"a file of the largest size", write("most", 2<<10), key, t.Context(), 2 << 10, nil, ""},
		{"a larger file", write("more", 2<<10+1), key, t.Context(), 0, nil, "more is too large for a key, which has at most 2 KiB; check its name"},
		{"a device without end", "/dev/zero", key, t.Context(), 0, nil, "/dev/zero is too large for a key, which has at most 2 KiB; check its name"},
		{"a missing file", filepath.Join(dir, "none"), key, t.Context(), 0, fs.ErrNotExist, "none: no such file or directory"},
		{"a folder", dir, key, t.Context(), 0, syscall.EISDIR, "is a directory"},
		{"a refused file", write("refused", 1), none, t.Context(), 0, refused, "refused"},
		{"a pipe without a writer, interrupted", pipe, key, ended, 0, context.Canceled, "interrupted while " + pipe + " was read"},
	} {
		got, err := c.kind.Read(c.ctx, c.file)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if len(got) != c.size || c.wraps != nil && !errors.Is(err, c.wraps) || !strings.HasSuffix(said, c.says) || (c.says == "") != (err == nil) {
			t.Errorf("%s: %d bytes, %v; want %d bytes, ...%s", c.what, len(got), err, c.size, c.says)
		}
	}
}
