package email

import (
	"bytes"
	"encoding/hex"
	"unicode"
	"unicode/utf8"
)

// AppendKey appends the key of the address: the Plain form of an address, or the
// lower-case hex of a digest. Cells with the same key are one question.
func (a Address) AppendKey(dst []byte) []byte {
	if a.kind == SHA256 && len(a.text) <= base64Len {
		if d, ok := ParseDigest(a.text); ok { // always
			return hex.AppendEncode(dst, d.Sum[:])
		}
	}
	if a.ascii {
		return a.appendLowerASCII(dst)
	}
	return appendLower(dst, a.text)
}

// AppendForm appends the text that profile p hashes. ok is false, and dst is
// unchanged, for a digest, which is never hashed again, and if p leaves nothing of
// the local part (+news@gmail.com in UID2 and Google).
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
	// Lower-casing can change the length of the local part. A dot-atom has no @.
	at := int(a.at)
	if !a.ascii {
		at = lastAt(form)
	}
	if !ignoresDots(form[at+1:], p) {
		return dst, true
	}
	kept := 0
	for _, c := range form[:at] {
		if c == '+' && p != GoogleUntil202608 {
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

// ignoresDots reports whether p ignores dots in local parts of a domain, which is in
// lower case.
func ignoresDots(domain []byte, p Profile) bool {
	return string(domain) == "gmail.com" || p != UID2 && string(domain) == "googlemail.com"
}

// appendLowerASCII appends the text with A to Z in lower case.
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

// appendLower appends text in lower case by the simple mapping, which maps each rune
// to one rune.
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

// OneForm reports whether all profiles hash the same form of the address, as for
// most addresses. It is true for a digest.
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
