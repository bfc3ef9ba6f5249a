package credential

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
)

// sealVersion is the first byte of sealed bytes, so that the format can change.
const sealVersion = 1

// ErrSeal says that sealed bytes cannot be opened: they were sealed under another
// pepper, or changed since.
var ErrSeal = errors.New("sealed under another pepper, or damaged")

// Seal encrypts bytes that Open decrypts again, such as a callback secret. The
// result is version 1, a random nonce of 12 bytes, the ciphertext of AES-256-GCM
// and its tag of 16 bytes. It differs each time; one pepper may seal 2³² times.
func (p Pepper) Seal(plain []byte) []byte {
	return p.aead().Seal([]byte{sealVersion}, nil, plain, []byte{sealVersion})
}

// Open decrypts what Seal encrypted. The error is ErrSeal.
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

// aead cannot fail: the length of the key is right.
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
