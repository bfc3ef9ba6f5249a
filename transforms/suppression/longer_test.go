package suppression

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func TestAdded(t *testing.T) {
	set := func(cells ...string) *Set {
		b := NewBuilder(Rules{Region: "US"})
		for _, c := range cells {
			if err := b.Add(c); err != nil {
				t.Fatal(err)
			}
		}
		return b.Set()
	}
	encode := func(s *Set) []byte {
		var b bytes.Buffer
		if err := s.Encode(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	const ann, bob, digest, number = "ann@x.example", "bob@x.example", "5c775bc919bf1ef191d538e4895de250", "+14155550123"
	for _, c := range []struct {
		name        string
		before, now *Set
		want        *Set // nil: now lacks something
	}{
		{"the same", set(ann, digest), set(digest, ann), set()},
		{"nothing before", set(), set(ann, number), set(ann, number)},
		{"more", set(ann), set(ann, bob, digest, number), set(bob, digest, number)},
		{"less", set(ann, bob), set(ann), nil},
		{"others", set(ann), set(bob), nil},
		{"nothing now", set(digest), set(), nil},
	} {
		encoded := encode(c.before)
		got, err := c.now.Added(bytes.NewReader(encoded))
		if err != nil || (got == nil) != (c.want == nil) || got != nil && got.Fingerprint() != c.want.Fingerprint() {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
		if got != nil && c.name == "more" && (!got.Finder().Lists(Email, bob) || got.Finder().Lists(Email, ann) || !got.Finder().Lists(Phone, number)) {
			t.Errorf("%s: it does not find who was added", c.name)
		}
		for cut := range encoded {
			if got, err := c.now.Added(bytes.NewReader(encoded[:cut])); err == nil && got != nil {
				t.Errorf("%s: %d of %d bytes are taken for a list", c.name, cut, len(encoded))
			}
		}
	}
	broken := errors.New("a broken disk")
	for _, at := range []int{0, 5, 8, len(encode(set(ann)))} {
		r := io.MultiReader(bytes.NewReader(encode(set(ann))[:at]), iotest.ErrReader(broken))
		if _, err := set(ann, bob).Added(r); !errors.Is(err, broken) {
			t.Errorf("an error after %d bytes is %v", at, err)
		}
	}
	if _, err := set(ann).Added(bytes.NewReader(append(encode(set(ann)), 0))); err == nil {
		t.Error("a byte too many is nothing wrong")
	}
}
