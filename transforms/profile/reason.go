package profile

import "errors"

// The reasons a cell is no profile address. The text of each is the word for
// the reason column of a dataset, and never holds the cell.
var (
	// ErrEmpty: nothing in the cell, or a null word (null, none, n/a,
	// undefined, -).
	ErrEmpty = errors.New("empty")
	// ErrInvalidUTF8: the cell, or its path after percent-decoding, is not
	// UTF-8.
	ErrInvalidUTF8 = errors.New("invalid_utf8")
	// ErrMultiple: more than one address in the cell.
	ErrMultiple = errors.New("multiple")
	// ErrInvalid: no address, or none of a page that has a key.
	ErrInvalid = errors.New("invalid_url")
	// ErrNotProfile: the page of a company, a school or a showcase where a
	// person was asked for.
	ErrNotProfile = errors.New("not_a_profile")
)
