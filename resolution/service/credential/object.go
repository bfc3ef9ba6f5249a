package credential

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

var errNoObject = errors.New("not a JSON object with each name once")

// object is a JSON object, its members not yet decoded. Names are exact:
// encoding/json's structs would take ISS for iss.
type object map[string]json.RawMessage

// parseObject reads one object and nothing after it. A name that occurs twice
// is an error: two readers of one token must not see two different ones.
func parseObject(data []byte) (object, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errNoObject
	}
	o := object{}
	for d.More() {
		t, err := d.Token()
		name, isName := t.(string)
		if _, twice := o[name]; err != nil || !isName || twice {
			return nil, errNoObject
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, errNoObject
		}
		o[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, errNoObject
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errNoObject
	}
	return o, nil
}

// has reports whether there is a member of this name, whatever its value.
func (o object) has(name string) bool {
	_, found := o[name]
	return found
}

// text is the member's value, if that is a string and not empty.
func (o object) text(name string) (string, bool) {
	raw := o[name]
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil && s != ""
}

// texts is the member's value, if that is a list of strings.
func (o object) texts(name string) ([]string, bool) {
	raw := o[name]
	if len(raw) == 0 || raw[0] != '[' {
		return nil, false
	}
	var list []*string
	if json.Unmarshal(raw, &list) != nil {
		return nil, false
	}
	all := make([]string, len(list))
	for i, s := range list {
		if s == nil {
			return nil, false // null is no string
		}
		all[i] = *s
	}
	return all, true
}
