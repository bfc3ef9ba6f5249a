package callback

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/leadetl/leadetl/internal/secret"
)

// A key has 24 to 64 bytes. Source: Standard Webhooks 1.0.0, signature scheme.
const (
	secretPrefix   = "whsec_"
	minSecretBytes = 24
	maxSecretBytes = 64
	newSecretBytes = 32
)

// ErrSecret says that a text is not a callback secret.
var ErrSecret = errors.New("not a callback secret: it must be whsec_ and the base64 of 24 to 64 bytes")

// Secret is the key that signs the callbacks to an organization. It prints as the
// word redacted; only Reveal shows it. The zero value is no secret and signs nothing.
type Secret struct{ secret.Text }

// NewSecret returns a random secret of 256 bits.
func NewSecret() Secret {
	key := make([]byte, newSecretBytes)
	_, _ = rand.Read(key) // never returns an error
	return Secret{secret.New(string(key))}
}

// ParseSecret reads what Reveal returns. Anything else is ErrSecret, which does not
// repeat the text.
func ParseSecret(s string) (Secret, error) {
	encoded, found := strings.CutPrefix(s, secretPrefix)
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !found || err != nil || len(key) < minSecretBytes || len(key) > maxSecretBytes || strings.ContainsAny(encoded, "\r\n") {
		return Secret{}, ErrSecret
	}
	return Secret{secret.New(string(key))}, nil
}

// Reveal returns the secret in the form for its owner: whsec_ and base64.
func (s Secret) Reveal() string {
	return secretPrefix + base64.StdEncoding.EncodeToString([]byte(s.Text.Reveal()))
}
