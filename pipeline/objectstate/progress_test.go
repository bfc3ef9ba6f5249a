package objectstate

import (
	"errors"
	"io/fs"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/s3test"
)

// TestHalfRemoved: whatever a killed process has left of a journal that it removed, no journal is
// read, and another one can begin. With its header, the same gap is an error.
func TestHalfRemoved(t *testing.T) {
	for _, c := range []struct {
		name   string
		left   []int64
		header bool
		want   error
	}{
		{"all", []int64{0, 1, 2, 3}, false, nil},
		{"a gap", []int64{0, 1, 3}, false, fs.ErrNotExist},
		{"without the beginning", []int64{1, 2, 3}, false, fs.ErrNotExist},
		{"the last", []int64{3}, false, fs.ErrNotExist},
		{"a gap and the header", []int64{0, 1, 3}, true, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := lateState(t, s3test.NewLate(t), time.Second)
			open := func() *Progress {
				p, err := s.Progress(t.Context(), "s3://leads/out/", false)
				must(t, err)
				t.Cleanup(func() { _ = p.Release() }) // again, unless the test has failed
				return p
			}
			p := open()
			must(t, errors.Join(p.Put("header", []byte("job")), p.Begin([]byte("job\n"))))
			for range 3 {
				must(t, p.Append([]byte("part\n")))
			}
			for number := range int64(4) {
				if !slices.Contains(c.left, number) {
					must(t, s.store.Remove(t.Context(), p.object(number)))
				}
			}
			if !c.header {
				must(t, s.store.Remove(t.Context(), p.folder.At(headerName)))
			}
			must(t, p.Release())
			p = open()
			_, err := p.Read()
			if c.header {
				if err == nil || errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: it is read: %v", c.name, err)
				}
				return
			}
			if !errors.Is(err, c.want) {
				t.Fatalf("%s: it is read: %v, want %v", c.name, err, c.want)
			}
			must(t, errors.Join(p.Put("header", []byte("other")), p.Begin([]byte("other\n")), p.Append([]byte("part\n")), p.Release()))
			if lines, err := open().Read(); err != nil || string(lines) != "other\npart\n" {
				t.Errorf("%s: read %q, %v", c.name, lines, err)
			}
		})
	}
}
