package exchange

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/internal/fields"
	"github.com/leadetl/leadetl/internal/rows"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
)

var scope = answers.Scope{Service: "https://leads.example", Operation: resolution.IPToCompany}

func hashOf(key string) answers.Hash { return answers.Question{Scope: scope, Key: key}.Hash() }

func object(data []byte) Object {
	return Object{"a test's object", bytes.NewReader(data), int64(len(data))}
}

// writeKeys sorts keys in little memory, and returns the file of them.
func writeKeys(t require, keys []string, limit int) []byte {
	s := NewSorter(t.dir, limit)
	for _, key := range keys {
		t.fine(s.Add(hashOf(key), []byte(key)))
	}
	var file bytes.Buffer
	t.fine(WriteKeys(&file, s.Sorted()))
	t.fine(s.Close())
	return file.Bytes()
}

type require struct {
	rapid.TB
	dir string
}

func (t require) fine(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestExchangeAgainstMap drives keys through the whole exchange: each distinct
// key is in one lot with the parts that have it, and each part gets back what is
// known of its own keys, and nothing else.
func TestExchangeAgainstMap(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		t := require{rt, dir}
		texts := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,3}`), 0, 60)
		parts := rapid.SliceOfN(texts, 1, 6).Draw(rt, "parts")
		limit := rapid.SampledFrom([]int{1, 200, 1000, 1 << 20}).Draw(rt, "limit")
		model := map[string]uint64{}
		var files []*Keys
		var counts [Buckets]int64
		for i, keys := range parts {
			for _, key := range keys {
				model[key] |= 1 << i
			}
			k, err := OpenKeys(object(writeKeys(t, keys, limit)))
			t.fine(err)
			k.AddTo(&counts)
			if want := int64(len(slices.Compact(slices.Sorted(slices.Values(keys))))); k.Count() != want {
				rt.Fatalf("part %d has %d keys, want %d", i, k.Count(), want)
			}
			files = append(files, k)
		}
		most := rapid.Int64Range(1, 50).Draw(rt, "most")
		lots := CutLots(&counts, most)
		stored := make([]*Stored, len(parts))
		for i := range parts {
			var err error
			stored[i], err = NewStored("part", dir, scope)
			t.fine(err)
			defer stored[i].Close()
		}
		seen, next := map[string]uint64{}, 0
		for _, lot := range lots {
			if lot.From != next {
				rt.Fatalf("a lot begins at %d, want %d", lot.From, next)
			}
			next = lot.To
			for _, k := range passLot(t, lot, files, stored) {
				seen[string(k.Text)] |= k.Parts
			}
		}
		if next != Buckets || !maps.Equal(seen, model) {
			rt.Fatalf("lots end at %d with keys %v, want %v", next, seen, model)
		}
		for i, s := range stored {
			t.fine(s.Filled())
			checkStored(t, s, i, model)
		}
	})
}

// passLot gathers a lot, and shares it.
func passLot(t require, lot Lot, files []*Keys, stored []*Stored) []LotKey {
	var lists [][]Key
	for _, k := range files {
		keys, err := k.Read(lot.From, lot.To)
		t.fine(err)
		lists = append(lists, keys)
	}
	gathered := Merge(lists)
	for i := range gathered {
		gathered[i].Ask = len(gathered[i].Text)%2 == 0
	}
	keys, err := DecodeLot("lot", EncodeLot(gathered))
	t.fine(err)
	if len(keys) != len(gathered) {
		t.Fatalf("%d keys, want %d", len(keys), len(gathered))
	}
	out := NewSlices()
	for i, k := range keys {
		if k.Ask != gathered[i].Ask {
			t.Fatalf("a key is to ask: %v", k.Ask)
		}
		out.Add(k.Hash, k.Parts, foundOf(string(k.Text)))
	}
	var file bytes.Buffer
	t.fine(out.Write(&file))
	f, err := OpenSlices(object(file.Bytes()))
	t.fine(err)
	for part, s := range stored {
		if f.Has(part) {
			t.fine(f.Each(part, s.Add))
		}
	}
	return keys
}

// foundOf is what is known of a key: something else for each.
func foundOf(key string) (f answers.Found) {
	credits := int64(len(key))
	switch key[0] % 4 {
	case 0:
		return answers.Found{}
	case 1:
		return answers.Found{Open: answers.Unknown}
	case 2:
		return answers.Found{Stored: true, Answer: answers.Answer{Outcome: answers.Refused, Reason: "refused:" + key}}
	}
	return answers.Found{Stored: true, Fresh: true, Answer: answers.Answer{
		Outcome: answers.Matched, Status: 200, Body: []byte(strings.Repeat(key, 50)), Resolution: "r" + key, Request: "q", Credits: &credits,
		Received: time.UnixMilli(1700000000123 + int64(key[0])).UTC(),
	}}
}

func checkStored(t require, s *Stored, part int, model map[string]uint64) {
	mine := 0
	for key, parts := range model {
		found, err := s.Lookup(context.Background(), scope, []string{key}, answers.Freshness{}, true, nil)
		if parts&(1<<part) == 0 {
			if !errors.Is(err, ErrNotInSlices) {
				t.Fatalf("a key of another part: %v", err)
			}
			continue
		}
		mine++
		t.fine(err)
		if got, want := describe(found[0]), describe(foundOf(key)); got != want {
			t.Fatalf("%q: got %s, want %s", key, got, want)
		}
		byHash, err := s.LookupHashes(context.Background(), []answers.Hash{hashOf(key)}, answers.Freshness{}, nil)
		t.fine(err)
		if byHash[0].Answer.Body != nil || byHash[0].Answer.Outcome != found[0].Answer.Outcome {
			t.Fatalf("%q by hash: %+v", key, byHash[0])
		}
	}
	if s.Len() != mine {
		t.Fatalf("%d records, want %d", s.Len(), mine)
	}
}

func describe(f answers.Found) string {
	credits := int64(-1)
	if f.Answer.Credits != nil {
		credits, f.Answer.Credits = *f.Answer.Credits, nil
	}
	return fmt.Sprintf("%d %+v", credits, f)
}

// TestRowsComeBack: batches come back as they were, with nulls, malformed lines
// and their sizes.
func TestRowsComeBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		t := require{rt, ""}
		columns := rapid.IntRange(1, 3).Draw(rt, "columns")
		var before []*rows.Batch
		var file bytes.Buffer
		w, err := NewRowsWriter(&file)
		t.fine(err)
		for range rapid.IntRange(0, 4).Draw(rt, "batches") {
			b := drawBatch(rt, columns)
			before = append(before, b)
			t.fine(w.Write(b))
		}
		t.fine(w.Close())
		r, err := NewRowsReader("rows", &file, int64(file.Len()), columns)
		t.fine(err)
		defer r.Close()
		for i, want := range before {
			got, err := r.Next()
			t.fine(err)
			if g, w := printed(got), printed(want); g != w {
				rt.Fatalf("batch %d: got %s, want %s", i, g, w)
			}
			got.Release()
		}
		if _, err := r.Next(); err != io.EOF {
			rt.Fatalf("after the last batch: %v", err)
		}
	})
}

func drawBatch(rt *rapid.T, columns int) *rows.Batch {
	n := rapid.IntRange(0, 5).Draw(rt, "rows")
	b := rows.NewBuilder(columns, n)
	order := make([]int, columns)
	for i := range order {
		order[i] = i
	}
	number := rapid.Int64Range(1, 1<<40).Draw(rt, "first")
	for range n {
		for i := range columns {
			if rapid.Bool().Draw(rt, "null") {
				b.AddNull(i)
			} else {
				b.Add(i, []byte(rapid.String().Draw(rt, "cell")))
			}
		}
		b.Commit(number, number+7)
		number += rapid.Int64Range(1, 3).Draw(rt, "gap")
	}
	for range rapid.IntRange(0, 2).Draw(rt, "rejects") {
		b.Reject(rows.Reject{Source: "a.csv", Line: number, Row: number + 1, Reason: rows.RaggedRow}, rapid.SliceOf(rapid.Byte()).Draw(rt, "raw"))
	}
	return b.Batch(rapid.SampledFrom([]string{"a.csv", "s3://b/c"}).Draw(rt, "source"), order)
}

func printed(b *rows.Batch) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%q %v", b.Source, b.Rows)
	for _, c := range b.Columns {
		for i := range c.Len() {
			fmt.Fprintf(&out, " %v:%q", c.IsNull(i), c.Value(i))
		}
	}
	for _, r := range b.Rejects {
		fmt.Fprintf(&out, " %q %d %d %s %q", r.Source, r.Line, r.Row, r.Reason, r.Raw)
	}
	return out.String()
}

// files are one small file of each kind, with a reader that reads all of it.
func files(t require) map[string]struct {
	data []byte
	read func([]byte) error
} {
	keys := writeKeys(t, []string{"a", "b", "c", "dd"}, 1<<20)
	lot := EncodeLot([]LotKey{{Key: Key{Hash: answers.Hash{1}, Text: []byte("a")}, Parts: 3, Ask: true}, {Key: Key{Hash: answers.Hash{2}, Text: []byte("b")}, Parts: 1 << 63}})
	out := NewSlices()
	out.Add(answers.Hash{1}, 5, foundOf("c"))
	out.Add(answers.Hash{2}, 1<<63, foundOf("b"))
	var sliced, written bytes.Buffer
	t.fine(out.Write(&sliced))
	w, err := NewRowsWriter(&written)
	t.fine(err)
	b := rows.NewBuilder(2, 1)
	b.Add(0, []byte("ada@bakery.example"))
	b.AddNull(1)
	b.Commit(1, 2)
	b.Reject(rows.Reject{Source: "a.csv", Line: 3, Row: 2, Reason: rows.RaggedRow}, []byte("x"))
	t.fine(w.Write(b.Batch("a.csv", []int{0, 1})))
	t.fine(w.Close())
	type kind = struct {
		data []byte
		read func([]byte) error
	}
	return map[string]kind{
		"keys":     {keys, readKeys},
		"lot":      {lot, func(data []byte) error { _, err := DecodeLot("a test's object", data); return err }},
		"verdicts": {EncodeVerdicts([]Verdict{{answers.Hash{1}, "unavailable"}, {answers.Hash{2}, "unknown_call"}}), readVerdicts},
		"slices":   {sliced.Bytes(), readSlices},
		"rows":     {written.Bytes(), readRows},
	}
}

func readKeys(data []byte) error {
	k, err := OpenKeys(object(data))
	if err == nil {
		_, err = k.Read(0, Buckets)
	}
	return err
}

func readVerdicts(data []byte) error {
	_, err := DecodeVerdicts("a test's object", data)
	return err
}

func readSlices(data []byte) error {
	f, err := OpenSlices(object(data))
	for part := 0; err == nil && part < MaxParts; part++ {
		err = f.Each(part, func(r Record) error {
			d := fields.Reader{Rest: r.data}
			if decodeFound(&d); d.Broken {
				return damaged("a test's object", "record")
			}
			return nil
		})
	}
	return err
}

func readRows(data []byte) error {
	r, err := NewRowsReader("a test's object", bytes.NewReader(data), int64(len(data)), 2)
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		b, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		b.Release()
	}
}

// TestDamage: no byte can change, be missing or be added without an error that
// names the object.
func TestDamage(t *testing.T) {
	for name, kind := range files(require{t, t.TempDir()}) {
		if err := kind.read(kind.data); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		try := func(what string, data []byte) {
			t.Helper()
			if err := kind.read(data); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "a test's object") {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		for i := range kind.data {
			other := slices.Clone(kind.data)
			other[i] ^= 0x10
			try(fmt.Sprintf("byte %d", i), other)
			try(fmt.Sprintf("the first %d bytes", i), kind.data[:i])
		}
		try("more bytes", append(slices.Clone(kind.data), 0))
	}
}

// FuzzReaders: whatever is read gives an error or all of it, and never panics,
// even if the checksums are right.
func FuzzReaders(f *testing.F) {
	for _, kind := range files(require{f, f.TempDir()}) {
		f.Add(kind.data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, kind := range map[string]func([]byte) error{"keys": readKeys, "verdicts": readVerdicts, "slices": readSlices, "rows": readRows} {
			if err := kind(data); err != nil && !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %v", name, err)
			}
		}
		// What is behind a checksum, without it.
		b := decodeBatch(&fields.Reader{Rest: data}, 2)
		if b != nil {
			again := decodeBatch(&fields.Reader{Rest: appendBatch(nil, b)}, 2)
			if again == nil || printed(again) != printed(b) {
				t.Error("a batch changes when it is written again")
			}
		}
		sealed := EncodeLot(nil)[:magicBytes]
		sealed = append(append([]byte{}, sealed...), data...)
		sum := checksum(sealed)
		sealed = append(sealed, byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
		if keys, err := DecodeLot("lot", sealed); err == nil && !bytes.Equal(EncodeLot(keys)[:len(sealed)-4], sealed[:len(sealed)-4]) {
			// Two spellings of a number are possible; what they mean must be the same.
			if again, err := DecodeLot("lot", EncodeLot(keys)); err != nil || len(again) != len(keys) {
				t.Errorf("a lot changes when it is written again: %v", err)
			}
		}
		d := fields.Reader{Rest: data}
		decodeFound(&d)
		all, fine := appendBlock(nil, data, keyBlock{bucket: 0, keys: 1})
		if fine && len(all) != 1 {
			t.Errorf("%d keys, want 1", len(all))
		}
	})
}

// TestLots: a lot has at most as many keys as it should, unless it is one
// bucket.
func TestLots(t *testing.T) {
	var counts [Buckets]int64
	if lots := CutLots(&counts, 10); len(lots) != 1 || lots[0] != (Lot{0, Buckets}) {
		t.Errorf("without keys: %v", lots)
	}
	counts[1], counts[2], counts[3], counts[4000] = 6, 4, 1, 25
	want := []Lot{{0, 3}, {3, 4000}, {4000, Buckets}}
	if lots := CutLots(&counts, 10); !slices.Equal(lots, want) {
		t.Errorf("got %v, want %v", lots, want)
	}
}

// TestSorterKeepsOrder: the caller's mistakes are errors.
func TestSorterKeepsOrder(t *testing.T) {
	one, two := Key{answers.Hash{1}, []byte("a")}, Key{answers.Hash{2}, []byte("b")}
	for name, keys := range map[string][]Key{"repeated": {one, one}, "unsorted": {two, one}, "empty": {{answers.Hash{1}, nil}}} {
		err := WriteKeys(io.Discard, func(yield func(Key, error) bool) {
			for _, k := range keys {
				if !yield(k, nil) {
					return
				}
			}
		})
		if !errors.Is(err, errUnsorted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if h := answers.Hash(sha256.Sum256(nil)); BucketOf(FirstHash(BucketOf(h))) != BucketOf(h) || FirstHash(BucketOf(h)).Compare(h) > 0 || LastHash(BucketOf(h)).Compare(h) < 0 {
		t.Error("a hash is not in its bucket")
	}
}
