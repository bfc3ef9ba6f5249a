package email

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"unicode"
	"unicode/utf8"
)

// AppendKey appends the address's key, what two cells must share to be one
// question: the Plain form of an address, the lower-case hex of a digest. A
// digest given in base64 has the key of the same digest in hex.
func (a Address) AppendKey(dst []byte) []byte {
	if len(a.text) == base64Len && a.kind == SHA256 {
		var raw [33]byte // DecodedLen of 44 characters, the padding not yet known
		n, _ := base64.StdEncoding.Decode(raw[:], a.text)
		return hex.AppendEncode(dst, raw[:n])
	}
	if a.ascii {
		return a.appendLowerASCII(dst)
	}
	return appendLower(dst, a.text)
}

// AppendForm appends what profile p hashes. ok is false, and dst comes back as
// it was, for a digest (it is never hashed again) and where p would leave
// nothing of the local part (+news@gmail.com in UID2).
func (a Address) AppendForm(dst []byte, p Profile) (form []byte, ok bool) {
	if a.kind != Plaintext {
		return dst, false
	}
	start := len(dst)
	if p == UID2 || a.ascii {
		dst = a.appendLowerASCII(dst)
	} else {
		dst = appendLower(dst, a.text)
	}
	if p == Plain || a.quoted() {
		return dst, true
	}

	form = dst[start:]
	// Lower-casing can change the length of what stands before the @, and in a
	// dot-atom there is but one.
	at := int(a.at)
	if !a.ascii {
		at = lastAt(form)
	}
	if !ignoresDots(form[at+1:], p) {
		return dst, true
	}
	kept := 0
	for _, c := range form[:at] {
		if p == UID2 && c == '+' {
			break
		}
		if c != '.' {
			form[kept] = c
			kept++
		}
	}
	if kept == 0 {
		return dst[:start], false
	}
	kept += copy(form[kept:], form[at:])
	return dst[:start+kept], true
}

// ignoresDots reports whether p says that domain, in lower case, is one whose
// local parts are the same with and without dots.
func ignoresDots(domain []byte, p Profile) bool {
	return string(domain) == "gmail.com" || p == Google && string(domain) == "googlemail.com"
}

// appendLowerASCII appends the text with A–Z lowered and all else untouched.
func (a Address) appendLowerASCII(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, a.text...)
	if a.upper {
		for i, c := range dst[start:] {
			if 'A' <= c && c <= 'Z' {
				dst[start+i] = c + ('a' - 'A')
			}
		}
	}
	return dst
}

// appendLower appends text, lower-cased rune by rune by the simple mapping, the
// one without context and without growth into several runes.
func appendLower(dst, text []byte) []byte {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		dst = utf8.AppendRune(dst, unicode.ToLower(r))
		text = text[n:]
	}
	return dst
}

func lastAt(b []byte) int {
	i := len(b) - 1
	for b[i] != '@' {
		i--
	}
	return i
}

// OneForm reports whether all profiles hash the same form of the address, as
// they do of most. A digest has no form but itself.
func (a Address) OneForm() bool {
	if a.kind != Plaintext {
		return true
	}
	if !a.ascii {
		return false
	}
	const gmail, googlemail = "gmail.com", "googlemail.com"
	domain := a.text[a.at+1:]
	return len(domain) != len(gmail) && len(domain) != len(googlemail) ||
		!bytes.EqualFold(domain, []byte(gmail)) && !bytes.EqualFold(domain, []byte(googlemail))
}
