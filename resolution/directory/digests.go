package directory

import (
	"encoding/hex"

	"github.com/leadetl/leadetl/transforms/email"
)

// lookupDigests are the raw digests an email is found by: md5, sha1 and
// sha256 of the plain form, sha256 of the uid2 and google forms where they
// differ. A key that is a digest itself is found by itself. buf is scratch.
func lookupDigests(key string, buf *[]byte) [][]byte {
	a, err := email.Parse([]byte(key))
	if err != nil {
		return nil
	}
	if a.Kind() != email.Plaintext {
		raw, err := hex.DecodeString(key)
		if err != nil {
			return nil
		}
		return [][]byte{raw}
	}
	all := make([][]byte, 0, 5)
	for _, p := range []email.Profile{email.Plain, email.UID2, email.Google} {
		form, ok := a.AppendForm((*buf)[:0], p)
		*buf = form
		if !ok {
			continue
		}
		d := email.Sum(form)
		switch {
		case p == email.Plain:
			all = append(all, d.MD5[:], d.SHA1[:], d.SHA256[:])
		case string(form) != key:
			all = append(all, d.SHA256[:])
		}
	}
	return all
}

// digestOf is the one digest to look an email key up by.
func digestOf(key string) ([]byte, bool) {
	a, err := email.Parse([]byte(key))
	if err != nil {
		return nil, false
	}
	if a.Kind() != email.Plaintext {
		raw, err := hex.DecodeString(string(a.AppendKey(nil)))
		return raw, err == nil
	}
	d := email.Sum(a.AppendKey(nil))
	return d.SHA256[:], true
}
