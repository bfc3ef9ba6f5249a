package email

import "errors"

// The reasons why a cell is not an email. Their texts are the words in the reason
// column of a dataset.
var (
	// ErrEmpty: an empty cell, a null word (null, none, n/a, undefined,
	// -), or the digest of one or of nothing.
	ErrEmpty = errors.New("empty")
	// ErrInvalidUTF8: the cell is not UTF-8. Lower-casing would change its bytes
	// and make the hash of another value.
	ErrInvalidUTF8 = errors.New("invalid_utf8")
	// ErrInvalidCharacter: a control, space or invisible character is inside the
	// address, quoted or not, or one that stands for lost bytes.
	ErrInvalidCharacter = errors.New("invalid_character")
	// ErrMultiple: more than one address, separated by , ; or |.
	ErrMultiple = errors.New("multiple")
	// ErrInvalid: neither an address nor a digest.
	ErrInvalid = errors.New("invalid_email")
)
