package keyed

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/leadetl/leadetl/internal/disk"
)

// TestScattered: a file that does not fit into memory has the same values, and its damage is
// found.
func TestScattered(t *testing.T) {
	for bits := range magics {
		t.Run(fmt.Sprint("pages of ", 1<<bits, " bytes"), func(t *testing.T) { testScattered(t, bits) })
	}
}

func testScattered(t *testing.T, bits PageBits) {
	in := disk.Dir(t.TempDir())
	name := in.Path("x.cols")
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	values := make([]uint64, 100_001)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range values {
		values[i] = random.Uint64()
	}
	w := NewColumnWriter(out, bits)
	Column(w, "numbers", values)
	Column(w, "bytes", make([]uint8, 200_003)) // they neither begin nor end where a page does
	if err := errors.Join(w.Finish(), out.Close()); err != nil {
		t.Fatal(err)
	}
	open := func(free int64, scattered bool) (*Columns, Checked[uint64], Checked[uint8]) {
		f, err := OpenColumns(in, "x.cols")
		if err != nil {
			t.Fatal(err)
		}
		if f.scatter(free); f.scattered != scattered {
			t.Fatalf("with %d free bytes, %d bytes are scattered: %v", free, f.Size(), f.scattered)
		}
		r := ColumnReader{Columns: f}
		numbers, bytes := ReadChecked[uint64](&r, "numbers", len(values)), ReadChecked[uint8](&r, "bytes", -1)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		return f, numbers, bytes
	}
	f, _, _ := open(math.MaxInt64, false)
	size := int64(f.Size())
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f, _, _ = open(2*size, false)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f, column, bytes := open(size, true)
	for range 200 {
		places, got := []uint64{0, uint64(len(values) - 1)}, make([]uint64, 64)
		for len(places) < len(got) {
			places = append(places, random.Uint64N(uint64(len(values))))
		}
		column.Expect(places)
		column.Load(places, got)
		for i, place := range places {
			if got[i] != values[place] {
				t.Fatalf("value %d is %d, want %d", place, got[i], values[place])
			}
		}
	}
	for range 50 {
		n := uint64(bytes.Len())
		touch(&bytes, []uint64{random.Uint64N(n), n - 1, n - 200}, random.Uint64N(200), 200+random.Uint64N(200), 64)
	}
	if err := errors.Join(f.CheckAll(), f.Verify(), f.Close()); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[8*len(values)/2] ^= 1
	data[8*len(values)+2<<bits] ^= 1 // a page of bytes alone
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, column, bytes = open(0, true)
	damage := func(look func()) (err error) {
		defer Guard(&err, setPanicOnFault())
		look()
		return nil
	}
	half := []uint64{uint64(len(values) / 2)}
	if err := damage(func() { column.Expect(half); column.Load(half, make([]uint64, 1)) }); !errors.Is(err, ErrDamaged) {
		t.Errorf("Load: %v", err)
	}
	if err := damage(func() { touch(&bytes, []uint64{0}, 0, 3<<bits, 1<<bits) }); !errors.Is(err, ErrDamaged) {
		t.Errorf("Touch: %v", err)
	}
	if whole, again := f.CheckAll(), f.Verify(); !errors.Is(whole, ErrDamaged) || !errors.Is(again, ErrDamaged) {
		t.Errorf("CheckAll: %v; Verify: %v", whole, again)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestGroupLimit(t *testing.T) {
	mount := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(mount, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("service/memory.max", "5000000\n")
	write("service/worker/memory.max", "max\n")
	write("memory/memory.limit_in_bytes", "9223372036854771712\n")
	write("memory/job/memory.limit_in_bytes", "3000000\n")
	for _, c := range []struct {
		name, groups string
		want         int64
	}{
		{"no groups", "", math.MaxInt64},
		{"version 2, of a group above", "0::/service/worker\n", 5_000_000},
		{"version 2, no limit", "0::/other\n", math.MaxInt64},
		{"version 1", "5:cpu:/service\n4:memory:/job\n", 3_000_000},
		{"version 1, a path of outside", "4:memory:/docker/1\n", 9223372036854771712},
		{"the lowest of both", "4:memory:/job\n0::/service\n", 3_000_000},
		{"not a line of groups", "memory\n", math.MaxInt64},
	} {
		if got := groupLimit(mount, c.groups); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if free := freeMemory(); free <= 0 {
		t.Errorf("%d bytes are free", free)
	}
}
