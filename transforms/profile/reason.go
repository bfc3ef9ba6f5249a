package profile

import "errors"

// The reasons why a cell is not a profile address. Their texts are the words in the
// reason column of a dataset.
var (
	// ErrEmpty: an empty cell, a null word (null, none, n/a,
	// undefined, -), or an address that has one where a person is named.
	ErrEmpty = errors.New("empty")
	// ErrInvalidUTF8: the cell, or its path after percent-decoding, is not
	// UTF-8.
	ErrInvalidUTF8 = errors.New("invalid_utf8")
	// ErrMultiple: more than one address in the cell.
	ErrMultiple = errors.New("multiple")
	// ErrInvalid: not an address, or a page without a key.
	ErrInvalid = errors.New("invalid_url")
	// ErrNotProfile: a page of a company, a school or a showcase instead of a
	// person.
	ErrNotProfile = errors.New("not_a_profile")
)
