package email

// Kind is what a cell held.
type Kind uint8

// The kinds: an address, or a digest of one that somebody made before.
const (
	Plaintext Kind = iota
	MD5
	SHA1
	SHA256
)

var kindNames = [...]string{Plaintext: "plaintext", MD5: "md5", SHA1: "sha1", SHA256: "sha256"}

// String is the kind as hash types are written: md5, sha1, sha256; or
// plaintext.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Address is a cell that Parse took for good. It aliases the cell: it is valid
// as long as the cell's bytes are left alone. The zero value is not an address.
type Address struct {
	text  []byte // the address without surroundings and root dot; or the digest as typed
	at    uint8  // index of the @ that ends the local part; plaintext only
	kind  Kind
	ascii bool // text is ASCII; digests always
	upper bool // text may hold something that lower-casing changes
}

// Kind says whether the cell held an address or which digest.
func (a Address) Kind() Kind { return a.kind }

// quoted reports whether the local part is a quoted string.
func (a Address) quoted() bool { return a.text[0] == '"' }
