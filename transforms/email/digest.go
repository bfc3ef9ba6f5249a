package email

import (
	"encoding/base64"
	"encoding/hex"
)

const base64Len = 44 // 32 bytes in base64: 43 characters and one =

// ofNothing are the digests of the empty string, which some pipelines make of a
// missing address. Rows with such a digest would match each other.
var ofNothing = Sum(nil)

// digest reads a digest: 32, 40 or 64 hex digits of either case, or 44 characters of
// standard base64. found is false when text is not a digest.
func digest(text []byte) (a Address, found bool, err error) {
	var raw [33]byte
	var n int
	switch len(text) {
	case 2 * len(ofNothing.MD5), 2 * len(ofNothing.SHA1), 2 * len(ofNothing.SHA256):
		n, err = hex.Decode(raw[:], text)
	case base64Len:
		// Decode ignores line breaks, but 44 characters for 32 bytes leave no
		// room for them. Strict refuses other spellings of a digest.
		n, err = strictBase64.Decode(raw[:], text)
		if n != len(ofNothing.SHA256) {
			return Address{}, false, nil
		}
	default:
		return Address{}, false, nil
	}
	if err != nil {
		return Address{}, false, nil
	}
	a = Address{text: text, ascii: true, upper: true}
	var empty bool
	switch n {
	case len(ofNothing.MD5):
		a.kind, empty = MD5, [16]byte(raw[:n]) == ofNothing.MD5
	case len(ofNothing.SHA1):
		a.kind, empty = SHA1, [20]byte(raw[:n]) == ofNothing.SHA1
	default:
		a.kind, empty = SHA256, [32]byte(raw[:n]) == ofNothing.SHA256
	}
	if empty {
		return Address{}, true, ErrEmpty
	}
	return a, true, nil
}

var strictBase64 = base64.StdEncoding.Strict()
