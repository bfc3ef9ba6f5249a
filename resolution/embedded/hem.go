package embedded

import (
	"encoding/hex"
	"fmt"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
)

// hashedEmails returns md5, sha1 and sha256 of the plain form of an address, or the digest if
// key is one.
func hashedEmails(key string) ([]resolution.HashedEmail, error) {
	a, err := email.Parse([]byte(key))
	if err != nil {
		return nil, fmt.Errorf("%w: the key is not an email: %w", resolution.ErrInvalid, err)
	}
	canonical := a.AppendKey(nil)
	if a.Kind() != email.Plaintext {
		return []resolution.HashedEmail{{Email: string(canonical), Type: a.Kind().String()}}, nil
	}
	d := email.Sum(canonical)
	return []resolution.HashedEmail{
		{Email: hex.EncodeToString(d.MD5[:]), Type: email.MD5.String()},
		{Email: hex.EncodeToString(d.SHA1[:]), Type: email.SHA1.String()},
		{Email: hex.EncodeToString(d.SHA256[:]), Type: email.SHA256.String()},
	}, nil
}
