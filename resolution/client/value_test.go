package client

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"
)

// plain is a value as encoding/json has it.
func plain(v value) any {
	switch v.kind() {
	case '{':
		m := map[string]any{}
		for member := range v.inside().all() {
			m[member[0].name] = plain(member)
		}
		return m
	case '[':
		items := []any{}
		for item := range v.inside().all() {
			items = append(items, plain(item))
		}
		return items
	case '"':
		if text(v) != strings.TrimSpace(v[0].text) {
			return "another text: " + text(v)
		}
		return v[0].text
	case 't', 'f':
		yes, _ := truth(v)
		return yes
	case 'n':
		return nil
	}
	return json.Number(text(v))
}

// objectOf is a text as encoding/json reads it: an object, or a list of one.
func objectOf(body []byte) map[string]any {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var found any
	err := d.Decode(&found)
	if _, after := d.Token(); err != nil || after != io.EOF {
		return nil // none, or more than one value
	}
	if list, is := found.([]any); is && len(list) == 1 {
		found = list[0]
	}
	object, _ := found.(map[string]any)
	return object
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

// FuzzDecode: what is read of a text is what encoding/json reads of it.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		hemAnswer, enrichmentAnswer, `{}`, ` { "a" : [ 1 , -2.5e3 , { } , [ ] , "x" ] , "b" : null , "c":true,"d":false} `, "[1]", "7", "{\"a\":1}]",
		`{"a":"\"\\\u00e9\ud83d\ude00\ud800","\u0061":2,"a b\n":"é"}`, "{\"\xff\":\"\xff\"}", `{"a":{"b":[[[{"c":"]}"}]]]},"a":{"d":0}}`, `{"a":1`, "", `[{"a":NaN}]`, `[[{}]]`, `{"a":"\"NaN","b":-Infinity}`,
	} {
		f.Add([]byte(s))
	}
	var used decoder // for every text
	f.Fuzz(func(t *testing.T, body []byte) {
		want := objectOf(body)
		if without, any := withoutNaN(body); any && want == nil {
			want = objectOf(without)
		}
		got := used.decode(body)
		defer used.forget()
		if (len(got) == 0) != (want == nil) {
			t.Fatalf("%q: %d values, but encoding/json says %v", body, len(got), want)
		}
		if len(got) > 0 && !reflect.DeepEqual(plain(got), any(want)) {
			t.Errorf("%q:\ngot  %#v\nwant %#v", body, plain(got), want)
		}
	})
}
