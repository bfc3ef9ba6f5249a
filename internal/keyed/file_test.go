package keyed

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/spill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRoundTrip writes more texts than a dictionary takes, and keys again: every
// key finds its last record.
func TestRoundTrip(t *testing.T) {
	const keys = 100_000
	in := disk.Dir(t.TempDir())
	to, err := atomicfile.CreateIn(in, "people.cols", 0o600)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWriter(to, string(in), []bool{false, true, false}, MappedPages)
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
	if err := errors.Join(err, w.Finish(), w.Close(), to.Commit()); err != nil || got != keys {
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
	f, err := Open(in, "people.cols", 3)
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
		defer Guard(&err, debug.SetPanicOnFault(true))
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
		t.Errorf("%v; rows %v of unknown keys", err, rows[keys:])
	}
	if _, _, err := f.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestDictionaryLimits: a dictionary takes many texts only if they come again and are short.
func TestDictionaryLimits(t *testing.T) {
	long := strings.Repeat("x", 100)
	random := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct {
		name string
		rows int
		text func(i int) string
		want int // texts; 0 for all
	}{
		{"few", 100, func(i int) string { return fmt.Sprint(i % 10) }, 0},
		{"unique", 70_000, func(i int) string { return fmt.Sprint(i) }, firstTexts},
		{"100,000 that come again", 200_000, func(int) string { return fmt.Sprint(random.IntN(100_000)) }, 0},
		{"200,000 that come again", 350_000, func(int) string { return fmt.Sprint(random.IntN(200_000)) }, moreTexts},
		{"long ones that come again", 200_000, func(int) string { return fmt.Sprint(long, random.IntN(100_000)) }, firstTexts},
	} {
		d, lacked := &numbering{}, 0
		for i := range c.rows {
			text := c.text(i)
			switch code, ok := d.code(text); {
			case !ok:
				lacked++
			case d.texts[code] != text:
				t.Fatalf("%s: the code of %q is that of %q", c.name, text, d.texts[code])
			}
		}
		if (c.want == 0) != (lacked == 0) || c.want != 0 && len(d.texts) != c.want {
			t.Errorf("%s: %d texts, %d times a text without a code; want %d texts", c.name, len(d.texts), lacked, c.want)
		}
	}
}

// TestSortPairs compares with the sort of the library, also where hashes are not spread.
func TestSortPairs(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for _, n := range []int{0, 1, 2, 3, 17, 5000} {
		for name, high := range map[string]func() uint64{
			"spread": func() uint64 { return 3<<(64-spill.ShareBits) | random.Uint64()>>spill.ShareBits },
			"few":    func() uint64 { return random.Uint64N(3) << 40 },
			"one":    func() uint64 { return 1 << 63 },
		} {
			pairs := make([]pair, n)
			for i := range pairs {
				pairs[i] = pair{high(), random.Uint32N(3), random.Uint32()}
			}
			want := slices.SortedFunc(slices.Values(pairs), comparePairs)
			if got, _ := sortPairs(pairs, make([]pair, n)); !slices.Equal(got, want) {
				t.Errorf("%d pairs, %s: out of order", n, name)
			}
		}
	}
}

// TestEmpty: a file without records is one.
func TestEmpty(t *testing.T) {
	in := disk.Dir(t.TempDir())
	to, err := atomicfile.CreateIn(in, "people.cols", 0o600)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWriter(to, string(in), []bool{false}, MappedPages)
	if keys, err := w.Records(t.Context()); keys != 0 || errors.Join(err, w.Finish(), w.Close(), to.Commit()) != nil {
		t.Fatal(keys, err)
	}
	f, err := Open(in, "people.cols", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if row := f.Find("key"); row != None {
		t.Error(row)
	}
	if _, _, err := f.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}
