package email

import "errors"

// The reasons a cell is no email. The text of each is the word for the reason
// column of a dataset, and never holds the cell.
var (
	// ErrEmpty: nothing in the cell, a null word (null, none, n/a, undefined,
	// -), or the digest of the empty string.
	ErrEmpty = errors.New("empty")
	// ErrInvalidUTF8: the cell is not UTF-8, so it is not hashed: lower-casing
	// would replace the bytes and make the hash of another value.
	ErrInvalidUTF8 = errors.New("invalid_utf8")
	// ErrInvalidCharacter: a control, format or space character stands inside
	// the address, in quotes or not.
	ErrInvalidCharacter = errors.New("invalid_character")
	// ErrMultiple: more than one address, separated by , ; or |.
	ErrMultiple = errors.New("multiple")
	// ErrInvalid: neither an address nor a digest.
	ErrInvalid = errors.New("invalid_email")
)
