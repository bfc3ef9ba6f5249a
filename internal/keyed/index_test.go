package keyed

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
)

// writtenIndex writes an index and opens it.
func writtenIndex(t *testing.T, winner Winner, add func(*IndexWriter) error, keep func(uint32) bool, lost func(uint32)) *Index {
	t.Helper()
	dir := t.TempDir()
	file, err := atomicfile.Create(filepath.Join(dir, "x.cols"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	to, w := NewColumnWriter(file, MappedPages), NewIndexWriter(dir, winner)
	adding := add(w)
	n, writing := w.Write(t.Context(), to, "x", keep, lost)
	if err := errors.Join(adding, writing, to.Finish(), file.Commit(), w.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := OpenColumns(disk.Dir(dir), "x.cols")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &ColumnReader{Columns: f}
	index := ReadIndex(r, "x")
	if r.Err != nil || index.Len() != n {
		t.Fatal(r.Err, index.Len(), n)
	}
	return &index
}

// TestWinner: of rows with the same hash, the first or the last is kept, and one that comes
// later only without another.
func TestWinner(t *testing.T) {
	type added struct {
		row   uint32
		later bool
	}
	for _, c := range []struct {
		winner Winner
		rows   []added
		want   uint32
	}{
		{First, []added{{7, false}, {3, false}, {5, false}}, 3},
		{Last, []added{{7, false}, {3, false}, {5, false}}, 7},
		{First, []added{{1, true}, {6, false}}, 6},
		{First, []added{{4, true}, {2, true}}, 2},
		{Last, []added{{1<<31 - 2, false}, {0, false}}, 1<<31 - 2},
	} {
		lost := 0
		index := writtenIndex(t, c.winner, func(w *IndexWriter) (err error) {
			for _, r := range c.rows {
				err = errors.Join(err, w.Add(HashOf("key"), r.row, r.later))
			}
			return err
		}, nil, func(uint32) { lost++ })
		if got := slices.Collect(index.Rows(HashOf("key"))); !slices.Equal(got, []uint32{c.want}) || index.Len() != 1 || lost != len(c.rows)-1 {
			t.Errorf("winner %d of %v is %v, want %d; %d entries, %d lost", c.winner, c.rows, got, c.want, index.Len(), lost)
		}
	}
}

// FuzzIndex writes an index of hashes that crowd in few lines, or in the last one, and
// compares what it finds, one at a time and many together, with a map.
func FuzzIndex(f *testing.F) {
	crowd := make([]byte, 0, 3*200)
	for i := range 200 {
		crowd = append(crowd, byte(i/50), byte(i), byte(i%3))
	}
	last := make([]byte, 0, 3*40)
	for i := range 40 {
		last = append(last, 255, byte(i), 0)
	}
	for _, seed := range [][]byte{nil, {0, 0, 0}, {255, 255, 255}, crowd, last, append(last, crowd...)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed []byte) {
		// Three bytes are a row: the first bits of its hash, which name the line, the last
		// bits, which are in the entry, and the rest.
		var hashes []Hash
		for part := range slices.Chunk(seed, 3) {
			if len(part) == 3 {
				hashes = append(hashes, Hash{uint64(part[0])<<56 | uint64(part[1]), uint64(part[2])})
			}
		}
		first, kept := map[Hash]uint32{}, func(row uint32) bool { return row%7 != 3 }
		index := writtenIndex(t, First, func(w *IndexWriter) (err error) {
			for row, h := range hashes {
				if _, known := first[h]; !known && kept(uint32(row)) {
					first[h] = uint32(row)
				}
				err = errors.Join(err, w.Add(h, uint32(row), false))
			}
			return err
		}, kept, nil)
		if index.Len() != len(first) {
			t.Fatalf("%d entries of %d hashes", index.Len(), len(first))
		}
		for _, h := range slices.Clone(hashes) {
			hashes = append(hashes, Hash{^h.High, h.Low}, Hash{h.High + 1, h.Low})
		}
		together := make([]uint32, len(hashes))
		index.FirstRows(hashes, together)
		for i, h := range hashes {
			got := slices.Collect(index.Rows(h))
			for _, row := range got { // may have another hash with the same bits in its entry
				if found := hashes[row]; first[found] != row || uint32(found.High) != uint32(h.High) {
					t.Fatalf("%x finds row %d of %x", h, row, found)
				}
			}
			if row, known := first[h]; known && !slices.Contains(got, row) {
				t.Fatalf("%x does not find row %d, but %d", h, row, got)
			}
			if alone := append(got, None)[0]; alone != together[i] {
				t.Fatalf("%x finds row %d alone, %d together", h, alone, together[i])
			}
		}
	})
}
