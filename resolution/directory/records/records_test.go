package records

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/columnfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRoundTrip writes more texts than a dictionary takes, and keys again: every
// key finds its last record.
func TestRoundTrip(t *testing.T) {
	const keys = 100_000
	path := filepath.Join(t.TempDir(), "people-000001.cols")
	w, err := NewWriter(path, []bool{false, true, false})
	if err != nil {
		t.Fatal(err)
	}
	last := make([]int, keys)
	key := func(k int) string { return fmt.Sprint("key ", k) }
	fields := func(k, line int) []string {
		return []string{key(k), fmt.Sprint("text ", line%100_000), fmt.Sprint(line)}
	}
	random := rand.New(rand.NewPCG(5, 6))
	for line := range 2 * keys {
		k := line
		if line >= keys {
			k = random.IntN(keys)
		}
		last[k] = line
		if _, err := w.Add(fields(k, line)...); err != nil {
			t.Fatal(err)
		}
	}
	got, err := w.Records(t.Context())
	if err := errors.Join(err, w.Finish(), w.Close(), os.Rename(atomicfile.TempName(path), path)); err != nil || got != keys {
		t.Fatalf("%d keys, %v; want %d", got, err, keys)
	}
	kept := 0
	for line := range uint32(2 * keys) {
		if w.Kept(line) {
			kept++
		}
	}
	if kept != keys || !w.Kept(uint32(last[0])) {
		t.Errorf("%d lines are kept of %d keys", kept, keys)
	}
	f, err := Open(path, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Keys() != keys || f.Rows() != 2*keys {
		t.Errorf("%d keys of %d rows", f.Keys(), f.Rows())
	}
	asked := make([]string, keys+2)
	for k := range keys {
		asked[k] = key(k)
	}
	asked[keys], asked[keys+1] = "", "key x"
	rows := make([]uint32, len(asked))
	var arena Arena
	read := make([]string, 3)
	err = func() (err error) {
		defer columnfile.Guard(&err, debug.SetPanicOnFault(true))
		f.FindAll(asked, rows)
		for k := range keys {
			arena.Reset()
			f.Read(rows[k], &arena, read)
			if want := fields(k, last[k]); !slices.Equal(read, want) || f.Find(asked[k]) != rows[k] {
				t.Fatalf("key %d is row %d, %q; want %q", k, rows[k], read, want)
			}
		}
		return nil
	}()
	if err != nil || rows[keys] != None || rows[keys+1] != None {
		t.Errorf("%v; rows %v of keys that nobody has", err, rows[keys:])
	}
	if err := f.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestShares sorts more values than fit the memory of the shares.
func TestShares(t *testing.T) {
	s := NewShares[[2]uint64](filepath.Join(t.TempDir(), "x.cols"))
	defer s.Close()
	random := rand.New(rand.NewPCG(7, 8))
	n := 256 * s.blockLen() * 2
	var sum uint64
	for range n {
		v := [2]uint64{random.Uint64(), random.Uint64()}
		sum += v[1]
		if err := s.Add(v[0], v); err != nil {
			t.Fatal(err)
		}
	}
	if s.file == nil {
		t.Fatal("nothing was written to the file")
	}
	var before uint64
	got := 0
	err := s.Each(t.Context(), func(values [][2]uint64) {
		slices.SortFunc(values, func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) })
	}, func(values [][2]uint64) error {
		for _, v := range values {
			if v[0] < before {
				return errors.New("out of order")
			}
			before = v[0]
			sum -= v[1]
			got++
		}
		return nil
	})
	if err != nil || got != n || sum != 0 {
		t.Errorf("%d of %d values, %d, %v", got, n, sum, err)
	}
}

// TestEmpty: a file without records is one.
func TestEmpty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "people-000001.cols")
	w, err := NewWriter(path, []bool{false})
	if err != nil {
		t.Fatal(err)
	}
	if keys, err := w.Records(t.Context()); keys != 0 || errors.Join(err, w.Finish(), w.Close()) != nil {
		t.Fatal(keys, err)
	}
	f, err := Open(atomicfile.TempName(path), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if row := f.Find("key"); row != None {
		t.Error(row)
	}
	if err := f.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}
