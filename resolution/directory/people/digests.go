package people

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/leadetl/leadetl/transforms/email"
)

// lookupDigest is a raw digest by which an email is found.
type lookupDigest struct {
	raw []byte
	// respelled says that the digest is of the form of another profile than plain, which
	// may be the email of another person.
	respelled bool
}

// lookupDigests returns the digests by which an email is found: md5, sha1 and sha256 of the
// plain form, and sha256 of the forms of other profiles if they differ. A key that is a
// digest is found by itself.
func lookupDigests(key string) []lookupDigest {
	a, err := email.Parse([]byte(key))
	if err != nil {
		return nil
	}
	if a.Kind() != email.Plaintext {
		raw, err := hex.DecodeString(key)
		if err != nil {
			return nil
		}
		return []lookupDigest{{raw: raw}}
	}
	var buf []byte
	all := make([]lookupDigest, 0, 6)
	for _, p := range email.Known {
		form, ok := a.AppendForm(buf[:0], p)
		buf = form
		if !ok {
			continue
		}
		switch {
		case p == email.Plain:
			d := email.Sum(form)
			all = append(all, lookupDigest{raw: d.MD5[:]}, lookupDigest{raw: d.SHA1[:]}, lookupDigest{raw: d.SHA256[:]})
		case string(form) != key:
			sum := sha256.Sum256(form)
			all = append(all, lookupDigest{sum[:], true})
		}
	}
	return all
}
