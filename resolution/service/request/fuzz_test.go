package request

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func addBodies(f *testing.F) {
	for _, body := range []string{
		`{}`, "\uFEFF{}", `[]`, `{"a":1,"a":2}`, `{"\u0061":1,"a":2}`, `{"a":"\ud83d\ude00\\\"\/"}`, `{"a":"\ud83d"}`, `{"a":[1.0e5,-0,{"b":null}]} `,
		nested(32, "[", "]"), nested(33, `{"a":`, "}"), `{"a":1e999999999999999999}`, "{\"a\":\"\xff\"}", `{"a":1}{}`, `{"a" : "b`, ` { "a" : [ ] , "b" : { } } `,
		`{"email":"ada@example.com","callback_url":"https://a.example/b","metadata":{"a/b":1}}`,
		`{"network_url":"https://www.network.example/in/ada","ip":"192.0.2.1","visited_at":"2026-11-20T09:18:00Z"}`,
		`{"keywords":["crm"," CRM "],"states":["ca"],"zips":["12345-6789"],"date_start":"2026-11-01","limit":10.0,"page":1e1,"lead_type":"b2b"}`,
		`{"resolution_id":"res_019a9d0c7e5f7b3a8c1d2e3f4a5b6c7d"}`,
	} {
		f.Add([]byte(body))
	}
}

// What Parse takes is JSON of the same meaning to encoding/json, and what it
// refuses is wrong for a reason that can be checked.
func FuzzParse(f *testing.F) {
	addBodies(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		o, err := Parse(body)
		if !bytes.Equal(body, before) {
			t.Fatalf("%q was changed to %q", before, body)
		}
		plain := bytes.TrimPrefix(body, []byte("\uFEFF"))
		if err != nil {
			if at := err.(*MalformedError).Offset; at < 0 || at > len(body) {
				t.Fatalf("%q: an offset outside: %v", body, err)
			}
			object := bytes.HasPrefix(bytes.TrimLeft(plain, " \t\r\n"), []byte("{"))
			if object && json.Valid(plain) && utf8.Valid(plain) && strict(plain) {
				t.Fatalf("%q: refused as %v", body, err)
			}
			return
		}
		if !json.Valid(plain) || !utf8.Valid(plain) || !strict(plain) {
			t.Fatalf("%q was taken", body)
		}
		var compacted bytes.Buffer
		if err := json.Compact(&compacted, plain); err != nil || compacted.String() != o.text {
			t.Fatalf("%q: compact form %q, want %q", body, o.text, compacted.Bytes())
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(plain, &members); err != nil || len(members) != len(o.members) {
			t.Fatalf("%q: %d members, want %d, %v", body, len(o.members), len(members), err)
		}
		for name, want := range members {
			compacted.Reset()
			if err := json.Compact(&compacted, want); err != nil {
				t.Fatal(err)
			}
			if got := o.get(name); compacted.String() != "null" && string(got) != compacted.String() {
				t.Fatalf("%q: a member is %q, want %q", body, got, compacted.Bytes())
			}
		}
		canonical := o.Canonical()
		if meaning(t, canonical) != meaning(t, plain) {
			t.Fatalf("%q: the canonical form %q means something else", body, canonical)
		}
		again, err := Parse(canonical)
		if err != nil || !bytes.Equal(again.Canonical(), canonical) {
			t.Fatalf("%q: canonical form of canonical form %q: %q, %v", body, canonical, again.Canonical(), err)
		}
	})
}

// strict reports whether valid JSON has distinct names, whole characters and
// no more levels than allowed: by tokens, at leisure.
func strict(body []byte) bool {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	type level struct {
		names map[string]bool // nil in arrays
		name  bool            // a name is next
	}
	var levels []level
	for {
		at := d.InputOffset()
		token, err := d.Token()
		if err != nil {
			return true
		}
		if s, ok := token.(string); ok && strings.ContainsRune(s, utf8.RuneError) && replaced(body[at:d.InputOffset()], s) {
			return false
		}
		n := len(levels)
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{map[string]bool{}, true})
		case json.Delim('['):
			levels = append(levels, level{})
		case json.Delim('}'), json.Delim(']'):
			levels = levels[:n-1]
			n--
			if n > 0 && levels[n-1].names != nil {
				levels[n-1].name = true
			}
			continue
		default:
			if n > 0 && levels[n-1].names != nil && !levels[n-1].name {
				levels[n-1].name = true
				continue
			}
		}
		if len(levels) > 32 {
			return false
		}
		if n > 0 && levels[n-1].name {
			name := token.(string)
			if levels[n-1].names[name] {
				return false
			}
			levels[n-1].names[name], levels[n-1].name = true, false
		}
	}
}

// replaced reports whether decoding a string put U+FFFD where it was not
// written.
func replaced(written []byte, s string) bool {
	lower := strings.ToLower(string(written))
	return strings.Count(s, "\uFFFD") > strings.Count(lower, "\uFFFD")+strings.Count(strings.ReplaceAll(lower, `\\`, ""), `\ufffd`)
}

// meaning writes what encoding/json makes of a body, numbers as exact
// fractions where they are not too long.
func meaning(t *testing.T, body []byte) string {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	return fmt.Sprintf("%#v", exact(v))
}

func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		mantissa, exponent, _ := strings.Cut(strings.ToLower(string(v)), "e")
		if strings.Trim(mantissa, "-.0") == "" {
			return "0"
		}
		if n, err := strconv.Atoi(exponent); exponent != "" && (err != nil || n > 5000 || n < -5000) {
			return "immense"
		}
		r, _ := new(big.Rat).SetString(string(v))
		return r.RatString()
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = exact(v[name])
		}
	}
	return v
}

// No body makes an operation panic, and whatever is taken is echoed as JSON.
func FuzzOperations(f *testing.F) {
	addBodies(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := Parse(body)
		if err != nil {
			return
		}
		for _, p := range every(o) {
			if p.Code == "" || p.Detail == "" {
				t.Fatalf("%q: a problem without words: %+v", body, p)
			}
		}
		if payload := o.withoutScheme("network_url"); o.get("network_url").isString() && !json.Valid(payload) {
			t.Fatalf("%q: payload %q", body, payload)
		}
	})
}

func (v value) isString() bool { return v != "" && v.kind() == stringKind }

// Objects made at random have one canonical form in whatever spelling they come,
// and objects that differ have two.
func TestCanonicalIsMeaning(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	forms := map[string]string{} // canonical form by meaning
	meanings := map[string]string{}
	for range 5000 {
		v := randomObject(r, 3)
		want := ""
		for range 3 {
			body := spell(r, v)
			got := string(parse(t, body).Canonical())
			if want == "" {
				want = got
			}
			if got != want {
				t.Fatalf("%s: canonical form %s, in another spelling %s", body, got, want)
			}
			m := meaning(t, []byte(body))
			if known, ok := forms[m]; ok && known != got {
				t.Fatalf("one meaning has the canonical forms %s and %s", known, got)
			}
			if known, ok := meanings[got]; ok && known != m {
				t.Fatalf("the canonical form %s means %s and %s", got, known, m)
			}
			forms[m], meanings[got] = got, m
		}
	}
}

// randomObject is small, so that the same ones come again.
func randomObject(r *rand.Rand, depth int) map[string]any {
	o := map[string]any{}
	for range r.IntN(4) {
		o[[]string{"a", "b", "é", `"\/`, ""}[r.IntN(5)]] = randomValue(r, depth-1)
	}
	return o
}

func randomValue(r *rand.Rand, depth int) any {
	if depth > 0 {
		switch r.IntN(6) {
		case 0:
			return randomObject(r, depth)
		case 1:
			list := make([]any, r.IntN(3))
			for i := range list {
				list[i] = randomValue(r, depth-1)
			}
			return list
		}
	}
	return []any{nil, true, false, "", "a", "é", "😀", "\n", 0, 1, 10, -10, 100, 12}[r.IntN(14)]
}

// spell writes a value in one of its spellings.
func spell(r *rand.Rand, v any) string {
	space := func() string { return []string{"", "", " ", "\n\t"}[r.IntN(4)] }
	var items []string
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v { // in any order
			items = append(items, space()+spellText(r, name)+space()+":"+space()+spell(r, member)+space())
		}
		return "{" + strings.Join(items, ",") + space() + "}"
	case []any:
		for _, item := range v {
			items = append(items, space()+spell(r, item)+space())
		}
		return "[" + strings.Join(items, ",") + space() + "]"
	case string:
		return spellText(r, v)
	case int:
		if v == 0 {
			return []string{"0", "-0", "0.00", "0E7", "-0.0e-3"}[r.IntN(5)]
		}
		return fmt.Sprintf([]string{"%d", "%d.0", "%de0", "%d0e-1", "%d.00E+0"}[r.IntN(5)], v)
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}

func spellText(r *rand.Rand, s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case r.IntN(2) == 0 && c <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04x`, c)
		case r.IntN(2) == 0 && c > 0xFFFF:
			c -= 0x10000
			fmt.Fprintf(&b, `\u%04X\u%04x`, 0xD800+c>>10, 0xDC00+c&0x3FF)
		case c == '"' || c == '\\' || c < ' ':
			quoted, _ := json.Marshal(string(c))
			b.Write(quoted[1 : len(quoted)-1])
		case c == '/' && r.IntN(2) == 0:
			b.WriteString(`\/`)
		default:
			b.WriteRune(c)
		}
	}
	return `"` + b.String() + `"`
}
