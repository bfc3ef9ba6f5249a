package provider

import (
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/jsontree"
)

func TestPath(t *testing.T) {
	const body = `{"a":{"b":["x",{"c":"y"},7],"d.e":"dot","0":"zero","n":null,"f":false},"list":[{"type":"work","is":1,"v":"w"},{"type":"home","is":true,"v":"h"},{"type":"home","v":"h2"}],
		"nested":[[1,2],[3]],"*":"star","":"nameless"}`
	for _, f := range []struct{ path, want string }{ // the values between bars
		{"a.b.0", "x"}, {"a.b.1.c", "y"}, {"a.b.2", "7"}, {"a.b.3", ""}, {`a.d\.e`, "dot"}, {"a.0", "zero"}, {"a.n", "null"}, {"a.f", "false"},
		{"a.b.*", `x|{"c":"y"}|7`}, {"a.b.*.c", "y"}, {"a.*", ""}, {"nested.*.*", "1|2|3"}, {"nested.*.0", "1|3"}, {`\*`, "star"},
		{"list[type=home].v", "h"}, {"list[is=1].v", "w"}, {"list[is=true].v", "h"}, {`list[type="home"].v`, "h"}, {"list[type=none].v", ""}, {"a[type=home].v", ""},
		{"list.*.v", "w|h|h2"}, {"x.y", ""}, {"a.b.c", ""}, {"list.01", ""},
	} {
		p, err := parsePath(f.path)
		if err != nil {
			t.Error(err)
			continue
		}
		var d jsontree.Decoder
		var all []string
		p.in(d.Decode([]byte(body)), func(v jsontree.Value) bool {
			all = append(all, v.Written())
			return true
		})
		if got := strings.Join(all, "|"); got != f.want {
			t.Errorf("%s: %s, want %s", f.path, got, f.want)
		}
		if again, err := parsePath(p.String()); err != nil || again.String() != p.String() {
			t.Errorf("%s is written %s, which is read as %s: %v", f.path, p, again, err)
		}
	}
}

func TestNoPath(t *testing.T) {
	for _, text := range []string{
		"", "a.", ".a", "a..b", "a b", `a\`, "a[", "a[b]", "a[b=", "a[=c]", "a[b=c]d", "*[a=b]", "a[b=c d]", `a[b="c]`, "a|b", `a"b"`,
		strings.Repeat("a.", 16) + "a",
	} {
		if p, err := parsePath(text); err == nil {
			t.Errorf("%q is read as %s", text, p)
		}
	}
}

// FuzzPath: a path that is read is written so that it reads the same.
func FuzzPath(f *testing.F) {
	for _, text := range []string{"a.b.0", `a\.b[c="d\"e"].*`, ".", `\*.\0`, `[a=b].c`, "é.ü"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePath(text)
		if err != nil {
			return
		}
		again, err := parsePath(p.String())
		if err != nil || again.String() != p.String() || len(again) != len(p) {
			t.Errorf("%q is written %q, which is read as %q: %v", text, p, again, err)
		}
		for i := range again {
			if again[i] != p[i] {
				t.Errorf("%q: step %d is %+v, and %+v when it is read again", text, i, p[i], again[i])
			}
		}
	})
}

// TestLack: where a path leads to nothing, and what may have been meant.
func TestLack(t *testing.T) {
	for _, f := range []struct{ path, body, want string }{
		{"a.b", `{"a": {"b": 1}}`, ""},
		{"a.nme", `{"a": {"name": 1}}`, `a has no nme; did you mean "name"?`},
		{"a.b", `{"a": {"x": 1}}`, "a has no b; it has x"},
		{"a.b", `{"a": null}`, "a is null"},
		{"a.b", `{"a": 1}`, "a is a single value, without members"},
		{"a.b", `{"a": [{"b": 1}]}`, "a is a list: name an element, as in a.0.b"},
		{"a.1", `{"a": [1]}`, "the list a has no element 1"},
		{"a.b[kind=x].c", `{"a": {"b": []}}`, "it is empty"},
		{"a.b[kind=x].c", `{"a": {"b": [{"kind": "y"}]}}`, `no element of a.b has kind "x"`},
		{"a.b[kind=x].c", `{"a": {"b": [{"kind": "x"}]}}`, `a.b[kind="x"] has no c; it has kind`},
		{"a.b[kind=x].c", `{"a": {"c": 1}}`, "a has no b; it has c"},
	} {
		p, err := parsePath(f.path)
		if err != nil {
			t.Fatal(err)
		}
		reading([]byte(f.body), func(v jsontree.Value) {
			if got := p.lack(v); got != f.want {
				t.Errorf("%s of %s: %s, want %s", f.path, f.body, got, f.want)
			}
		})
	}
}
