// Package email reads a cell as an email address or a digest of one, and makes the
// forms of an address that ad platforms hash.
//
// The one thing to know before using it: an address has several hashes, one for each
// Profile and algorithm. A digest is passed through and never hashed again.
package email

// Limits on an address, bytes. Source: RFC 5321 4.5.3.1 and its erratum 1690.
const (
	maxLocal   = 64
	maxLabel   = 63
	maxAddress = 254
)

// Parse reads the address or digest in a cell, and trims what is around it, the mark of a
// spreadsheet too. The Address aliases cell; nothing is allocated. Errors are the sentinels of this
// package, unwrapped.
func Parse(cell []byte) (Address, error) {
	if a, ok := parseASCII(cell); ok {
		return a, nil
	}
	return parseAny(cell)
}
