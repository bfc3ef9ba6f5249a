package credential

import (
	"errors"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var errNoObject = errors.New("not a JSON object with unique names")

// object is a JSON object whose members are not yet decoded. Names are exact:
// ISS is not iss.
type object map[string]jsontext.Value

// parseObject reads one object and nothing after it. A name that occurs twice is
// an error: all readers of a token must see the same one.
func parseObject(data []byte) (object, error) {
	var o object
	if err := json.Unmarshal(data, &o); err != nil || o == nil {
		return nil, errNoObject
	}
	return o, nil
}

// has reports whether there is a member of this name, whatever its value.
func (o object) has(name string) bool {
	_, found := o[name]
	return found
}

// text returns the member's value, if that is a string and not empty.
func (o object) text(name string) (string, bool) {
	var s string
	if o[name].Kind() != '"' || json.Unmarshal(o[name], &s) != nil {
		return "", false
	}
	return s, s != ""
}

// texts returns the member's value, if that is a list of strings.
func (o object) texts(name string) ([]string, bool) {
	var list []*string
	if o[name].Kind() != '[' || json.Unmarshal(o[name], &list) != nil {
		return nil, false
	}
	all := make([]string, len(list))
	for i, s := range list {
		if s == nil {
			return nil, false // null is not a string
		}
		all[i] = *s
	}
	return all, true
}

// number returns the member's value, if that is a number.
func (o object) number(name string) (float64, bool) {
	if o[name].Kind() != '0' {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(o[name]), 64)
	return n, err == nil
}
