package email

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
)

// Digests are the three hashes of a form, as raw bytes.
type Digests struct {
	MD5    [16]byte
	SHA1   [20]byte
	SHA256 [32]byte
}

// Sum hashes a form (see Address.AppendForm) with the three algorithms. Tests compare
// code that hashes whole columns with it.
func Sum(form []byte) Digests {
	return Digests{MD5: md5.Sum(form), SHA1: sha1.Sum(form), SHA256: sha256.Sum256(form)}
}
