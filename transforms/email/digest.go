package email

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"sync"
)

// base64Len is the length of a SHA-256 in base64: 43 characters and one =.
const base64Len = 44

// Strict base64 without padding, so that a digest has one spelling in each alphabet.
var alphabets = []*base64.Encoding{base64.RawStdEncoding.Strict(), base64.RawURLEncoding.Strict()}

// Digest is a digest that somebody made of an identifier.
type Digest struct {
	Kind Kind
	Sum  [32]byte // the first bytes, as many as the algorithm has
}

// ParseDigest reads a digest: 32, 40 or 64 hex digits of either case, or a SHA-256 in base64,
// of the standard alphabet or that of URLs, with or without padding. ok is false if text is
// not a digest.
func ParseDigest(text []byte) (d Digest, ok bool) {
	switch len(text) {
	case 32:
		d.Kind = MD5
	case 40:
		d.Kind = SHA1
	case 64:
		d.Kind = SHA256
	case base64Len, base64Len - 1:
		d.Kind = SHA256
		unpadded, padded := bytes.CutSuffix(text, []byte("="))
		if padded != (len(text) == base64Len) {
			return Digest{}, false
		}
		for _, alphabet := range alphabets {
			// Decode ignores line breaks, but 43 characters for 32 bytes leave no
			// room for them.
			if n, err := alphabet.Decode(d.Sum[:], unpadded); err == nil && n == len(d.Sum) {
				return d, true
			}
		}
		return Digest{}, false
	default:
		return Digest{}, false
	}
	if _, err := hex.Decode(d.Sum[:], text); err != nil {
		return Digest{}, false
	}
	return d, true
}

// MeansNobody reports whether the digest is of nothing, of white space or of a word for a
// missing value, or repeats one hex digit. Pipelines write these for a missing address, so
// rows with such a digest would match each other.
func (d Digest) MeansNobody() bool {
	length := sumLen[d.Kind]
	if first := d.Sum[0]; first>>4 == first&15 && bytes.Count(d.Sum[:length], []byte{first}) == length {
		return true
	}
	return ofNobody()[d]
}

var sumLen = [...]int{MD5: 16, SHA1: 20, SHA256: 32}

// ofNobody are the digests of what stands for a missing value: nothing, or a word in the
// usual cases, alone or with the white space that a line ends with.
var ofNobody = sync.OnceValue(func() map[Digest]bool {
	digests := map[Digest]bool{}
	words := []string{"", "  ", "   ", "\n\n", "\t\t", "\ufeff", "-", "--", "---", "?", "0", `""`, "''", `\N`, "[]", "{}", "[object Object]", "NaN"}
	for _, word := range []string{
		"null", "none", "n/a", "undefined", "nil", "nan", "na", "n.a.", "(null)", "<null>", `"null"`, "'null'", "(none)", "#n/a", "unknown", "false",
		"blank", "(blank)", "empty", "missing",
	} {
		words = append(words, word, strings.ToUpper(word), strings.ToUpper(word[:1])+word[1:])
	}
	for _, word := range words {
		for _, end := range []string{"", " ", "\n", "\r\n", "\r", "\t", "\x00", "\u00a0"} {
			for _, before := range []string{"", " "} {
				sums := Sum([]byte(before + word + end))
				for kind, sum := range map[Kind][]byte{MD5: sums.MD5[:], SHA1: sums.SHA1[:], SHA256: sums.SHA256[:]} {
					d := Digest{Kind: kind}
					copy(d.Sum[:], sum)
					digests[d] = true
				}
			}
		}
	}
	return digests
})
