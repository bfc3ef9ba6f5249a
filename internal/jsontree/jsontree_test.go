package jsontree

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"
)

// plain is a value as encoding/json has it.
func plain(v Value) any {
	switch v.Kind() {
	case '{':
		m := map[string]any{}
		for member := range v.Inside().All() {
			m[member.Name()] = plain(member)
		}
		return m
	case '[':
		items := []any{}
		for item := range v.Inside().All() {
			items = append(items, plain(item))
		}
		return items
	case '"':
		if Text(v) != strings.TrimSpace(v.Written()) {
			return "another text: " + Text(v)
		}
		return v.Written()
	case 't', 'f':
		yes, _ := Truth(v)
		return yes
	case 'n':
		return nil
	}
	return json.Number(Text(v))
}

// valueOf is a text as encoding/json reads it; nil if it is not one value.
func valueOf(body []byte) *any {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var found any
	err := d.Decode(&found)
	if _, after := d.Token(); err != nil || after != io.EOF {
		return nil // none, or more than one value
	}
	return &found
}

// TestWithoutNaN: words for numbers that JSON does not have.
func TestWithoutNaN(t *testing.T) {
	for _, f := range []struct{ body, want string }{ // want is "" if the body has none
		{`{"a":NaN,"b":-Infinity,"c":[Infinity,nan,+inf]}`, `{"a":null,"b":null,"c":[null,null,null]}`},
		{`{"a":"NaN","b":"say \"NaN\", or","c":"\\","d":NaN}`, `{"a":"NaN","b":"say \"NaN\", or","c":"\\","d":null}`},
		{`{"a":1,"NaN":"Infinity"}`, ``},
		{`{"a":Banana,"b":NaNa}`, ``},
	} {
		got, any := withoutNaN([]byte(f.body))
		if any != (f.want != "") || any && string(got) != f.want {
			t.Errorf("%s: %s, %v", f.body, got, any)
		}
	}
}

// TestMost: a body with more values than the bound is not read.
func TestMost(t *testing.T) {
	d := Decoder{Most: 4}
	if len(d.Decode([]byte(`[1,{"a":2}]`))) != 4 || d.Decode([]byte(`[1,{"a":2},3]`)) != nil || len(d.Decode([]byte(`[]`))) != 1 {
		t.Error("the bound does not hold")
	}
}

// FuzzDecode: what is read of a text is what encoding/json reads of it.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{}`, ` { "a" : [ 1 , -2.5e3 , { } , [ ] , "x" ] , "b" : null , "c":true,"d":false} `, "[1]", "7", "{\"a\":1}]",
		`{"a":"\"\\\u00e9\ud83d\ude00\ud800","\u0061":2,"a b\n":"é"}`, "{\"\xff\":\"\xff\"}", `{"a":{"b":[[[{"c":"]}"}]]]},"a":{"d":0}}`, `{"a":1`, "", `[{"a":NaN}]`, `[[{}]]`, `{"a":"\"NaN","b":-Infinity}`,
	} {
		f.Add([]byte(s))
	}
	var used Decoder // for every text
	f.Fuzz(func(t *testing.T, body []byte) {
		want := valueOf(body)
		if without, any := withoutNaN(body); any && want == nil {
			want = valueOf(without)
		}
		got := used.Decode(body)
		defer used.Forget()
		if (len(got) == 0) != (want == nil) {
			t.Fatalf("%q: %d values, but encoding/json says %v", body, len(got), want)
		}
		if len(got) > 0 && !reflect.DeepEqual(plain(got), *want) {
			t.Errorf("%q:\ngot  %#v\nwant %#v", body, plain(got), *want)
		}
	})
}
