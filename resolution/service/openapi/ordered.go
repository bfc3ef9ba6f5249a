package openapi

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object that keeps the order of its members, because people read
// the document.
type object struct {
	members []member
}

type member struct {
	name  string
	value any // *object, []any, string, jsontext.Value (a number), bool or nil
}

// get returns a member, nil if it is missing.
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

// object returns a member that is an object, else nil.
func (o *object) object(name string) *object {
	v, _ := o.get(name).(*object)
	return v
}

// text returns a member that is a string, else "".
func (o *object) text(name string) string {
	v, _ := o.get(name).(string)
	return v
}

// list returns a member that is an array, else nil.
func (o *object) list(name string) []any {
	v, _ := o.get(name).([]any)
	return v
}

// set replaces a member, or adds it at the end.
func (o *object) set(name string, value any) {
	for i := range o.members {
		if o.members[i].name == name {
			o.members[i].value = value
			return
		}
	}
	o.members = append(o.members, member{name, value})
}

// merge adds the members of other that o lacks.
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

// MarshalJSONTo writes the members in order.
func (o *object) MarshalJSONTo(e *jsontext.Encoder) error {
	if err := e.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range o.members {
		if err := e.WriteToken(jsontext.String(m.name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(e, m.value); err != nil {
			return err
		}
	}
	return e.WriteToken(jsontext.EndObject)
}

// parse reads one JSON object. A name that occurs twice is an error.
func parse(text []byte) (*object, error) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	v, err := parseValue(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, errors.New("there is data after the object")
	}
	o, is := v.(*object)
	if !is {
		return nil, errors.New("not an object")
	}
	return o, nil
}

func parseValue(d *jsontext.Decoder) (any, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case '{':
		o := &object{}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			m := member{name: name.String()}
			if m.value, err = parseValue(d); err != nil {
				return nil, err
			}
			o.members = append(o.members, m)
		}
		_, err = d.ReadToken()
		return o, err
	case '[':
		list := []any{}
		for d.PeekKind() != ']' {
			v, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.ReadToken()
		return list, err
	case '0':
		return jsontext.Value(t.String()), nil
	case '"':
		return t.String(), nil
	case 't', 'f':
		return t.Bool(), nil
	}
	return nil, nil
}
