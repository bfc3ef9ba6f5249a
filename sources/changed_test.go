package sources

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// A file that is not the same at its end as at its beginning is noticed, and
// named, whatever the change makes of the bytes.
func TestChangedWhileRead(t *testing.T) {
	text := "id,email\n" + strings.Repeat("1,someone@mail.example\n", 150_000) // several blocks
	packed := gz(text)
	overwrite := func(name, text string, flags int) error {
		f, err := os.OpenFile(name, os.O_WRONLY|flags, 0o644)
		if err != nil {
			return err
		}
		_, err = io.WriteString(f, text)
		return errors.Join(err, f.Close())
	}
	tests := []struct {
		name   string
		change func(name string) error
	}{
		{"rows are appended", func(name string) error { return overwrite(name, "2,x\n", os.O_APPEND) }},
		{"cut", func(name string) error { return os.Truncate(name, 2_000_000) }},
		{"written anew", func(name string) error { return overwrite(name, text, os.O_TRUNC) }},
		{"replaced", func(name string) error {
			return errors.Join(os.WriteFile("new", []byte(text), 0o644), os.Rename("new", name))
		}},
		{"removed", os.Remove},
	}
	for _, test := range tests {
		for name, stored := range map[string]string{"a.csv": text, "a.csv.gz": packed} {
			if test.name == "cut" && name == "a.csv.gz" {
				stored = packed + strings.Repeat("\x00", 2_000_000)
			}
			folder(t, map[string]string{name: stored})
			// A clock of some file systems ticks more slowly than this test runs.
			if past := time.Unix(1e9, 0); os.Chtimes(name, past, past) != nil {
				t.Fatal("the file's time cannot be set")
			}
			l, err := Open(t.Context(), []string{name}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := l.Reader([]string{"email"})
			if err != nil {
				t.Fatal(err)
			}
			b, err := r.Next(context.Background(), 10)
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
			if err := test.change(name); err != nil {
				t.Fatal(err)
			}
			for err == nil {
				if b, err = r.Next(context.Background(), 0); err == nil {
					b.Release()
				}
			}
			r.Close()
			if !errors.Is(err, ErrChanged) || !strings.HasPrefix(err.Error(), name+": file changed while it was read") {
				t.Errorf("%s, %s: %v", name, test.name, err)
			}
		}
	}
}

func TestChangedBeforeRead(t *testing.T) {
	folder(t, map[string]string{"a.csv": "id\n1\n"})
	l, err := Open(t.Context(), []string{"a.csv"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("a.csv", []byte("email,id\n1,2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := l.Reader([]string{"id"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(context.Background(), 0); !errors.Is(err, ErrChanged) {
		t.Errorf("%v, want %v", err, ErrChanged)
	}
}
