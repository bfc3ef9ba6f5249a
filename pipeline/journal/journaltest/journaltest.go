// Package journaltest tests implementations of journal.Storage.
package journaltest

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/leadetl/leadetl/pipeline/journal"
)

// Lists keeps, reads and drops suppression lists of several pieces.
func Lists(t *testing.T, storage journal.Storage) {
	t.Helper()
	j := journal.New(storage)
	keep := func(fingerprint string, data []byte, end error) {
		t.Helper()
		err := j.KeepLists(fingerprint, func(w io.Writer) error {
			_, err := w.Write(data)
			return errors.Join(err, end)
		})
		if !errors.Is(err, end) {
			t.Fatalf("keep %s: %v, want %v", fingerprint, err, end)
		}
	}
	want := func(fingerprint string, data []byte) {
		t.Helper()
		r, err := j.Lists(fingerprint)
		if err != nil || (r == nil) != (data == nil) {
			t.Fatalf("lists %s: %v, %v, want %d bytes", fingerprint, r, err, len(data))
		}
		if r == nil {
			return
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("lists %s: read %d bytes, %v, want the %d that were kept", fingerprint, len(got), err, len(data))
		}
	}
	drop := func(but string) {
		t.Helper()
		if err := j.DropLists(but); err != nil {
			t.Fatal(err)
		}
	}
	short, long := []byte("short"), bytes.Repeat([]byte("0123456789abcde\n"), 18<<16) // 18 MiB
	want("a", nil)
	keep("a", long, nil)
	keep("b", short, nil)
	drop("a")
	want("a", long)
	want("b", nil)
	keep("b", long, errors.New("killed"))
	keep("b", long, nil)
	want("b", long)
	drop("")
	want("a", nil)
	want("b", nil)
}
