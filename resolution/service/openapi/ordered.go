package openapi

import (
	"errors"

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

// ordered reads objects as *object, and numbers as they are written.
var ordered = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *any) (err error) {
	switch d.PeekKind() {
	case '{':
		o := &object{}
		*v, err = o, json.UnmarshalDecode(d, o)
	case '0':
		var number jsontext.Value
		number, err = d.ReadValue()
		*v = number.Clone()
	default:
		return errors.ErrUnsupported
	}
	return err
}))

// UnmarshalJSONFrom reads the members in order.
func (o *object) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if kind := d.PeekKind(); kind != '{' {
		return errors.New("not an object")
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		var m member
		if err := json.UnmarshalDecode(d, &m.name); err != nil {
			return err
		}
		if err := json.UnmarshalDecode(d, &m.value); err != nil {
			return err
		}
		o.members = append(o.members, m)
	}
	_, err := d.ReadToken()
	return err
}

// parse reads one JSON object. A name that occurs twice is an error.
func parse(text []byte) (*object, error) {
	o := &object{}
	return o, json.Unmarshal(text, o, ordered)
}
