package suppression

import "testing"

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
		encoded := c.before.Encode()
		got, err := c.now.Added(encoded)
		if err != nil || (got == nil) != (c.want == nil) || got != nil && got.Fingerprint() != c.want.Fingerprint() {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
		if got != nil && c.name == "more" && (!got.Finder().Lists(Email, bob) || got.Finder().Lists(Email, ann) || !got.Finder().Lists(Phone, number)) {
			t.Errorf("%s: it does not find who was added", c.name)
		}
		for cut := range encoded {
			if got, err := c.now.Added(encoded[:cut]); err == nil && got != nil {
				t.Errorf("%s: %d of %d bytes are taken for a list", c.name, cut, len(encoded))
			}
		}
	}
	if _, err := set(ann).Added(append(set(ann).Encode(), 0)); err == nil {
		t.Error("a byte too many is nothing wrong")
	}
}
