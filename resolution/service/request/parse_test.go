package request

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func parse(t testing.TB, body string) Object {
	t.Helper()
	o, err := Parse([]byte(body))
	if err != nil {
		t.Fatalf("parse %s: %v", body, err)
	}
	return o
}

// nested is a body of the given depth, its object included.
func nested(depth int, open, shut string) string {
	return `{"a":` + strings.Repeat(open, depth-1) + "0" + strings.Repeat(shut, depth-1) + "}"
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		name, body string
		what       string
		offset     int
	}{
		{"nothing", "", "empty", 0},
		{"white space", " \n", "empty", 2},
		{"an array", ` ["a"]`, "not an object", 1},
		{"a string", `"a"`, "not an object", 0},
		{"null", "null", "not an object", 0},
		{"a truncated object", `{"a":1`, "ends before it is complete", 6},
		{"a truncated string", `{"a":"b`, "ends before it is complete", 7},
		{"a truncated escape", `{"a":"\`, "ends before it is complete", 7},
		{"a trailing comma", `{"a":1,}`, "a character that cannot stand there", 7},
		{"a name without quotes", `{a:1}`, "a character that cannot stand there", 1},
		{"single quotes", `{'a':1}`, "a character that cannot stand there", 1},
		{"a comment", `{"a":1/**/}`, "a character that cannot stand there", 6},
		{"NaN", `{"a":NaN}`, "a character that cannot stand there", 5},
		{"a leading zero", `{"a":01}`, "a character that cannot stand there", 6},
		{"a split number", `{"a":1 2}`, "a character that cannot stand there", 7},
		{"a raw line feed in a string", "{\"a\":\"\n\"}", "a character that cannot stand there", 6},
		{"the bracket of another", `{"a":[1}`, "a character that cannot stand there", 7},
		{"trailing data", `{} {}`, "more than one value", 3},
		{"a trailing bracket", `{}}`, "more than one value", 2},
		{"bytes that are no UTF-8", "{\"a\":\"b\xff\"}", "a byte that is not UTF-8", 7},
		{"an overlong encoding", "{\"a\":\"\xc0\xaf\"}", "a byte that is not UTF-8", 6},
		{"a surrogate in UTF-8", "{\"a\":\"\xed\xa0\x80\"}", "a byte that is not UTF-8", 6},
		{"an escaped high surrogate alone", `{"a" : "\ud83d"}`, "half of a surrogate pair", 8},
		{"an escaped low surrogate alone", `{"a":"\udE00"}`, "half of a surrogate pair", 6},
		{"two high surrogates", `{"a":"\ud83d\ud83d"}`, "half of a surrogate pair", 6},
		{"a high surrogate before another escape", `{"a":"\ud83d\n"}`, "half of a surrogate pair", 6},
		{"a name twice", `{"a":1, "a":1}`, "a name occurs twice in one object", 8},
		{"a name twice, spelled differently", `{"a":1,"\u0061":2}`, "a name occurs twice in one object", 7},
		{"a name twice inside", `{"x":[{"a":{"b":1,"b":2}}]}`, "a name occurs twice in one object", 18},
		{"a name twice among many", `{` + numbered(100) + `"n7":0}`, "a name occurs twice in one object", len(numbered(100)) + 1},
		{"a name twice behind a byte order mark", "\uFEFF{\"a\":1,\"a\":1}", "a name occurs twice in one object", 10},
		{"two byte order marks", "\uFEFF\uFEFF{}", "a character that cannot stand there", 3},
		{"33 objects", nested(33, `{"a":`, "}"), "nested deeper than 32 levels", 32 * 5},
		{"33 arrays", nested(33, "[", "]"), "nested deeper than 32 levels", 5 + 31},
		{"very deep", strings.Repeat("[", 1<<20), "nested deeper than 32 levels", 32},
	} {
		_, err := Parse([]byte(c.body))
		var got *MalformedError
		if !errors.As(err, &got) || !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v, want an ErrMalformed", c.name, err)
			continue
		}
		if got.What != c.what || got.Offset != c.offset {
			t.Errorf("%s: got %q at %d, want %q at %d", c.name, got.What, got.Offset, c.what, c.offset)
		}
	}
}

// numbered is n members, n0 and so on.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"n%d":0,`, i)
	}
	return b.String()
}

func TestParseTakes(t *testing.T) {
	for _, c := range []struct{ name, body, echo string }{
		{"an empty object", "{}", "{}"},
		{"members in the order given", `{"b":1,"a":2}`, `{"b":1,"a":2}`},
		{"white space between tokens", " {\r\n\t\"a\" : [ 1 , 2 ] }\n", `{"a":[1,2]}`},
		{"white space in strings", `{" a ":" b "}`, `{" a ":" b "}`},
		{"numbers as written", `{"a":1.50E+01,"b":-0,"c":123456789012345678901234567890}`, `{"a":1.50E+01,"b":-0,"c":123456789012345678901234567890}`},
		{"escapes as written", `{"a":"\/\u00e9\"\\ \ud83d\ude00"}`, `{"a":"\/\u00e9\"\\ \ud83d\ude00"}`},
		{"an escaped backslash before u", `{"a":"\\ud83d"}`, `{"a":"\\ud83d"}`},
		{"a string that ends in backslashes", `{"a":"\\\\" , "b":"\\\""}`, `{"a":"\\\\","b":"\\\""}`},
		{"names that differ in case", `{"a":1,"A":2}`, `{"a":1,"A":2}`},
		{"one name in several objects", `{"a":{"a":[{"a":1},{"a":1}]}}`, `{"a":{"a":[{"a":1},{"a":1}]}}`},
		{"many names", `{` + numbered(1000) + `"a":0}`, `{` + numbered(1000) + `"a":0}`},
		{"a byte order mark", "\uFEFF{}", "{}"},
		{"32 objects", nested(32, `{"a":`, "}"), nested(32, `{"a":`, "}")},
		{"32 arrays", nested(32, "[", "]"), nested(32, "[", "]")},
		{"brackets in strings", `{"a":"` + strings.Repeat("[", 100) + `"}`, `{"a":"` + strings.Repeat("[", 100) + `"}`},
	} {
		o, err := Parse([]byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if string(o.text) != c.echo {
			t.Errorf("%s: got %s, want %s", c.name, o.text, c.echo)
		}
	}
}

// What becomes of a body is not touched when its buffer is used again.
func TestParseKeepsNothing(t *testing.T) {
	body := []byte(`{"ip":"192.0.2.1"}`)
	o, err := Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	clear(body)
	if got := string(o.Canonical()); got != `{"ip":"192.0.2.1"}` {
		t.Errorf("after the buffer was cleared: %s", got)
	}
}

func TestCanonical(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"empty", "{}", "{}"},
		{"names sorted, all the way down", `{"b":{"d":1,"c":2},"a":[{"z":1,"y":2}]}`, `{"a":[{"y":2,"z":1}],"b":{"c":2,"d":1}}`},
		{"arrays in order", `{"a":["b","a",[],{}]}`, `{"a":["b","a",[],{}]}`},
		{"words", `{"a":[true,false,null]}`, `{"a":[true,false,null]}`},
		{"escapes", `{"\u0061":"\/\u00E9\t\"\\<"}`, `{"a":"/é\u0009\"\\<"}`},
		{"integers", `{"a":[10,10.0,1e1,1E+01,100e-1,0.1e2]}`, `{"a":[1e1,1e1,1e1,1e1,1e1,1e1]}`},
		{"fractions", `{"a":[1.5,1.50,15e-1,0.15E1]}`, `{"a":[15e-1,15e-1,15e-1,15e-1]}`},
		{"zeros", `{"a":[0,-0,0.0,0e7,0e99999999999999999999]}`, `{"a":[0,0,0,0,0]}`},
		{"negative", `{"a":[-7,-7.0]}`, `{"a":[-7,-7]}`},
		{"more digits than a float has", `{"a":[9007199254740993,9007199254740992]}`, `{"a":[9007199254740993,9007199254740992]}`},
		{"endless exponents stay as written", `{"a":[1e9999999999999999,1E-9999999999999999]}`, `{"a":[1e9999999999999999,1E-9999999999999999]}`},
	} {
		got := string(parse(t, c.body).Canonical())
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
		if again := string(parse(t, got).Canonical()); again != got {
			t.Errorf("%s: the canonical form of %s is %s", c.name, got, again)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("%s: %s is no JSON", c.name, got)
		}
	}
	if got := string(Object{}.Canonical()); got != "{}" {
		t.Errorf("the zero value: %s", got)
	}
}
