package email

// Kind is the kind of value in a cell.
type Kind uint8

// The kinds: an address, or a digest of an address.
const (
	Plaintext Kind = iota
	MD5
	SHA1
	SHA256
)

var kindNames = [...]string{Plaintext: "plaintext", MD5: "md5", SHA1: "sha1", SHA256: "sha256"}

// String returns the name of the kind: plaintext, md5, sha1 or sha256.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Address is a cell that Parse accepted. It aliases the cell, so it is valid until
// the bytes of the cell change. The zero value is not an address.
type Address struct {
	text  []byte // the trimmed address without root dot, or the digest as typed
	at    uint8  // index of the @ that ends the local part; plaintext only
	kind  Kind
	ascii bool // text is ASCII; digests always
	upper bool // text may hold something that lower-casing changes
	// unusual says that the address breaks RFC 5321.
	unusual bool
}

// Kind returns the kind of value in the cell.
func (a Address) Kind() Kind { return a.kind }

// IsUnusual reports whether the address breaks RFC 5321, as some that exist do: with dots
// beside each other or at the edges of the local part, as at docomo.ne.jp and
// ezweb.ne.jp, or with an underscore in the domain. It is hashed as typed, because
// the platforms do that.
func (a Address) IsUnusual() bool { return a.unusual }

// quoted reports whether the local part is a quoted string.
func (a Address) quoted() bool { return a.text[0] == '"' }
