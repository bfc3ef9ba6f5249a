// Package email turns a cell into an email address or a digest of one, and an
// address into the forms that ad platforms hash.
//
// The one thing to know before using it: an address has several hashes, one
// per Profile and algorithm; say which. A value that already is a digest is
// passed through as it is and never hashed again.
package email

// Limits on an address, bytes. Source: RFC 5321 4.5.3.1 and its erratum 1690.
const (
	maxLocal   = 64
	maxLabel   = 63
	maxAddress = 254
)

// Parse reads one cell: the address or digest in it, without what stands
// around it. The Address aliases cell; nothing is allocated. Errors are the
// sentinels of this package, unwrapped.
func Parse(cell []byte) (Address, error) {
	if a, ok := parseASCII(cell); ok {
		return a, nil
	}
	return parseAny(cell)
}
