package companies

import (
	"errors"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
)

// TestForgedJoins: numbers that point outside the file are damage, also where all checksums are right,
// whether rows were checked one by one or all columns before.
func TestForgedJoins(t *testing.T) {
	for _, c := range []struct {
		name        string
		row, code   uint32
		ends        []uint64
		opens, good bool
	}{
		{"whole", 1, 1, []uint64{0, 0, 3}, true, true},
		{"a row behind the table", 2, 1, []uint64{0, 0, 3}, true, false},
		{"a row far behind it", 1 << 30, 1, []uint64{0, 0, 3}, true, false},
		{"a code without a value", 1, 2, []uint64{0, 0, 3}, true, false},
		{"a negative code", 1, 1 << 31, []uint64{0, 0, 3}, true, false},
		{"a text that begins behind its end", 1, 1, []uint64{0, 9, 3}, true, false},
		{"a text behind the file", 1, 1, []uint64{0, 0, 4}, false, false},
	} {
		dir := t.TempDir()
		f, err := atomicfile.Create(filepath.Join(dir, "j.cols"), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		w := keyed.NewColumnWriter(f, keyed.MappedPages)
		keyed.Column(w, "owners", []uint32{0, c.row})
		keyed.Column(w, "people", []uint32{})
		for i, name := range names {
			if i != nameColumn {
				keyed.Column(w, name+"_codes", []uint32{0, 0})
				keyed.PutNoValues(w, name, widths[i])
				continue
			}
			keyed.Column(w, name+"_codes", []uint32{0, c.code})
			keyed.Column(w, name+"_offsets", c.ends)
			keyed.Column(w, name, []byte("abc"))
		}
		if err := errors.Join(w.Finish(), f.Commit()); err != nil {
			t.Fatal(err)
		}
		j, err := OpenJoins(None, 2, 0)(disk.Dir(dir), "j.cols")
		if (err == nil) != c.opens || err != nil && !errors.Is(err, keyed.ErrDamaged) {
			t.Errorf("%s: open: %v", c.name, err)
		}
		if err != nil {
			continue
		}
		for _, before := range []int64{0, 1 << 40} {
			checker := j.Checker(&[resolution.CompanyColumns]bool{1: before > 0}) // another one each time
			checker.checked.Store(before)
			if err := checkOwner(j, checker); (err == nil) != c.good || err != nil && !errors.Is(err, keyed.ErrDamaged) {
				t.Errorf("%s, after %d rows: %v", c.name, before, err)
			}
		}
		if _, _, err := j.Verify(t.Context()); (err == nil) != c.good || err != nil && !errors.Is(err, keyed.ErrDamaged) {
			t.Errorf("%s: verify: %v", c.name, err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}

// checkOwner checks the company of the second owner.
func checkOwner(j *Joins, c *Checker) (err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	rows := []uint32{0}
	j.Owners([]uint32{2}, rows)
	return c.Check(rows)
}
