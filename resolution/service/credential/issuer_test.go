package credential_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution/service/credential"
)

const (
	issuer   = "https://issuer.example"
	audience = "https://service.example"
)

var now = time.Date(2026, 11, 20, 9, 18, 0, 0, time.UTC)

// members is a JSON object to be.
type members = map[string]any

// with is a copy of m with some members changed; nil takes one out.
func with(m members, changes members) members {
	m = maps.Clone(m)
	for name, value := range changes {
		if m[name] = value; value == nil {
			delete(m, name)
		}
	}
	return m
}

// The issuer's private keys. Ed25519 has a fixed one, so that the processes of
// a fuzz test agree on what is signed; the others are made when first used,
// RSA taking a while.
var (
	ed25519Key = ed25519.NewKeyFromSeed([]byte("thirty-two bytes to make a key of"[:32]))

	ecdsaKey = sync.OnceValue(func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err)
		}
		return key
	})

	rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		return key
	})
)

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// The public halves as JWKs.

func ed25519JWK() members {
	return members{"kty": "OKP", "crv": "Ed25519", "kid": "ed", "use": "sig", "alg": "EdDSA", "x": b64(ed25519Key.Public().(ed25519.PublicKey))}
}

func ecdsaJWK() members {
	point, err := ecdsaKey().PublicKey.Bytes()
	if err != nil {
		panic(err)
	}
	return members{"kty": "EC", "crv": "P-256", "kid": "ec", "alg": "ES256", "x": b64(point[1:33]), "y": b64(point[33:])}
}

func rsaJWK() members {
	public := rsaKey().PublicKey
	return members{"kty": "RSA", "kid": "rsa", "key_ops": []string{"verify"}, "n": b64(public.N.Bytes()), "e": b64(big.NewInt(int64(public.E)).Bytes())}
}

// writeKeys puts a JWK Set at path.
func writeKeys(t testing.TB, path string, jwks ...members) {
	t.Helper()
	content, err := json.Marshal(members{"keys": jwks})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// openTokens opens a set of these keys.
func openTokens(t testing.TB, jwks ...members) *credential.Tokens {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jwks.json")
	writeKeys(t, path, jwks...)
	tokens, err := credential.OpenTokens(t.Context(), credential.TokenOptions{JWKSFile: path, Issuer: issuer, Audience: audience})
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// goodHeader and goodClaims are those of a token that is accepted.
func goodHeader(alg, kid string) members { return members{"alg": alg, "typ": "at+jwt", "kid": kid} }

func goodClaims() members {
	return members{
		"iss": issuer, "aud": audience, "sub": "client-7", "jti": "token-1", "org_id": "org_0123456789abcdef",
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
}

// A signer signs the first two segments of a token.
type signer func(text string) []byte

func signEd25519(text string) []byte { return ed25519.Sign(ed25519Key, []byte(text)) }

func signES256(text string) []byte {
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, ecdsaKey(), digest[:])
	if err != nil {
		panic(err)
	}
	return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
}

func signRS256(text string) []byte {
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(nil, rsaKey(), crypto.SHA256, digest[:])
	if err != nil {
		panic(err)
	}
	return signature
}

func signPS256(text string) []byte {
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPSS(rand.Reader, rsaKey(), crypto.SHA256, digest[:], nil)
	if err != nil {
		panic(err)
	}
	return signature
}

// signHS256 takes any bytes for a secret: a public key's, say.
func signHS256(secret []byte) signer {
	return func(text string) []byte {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}
}

func signNot(string) []byte { return nil }

// token makes a token of two objects, or of JSON as it stands.
func token(header, claims any, sign signer) string {
	text := b64(encode(header)) + "." + b64(encode(claims))
	return text + "." + b64(sign(text))
}

func encode(v any) []byte {
	if raw, ok := v.(string); ok {
		return []byte(raw)
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
