package keys

import (
	"unsafe"

	"github.com/leadetl/leadetl/transforms/profile"
)

// Reading says how the cells of identifiers are read.
type Reading struct {
	Profiles profile.Rules
	// Strict rejects a cell that has more than an identifier: a name, mailto:, for=, or
	// separators at the end.
	Strict bool
	// Multiple says what becomes of a cell with several identifiers.
	Multiple Multiple
	// From are the columns with values of a person, by their names. A row without an identifier that has all of
	// them is asked about by these. Nameless says that no row has an identifier.
	From     map[string]int
	Nameless bool
}

// text is a cell as a string in the same memory.
func text(cell []byte) string { return unsafe.String(unsafe.SliceData(cell), len(cell)) }
