package request

// value is a JSON value as it is written, compact; empty is none.
type value string

// kind is what a value is.
type kind uint8

const (
	nullKind kind = iota
	booleanKind
	numberKind
	stringKind
	arrayKind
	objectKind
)

// expected says what a kind is to somebody who sent another.
var expected = [...]string{
	nullKind:    "must be null",
	booleanKind: "must be true or false",
	numberKind:  "must be a number",
	stringKind:  "must be a string",
	arrayKind:   "must be an array",
	objectKind:  "must be an object",
}

func (v value) kind() kind {
	switch v[0] {
	case 'n':
		return nullKind
	case 't', 'f':
		return booleanKind
	case '"':
		return stringKind
	case '[':
		return arrayKind
	case '{':
		return objectKind
	}
	return numberKind
}
