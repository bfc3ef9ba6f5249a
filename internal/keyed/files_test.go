package keyed_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
)

// repeated are the fields of the tests: a key, a word, and a body.
var repeated = []bool{false, true, false}

// record is one of the tests, by its key.
func record(key string, word, size byte) []string {
	return []string{key, string('a' + word%5), strings.Repeat(string('0'+size%10), int(size))}
}

// commit writes a file of records and opens it.
func commit(tb testing.TB, in disk.Folder, name string, records [][]string) *keyed.File {
	tb.Helper()
	return committed(tb, in, name, repeated, func(add func(...string) error) error {
		for _, r := range records {
			if err := add(r...); err != nil {
				return err
			}
		}
		return nil
	})
}

// committed is commit of the records that write adds.
func committed(tb testing.TB, in disk.Folder, name string, repeated []bool, write func(add func(...string) error) error) *keyed.File {
	tb.Helper()
	to, err := atomicfile.CreateIn(in, name, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	w := keyed.NewWriter(to, tb.TempDir(), repeated, keyed.RemotePages)
	err = write(func(fields ...string) error { _, err := w.Add(fields...); return err })
	if err == nil {
		_, err = w.Records(tb.Context())
	}
	if err := errors.Join(err, w.Finish(), w.Close(), to.Commit()); err != nil {
		tb.Fatal(err)
	}
	f, err := keyed.Open(in, name, len(repeated))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := f.Close(); err != nil {
			tb.Error(err)
		}
	})
	return f
}

// guarded calls do under Guard.
func guarded(do func()) (err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	do()
	return nil
}

// merged is a file of all records of files.
func merged(tb testing.TB, in disk.Folder, name string, repeated []bool, files keyed.Files) *keyed.File {
	tb.Helper()
	return committed(tb, in, name, repeated, func(add func(...string) error) error {
		for fields, err := range files.InOrder(tb.Context()) {
			if err == nil {
				err = add(fields...)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// simulated is an empty simulated disk.
func simulated(ctx context.Context) disk.Folder {
	w := worldtest.New(1, nil)
	w.Begin(ctx, 0)
	return worldtest.NewDisk(w)
}

// FuzzFiles compares files with a map: what is found by key, what is there in order, and both in
// the file that they are merged into. It does so on a disk and on a simulated one.
func FuzzFiles(f *testing.F) {
	for _, seed := range [][]byte{nil, {1, 1, 1, 1}, {0, 9, 1, 2, 1, 9, 2, 250, 2, 9, 3, 3}, slices.Repeat([]byte{0, 7, 7, 7, 1, 8, 8, 8, 3, 7, 1, 1}, 90)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed []byte) {
		layers, all := [4]map[string][]string{}, map[string][]string{}
		for i := range layers {
			layers[i] = map[string][]string{}
		}
		n := byte(0)
		for part := range slices.Chunk(seed, 4) { // four bytes are a record: its file, key, word and body
			if len(part) == 4 {
				n++
				key := fmt.Sprint("key ", part[1], n%16)
				layers[part[0]%4][key] = record(key, part[2], part[3])
			}
		}
		for name, in := range map[string]disk.Folder{"a disk": disk.Dir(t.TempDir()), "a simulated disk": simulated(t.Context())} {
			var files keyed.Files
			for i, layer := range layers {
				maps.Copy(all, layer)
				files = append(files, commit(t, in, fmt.Sprint(i), inOrder(layer)))
			}
			one := merged(t, in, "merged", repeated, files)
			if one.Rows() != len(all) || one.Keys() != len(all) {
				t.Fatalf("%s: %d rows, %d keys are merged of %d", name, one.Rows(), one.Keys(), len(all))
			}
			for _, files := range []keyed.Files{files, {one}} {
				compare(t, files, all)
			}
		}
	})
}

// inOrder are records in the order of their keys.
func inOrder(records map[string][]string) (sorted [][]string) {
	for _, key := range slices.Sorted(maps.Keys(records)) {
		sorted = append(sorted, records[key])
	}
	return sorted
}

// compare compares files with all records.
func compare(t *testing.T, files keyed.Files, all map[string][]string) {
	t.Helper()
	var got [][]string
	for fields, err := range files.InOrder(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, nil)
		for _, text := range fields {
			got[len(got)-1] = append(got[len(got)-1], strings.Clone(text))
		}
	}
	if want := inOrder(all); !slices.EqualFunc(got, want, slices.Equal) {
		t.Fatalf("in order, there are %q, want %q", got, want)
	}
	keys := append(slices.Sorted(maps.Keys(all)), "", "nobody")
	rows := make([]uint32, len(keys))
	var arena keyed.Arena
	fields := make([]string, len(repeated))
	left := maps.Clone(all)
	if err := guarded(func() {
		for _, f := range slices.Backward(files) {
			f.FindAll(keys, rows)
			for i, row := range rows {
				want := all[keys[i]]
				switch {
				case row == keyed.None:
					continue
				case want == nil:
					t.Fatalf("%q is found in row %d", keys[i], row)
				}
				if f.Read(row, &arena, fields); left[keys[i]] != nil && !slices.Equal(fields, want) {
					t.Fatalf("%q has %q, want %q", keys[i], fields, want)
				}
				delete(left, keys[i])
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Fatalf("%q are not found", slices.Sorted(maps.Keys(left)))
	}
}

// TestDamaged: what is wrong with a file is an error that names the file and, of a wrong
// checksum, the bytes; on a simulated disk too. Nothing is yielded that may be wrong.
func TestDamaged(t *testing.T) {
	var records [][]string
	for i := range 3000 {
		records = append(records, record(fmt.Sprintf("key %06d", i), byte(i), 100))
	}
	for name, in := range map[string]disk.Folder{"a disk": disk.Dir(t.TempDir()), "a simulated disk": simulated(t.Context())} {
		commit(t, in, "whole", records)
		whole, err := in.ReadFile("whole")
		if err != nil {
			t.Fatal(err)
		}
		flipped := slices.Clone(whole)
		flipped[150_000] ^= 1
		for _, c := range []struct {
			name    string
			content []byte
			opens   bool
			says    string
		}{
			{"a bit", flipped, true, "bytes 131072 to 196608 of " + in.Path("hurt") + " (records) have a wrong checksum"},
			{"cut", whole[:len(whole)-1], false, "open " + in.Path("hurt") + ": the file is damaged"},
			{"empty", nil, false, "open " + in.Path("hurt") + ": the file is damaged"},
		} {
			if err := atomicfile.WriteIn(in, "hurt", c.content); err != nil {
				t.Fatal(err)
			}
			f, err := keyed.Open(in, "hurt", len(repeated))
			if (err == nil) != c.opens {
				t.Fatalf("%s, %s: open: %v", name, c.name, err)
			}
			if err != nil {
				wantDamage(t, name+", "+c.name+": open", err, c.says)
				continue
			}
			wantDamage(t, name+", "+c.name+": check", f.CheckAll(), c.says)
			_, _, err = f.Verify(t.Context())
			wantDamage(t, name+", "+c.name+": verify", err, c.says)
			n := 0
			for fields, failed := range (keyed.Files{f}).InOrder(t.Context()) {
				if err = failed; err == nil && !slices.Equal(fields, records[n]) {
					t.Fatalf("%s: record %d is %q", name, n, fields)
				}
				n++
			}
			wantDamage(t, name+", "+c.name+": in order", err, c.says)
			if n < 1000 {
				t.Errorf("%s: %d records before the damage", name, n)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestCutWhileOpen: what the disk cannot read any more is an error, and not the end of the process.
func TestCutWhileOpen(t *testing.T) {
	var records [][]string
	for i := range 3000 {
		records = append(records, record(fmt.Sprintf("key %06d", i), byte(i), 100))
	}
	in := disk.Dir(t.TempDir())
	f := commit(t, in, "cut", records)
	if err := os.Truncate(in.Path("cut"), 1<<16); err != nil {
		t.Fatal(err)
	}
	_, _, err := f.Verify(t.Context())
	wantDamage(t, "verify", err, "bytes 65536 to 131072 of "+in.Path("cut")+": the file is damaged")
	wantDamage(t, "look up", guarded(func() {
		f.FindAll([]string{"key 000001"}, make([]uint32, 1))
	}), "")
	for _, failed := range (keyed.Files{f}).InOrder(t.Context()) {
		err = failed
	}
	wantDamage(t, "in order", err, in.Path("cut"))
}

func wantDamage(t *testing.T, what string, err error, says string) {
	t.Helper()
	if !errors.Is(err, keyed.ErrDamaged) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v, want %q", what, err, says)
	}
}

// TestOutOfOrder: records that were not added in the order of their keys are not yielded as if
// they were.
func TestOutOfOrder(t *testing.T) {
	for name, keys := range map[string]string{"an earlier key": "acb", "a key again": "aab"} {
		in := disk.Dir(t.TempDir())
		var records [][]string
		for _, key := range keys {
			records = append(records, record(string(key), 1, 1))
		}
		var last error
		for _, err := range (keyed.Files{commit(t, in, "wrong", records)}).InOrder(t.Context()) {
			last = err
		}
		wantDamage(t, name, last, in.Path("wrong")+": the file is damaged: record ")
	}
}
