package email

import (
	"bytes"
	"testing"
	"unicode/utf8"
)

func addCells(f *testing.F) {
	for _, cell := range allCells() {
		f.Add([]byte(cell))
	}
}

// The fast path refuses nothing the general one takes differently: where it
// has an answer, it is the same one.
func FuzzTwoPaths(f *testing.F) {
	addCells(f)
	f.Fuzz(func(t *testing.T, cell []byte) {
		fast, ok := parseASCII(cell)
		if !ok {
			return
		}
		slow, err := parseAny(cell)
		if err != nil {
			t.Fatalf("the fast path takes %q, the general one says %v", cell, err)
		}
		if fast.at != slow.at || fast.kind != slow.kind || fast.ascii != slow.ascii || fast.unusual != slow.unusual || !bytes.Equal(fast.text, slow.text) {
			t.Fatalf("%q: %+v by the fast path, %+v by the general one", cell, fast, slow)
		}
		for _, p := range Known {
			a, aOK := fast.AppendForm(nil, p)
			b, bOK := slow.AppendForm(nil, p)
			if aOK != bOK || !bytes.Equal(a, b) {
				t.Fatalf("%v form of %q: %q by the fast path, %q by the general one", p, cell, a, b)
			}
		}
	})
}

// A key is its own key and a form its own form, and neither holds what must
// not be hashed.
func FuzzFormOfForm(f *testing.F) {
	addCells(f)
	f.Fuzz(func(t *testing.T, cell []byte) {
		before := bytes.Clone(cell)
		a, err := Parse(cell)
		if err != nil {
			return
		}
		key := a.AppendKey(nil)
		if !utf8.Valid(key) || bytes.ContainsFunc(key, isForbidden) {
			t.Fatalf("%q has key %q", cell, key)
		}
		again, err := Parse(key)
		if err != nil || again.Kind() != a.Kind() || !bytes.Equal(again.AppendKey(nil), key) {
			t.Fatalf("%q has key %q, and that %+v, %v", cell, key, again, err)
		}
		for _, p := range Known {
			form, ok := a.AppendForm(nil, p)
			if !ok {
				continue
			}
			if p == Plain && !bytes.Equal(form, key) {
				t.Fatalf("%q has key %q and plain form %q", cell, key, form)
			}
			again, err := Parse(form)
			if err != nil {
				t.Fatalf("%v form %q of %q: %v", p, form, cell, err)
			}
			if second, ok := again.AppendForm(nil, p); !ok || !bytes.Equal(second, form) {
				t.Fatalf("%v form of %q is %q, and of that %q", p, cell, form, second)
			}
		}
		if !bytes.Equal(cell, before) {
			t.Fatalf("%q was changed to %q", before, cell)
		}
	})
}
