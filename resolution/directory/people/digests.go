package people

import (
	"encoding/hex"

	"github.com/leadetl/leadetl/transforms/email"
)

// lookupDigest is a raw digest an email is found by.
type lookupDigest struct {
	raw []byte
	// respelled: not of the email as it is, but of its uid2 or google form,
	// which may be somebody else's email as it is.
	respelled bool
}

// lookupDigests are the digests an email is found by: md5, sha1 and sha256 of
// the plain form, sha256 of the uid2 and google forms where they differ. A key
// that is a digest itself is found by itself.
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
	all := make([]lookupDigest, 0, 5)
	for _, p := range []email.Profile{email.Plain, email.UID2, email.Google} {
		form, ok := a.AppendForm(buf[:0], p)
		buf = form
		if !ok {
			continue
		}
		d := email.Sum(form)
		switch {
		case p == email.Plain:
			all = append(all, lookupDigest{raw: d.MD5[:]}, lookupDigest{raw: d.SHA1[:]}, lookupDigest{raw: d.SHA256[:]})
		case string(form) != key:
			all = append(all, lookupDigest{d.SHA256[:], true})
		}
	}
	return all
}

// question is the one digest to look an email key up by. of is the address
// itself in canonical form, "" when the key is a digest.
func question(key string) (digest []byte, of string, ok bool) {
	a, err := email.Parse([]byte(key))
	if err != nil {
		return nil, "", false
	}
	canonical := a.AppendKey(nil)
	if a.Kind() != email.Plaintext {
		raw, err := hex.DecodeString(string(canonical))
		return raw, "", err == nil
	}
	d := email.Sum(canonical)
	return d.SHA256[:], string(canonical), true
}
