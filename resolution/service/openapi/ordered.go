package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// object is a JSON object that keeps the order of its members: the document
// is read by people, and its fields are shown as they were written.
type object struct {
	members []member
}

type member struct {
	name  string
	value any // *object, []any, string, json.Number, bool or nil
}

// get returns the member called name, nil when there is none.
func (o *object) get(name string) any {
	if o == nil {
		return nil
	}
	for _, m := range o.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// object returns the member called name when it is an object, else nil.
func (o *object) object(name string) *object {
	v, _ := o.get(name).(*object)
	return v
}

// text returns the member called name when it is a string, else "".
func (o *object) text(name string) string {
	v, _ := o.get(name).(string)
	return v
}

// list returns the member called name when it is an array, else nil.
func (o *object) list(name string) []any {
	v, _ := o.get(name).([]any)
	return v
}

// set replaces the member called name, or adds it at the end.
func (o *object) set(name string, value any) {
	for i := range o.members {
		if o.members[i].name == name {
			o.members[i].value = value
			return
		}
	}
	o.members = append(o.members, member{name, value})
}

// merge adds the members of other that o does not have.
func (o *object) merge(other *object) {
	if other == nil {
		return
	}
	for _, m := range other.members {
		if o.get(m.name) == nil {
			o.set(m.name, m.value)
		}
	}
}

// MarshalJSON writes the members in order.
func (o *object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o.members {
		if i > 0 {
			b.WriteByte(',')
		}
		for j, v := range []any{m.name, m.value} {
			if j > 0 {
				b.WriteByte(':')
			}
			text, err := plain(v)
			if err != nil {
				return nil, err
			}
			b.Write(text)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plain is v as JSON, with <, > and & as they are.
func plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// parse reads one JSON object. A name that occurs twice is an error.
func parse(text []byte) (*object, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := parseValue(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the object")
	}
	o, is := v.(*object)
	if !is {
		return nil, errors.New("not an object")
	}
	return o, nil
}

func parseValue(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o, seen := &object{}, make(map[string]bool)
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			n := name.(string) // a member's name is a string, or Token fails
			if seen[n] {
				return nil, fmt.Errorf("%q occurs twice in one object", n)
			}
			seen[n] = true
			v, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			o.members = append(o.members, member{n, v})
		}
		_, err = d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	}
	return t, nil
}
