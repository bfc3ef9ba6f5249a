package credential

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
)

// sealVersion begins what Seal returns, so that another way of sealing can be
// told from this one.
const sealVersion = 1

// ErrSeal says that sealed bytes do not open: they were sealed under another
// pepper, or changed since.
var ErrSeal = errors.New("sealed under another pepper, or damaged")

// Seal encrypts what must be kept and read again, as a callback secret is:
// version 1, a random nonce of 12 bytes, the ciphertext of AES-256-GCM and its
// tag of 16. The same bytes seal differently each time; a pepper is good for
// 2³² of them.
func (p Pepper) Seal(plain []byte) []byte {
	return p.aead().Seal([]byte{sealVersion}, nil, plain, []byte{sealVersion})
}

// Open gives back what was sealed, or ErrSeal.
func (p Pepper) Open(sealed []byte) ([]byte, error) {
	if len(sealed) == 0 || sealed[0] != sealVersion {
		return nil, ErrSeal
	}
	plain, err := p.aead().Open(nil, nil, sealed[1:], sealed[:1])
	if err != nil {
		return nil, ErrSeal
	}
	return plain, nil
}

// aead cannot fail: the key's length is right.
func (p Pepper) aead() cipher.AEAD {
	block, err := aes.NewCipher(p.derived.seal)
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return aead
}
