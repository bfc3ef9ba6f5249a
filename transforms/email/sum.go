package email

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
)

// Digests are the three hashes of one form, raw bytes.
type Digests struct {
	MD5    [16]byte
	SHA1   [20]byte
	SHA256 [32]byte
}

// Sum hashes a form (see Address.AppendForm) three ways. It is the plain
// definition, one value at a time: whoever hashes a whole column in batches
// checks itself against it.
func Sum(form []byte) Digests {
	return Digests{MD5: md5.Sum(form), SHA1: sha1.Sum(form), SHA256: sha256.Sum256(form)}
}
