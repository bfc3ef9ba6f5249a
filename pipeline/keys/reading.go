package keys

import (
	"net/netip"
	"unsafe"

	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/profile"
)

// Reading says how the cells of identifiers are read.
type Reading struct {
	Profiles profile.Rules
	// Strict rejects a cell that has more than an identifier: a name, mailto:, for=, or
	// separators at the end.
	Strict bool
}

func (r Reading) email(cell []byte) (email.Address, error) {
	if r.Strict {
		return email.Parse(cell)
	}
	return email.Read(cell)
}

func (r Reading) ip(cell []byte) (netip.Addr, error) {
	if r.Strict {
		return ipaddr.ParseBytes(cell)
	}
	return ipaddr.Read(text(cell))
}

// text is a cell as a string in the same memory.
func text(cell []byte) string { return unsafe.String(unsafe.SliceData(cell), len(cell)) }
