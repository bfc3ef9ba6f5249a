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

// FuzzDecode: what is read of a text is what encoding/json reads of it.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		hemAnswer, enrichmentAnswer, `{}`, ` { "a" : [ 1 , -2.5e3 , { } , [ ] , "x" ] , "b" : null , "c":true,"d":false} `, "[1]", "7", "{\"a\":1}]",
		`{"a":"\"\\\u00e9\ud83d\ude00\ud800","\u0061":2,"a b\n":"é"}`, "{\"\xff\":\"\xff\"}", `{"a":{"b":[[[{"c":"]}"}]]]},"a":{"d":0}}`, `{"a":1`, "",
	} {
		f.Add([]byte(s))
	}
	var used decoder // for every text
	f.Fuzz(func(t *testing.T, body []byte) {
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		var want map[string]any
		err := d.Decode(&want)
		if _, after := d.Token(); err == nil && after != io.EOF {
			want = nil // more than an object
		}
		got := used.decode(body)
		defer used.forget()
		if (len(got) == 0) != (err != nil || want == nil) {
			t.Fatalf("%q: %d values, but encoding/json says %v", body, len(got), err)
		}
		if len(got) > 0 && !reflect.DeepEqual(plain(got), any(want)) {
			t.Errorf("%q:\ngot  %#v\nwant %#v", body, plain(got), want)
		}
	})
}
