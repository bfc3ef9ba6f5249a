package credential

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The algorithms tokens may be signed with. Source: RFC 7518, section 3.1, and
// RFC 8037.
const (
	algEdDSA = "EdDSA" // Ed25519
	algES256 = "ES256" // ECDSA on P-256, SHA-256
	algRS256 = "RS256" // RSASSA-PKCS1-v1_5, SHA-256
)

// RSA moduli, in bits. A shorter one is weak; a longer one makes each
// verification slow.
const (
	minRSABits = 2048
	maxRSABits = 8192
)

// verificationKey is a public key with the one algorithm it verifies. The key, not
// the token, chooses the algorithm. Otherwise a token could have a public key used
// as an HMAC secret.
type verificationKey struct {
	alg    string
	public crypto.PublicKey // of the type golang-jwt wants for alg
}

// keySet holds the keys by their kid.
//
// Both libraries that were tried decode too much. jwx/v3 v3.0.13 and jwkset v0.11.0,
// which keyfunc/v3 is made of, accept EC points that are not on the curve, RSA moduli
// of 1024 and 8193 bits, even moduli, and exponents of 1 and 4; jwx accepts Ed25519
// keys of 33 bytes. A key type that they do not know fails the whole set. Everything
// they decode would have to be checked again: of the 163 lines here 56
// decode keys, and half of those are such checks.
type keySet map[string]verificationKey

// errUnused says that a key is valid but for another purpose or algorithm.
var errUnused = errors.New("not for verifying EdDSA, ES256 or RS256")

// parseKeySet reads a JWK Set. It skips keys for other purposes and algorithms, as
// the standard requires. Any other fault of a key fails the whole set; the error
// names the position and the kid of the key. Private or symmetric key material
// fails it too: the file counts as public, so such a secret is probably published.
// Source: RFC 7517, RFC 7518 section 6, RFC 8037.
func parseKeySet(data []byte) (keySet, error) {
	set, err := parseObject(data)
	if err != nil {
		return nil, fmt.Errorf("a JWK Set is %w", err)
	}
	var list []jsontext.Value
	if err := json.Unmarshal(set["keys"], &list); err != nil {
		return nil, errors.New("not a JWK Set: it has no list called keys")
	}
	keys := keySet{}
	for i, raw := range list {
		kid, key, err := parseKey(raw)
		if _, twice := keys[kid]; err == nil && twice {
			err = errors.New("another key has the same kid: give each its own")
		}
		switch {
		case errors.Is(err, errUnused):
			continue
		case err != nil && kid != "":
			return nil, fmt.Errorf("key %d, kid %.64q: %w", i+1, kid, err)
		case err != nil:
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		keys[kid] = key
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("none of its %d keys is for verifying EdDSA, ES256 or RS256", len(list))
	}
	return keys, nil
}

// privateMembers are the members that only a secret JWK has.
var privateMembers = []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"}

func parseKey(raw []byte) (kid string, key verificationKey, err error) {
	jwk, err := parseObject(raw)
	if err != nil {
		return "", key, err
	}
	kid, named := jwk.text("kid")
	for _, name := range privateMembers {
		if jwk.has(name) {
			return kid, key, fmt.Errorf("it holds private key material (%s): replace this key, which must count as exposed, and list only its public half", name)
		}
	}
	if use, given := jwk.text("use"); given && use != "sig" {
		return kid, key, errUnused
	}
	if ops, given := jwk.texts("key_ops"); given && !slices.Contains(ops, "verify") {
		return kid, key, errUnused
	}
	if key.alg, key.public, err = jwk.public(); err != nil {
		return kid, key, err
	}
	if alg, given := jwk.text("alg"); given && alg != key.alg {
		return kid, key, errUnused
	}
	if !named {
		return "", key, errors.New("it has no kid, so no token can name it")
	}
	return kid, key, nil
}

// public decodes the key by its type.
func (o object) public() (alg string, key crypto.PublicKey, err error) {
	kty, _ := o.text("kty")
	crv, _ := o.text("crv")
	switch {
	case kty == "OKP" && crv == "Ed25519":
		key, err := o.ed25519Key()
		return algEdDSA, key, err
	case kty == "EC" && crv == "P-256":
		key, err := o.ecdsaKey()
		return algES256, key, err
	case kty == "RSA":
		key, err := o.rsaKey()
		return algRS256, key, err
	case kty == "":
		return "", nil, errors.New("it has no kty")
	}
	return "", nil, errUnused
}

// bytes decodes a member in base64url without padding.
func (o object) bytes(name string) ([]byte, error) {
	s, _ := o.text(name)
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) == 0 {
		return nil, fmt.Errorf("its %s is missing or not base64url", name)
	}
	return b, nil
}

func (o object) ed25519Key() (ed25519.PublicKey, error) {
	x, err := o.bytes("x")
	if err != nil {
		return nil, err
	}
	if len(x) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("its x has %d bytes, not %d", len(x), ed25519.PublicKeySize)
	}
	return x, nil
}

func (o object) ecdsaKey() (*ecdsa.PublicKey, error) {
	x, err := o.bytes("x")
	if err != nil {
		return nil, err
	}
	y, err := o.bytes("y")
	if err != nil {
		return nil, err
	}
	if len(x) != 32 || len(y) != 32 {
		return nil, fmt.Errorf("its x and y have %d and %d bytes, not 32 each", len(x), len(y))
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, x, y))
	if err != nil {
		return nil, errors.New("its x and y are not a point of P-256")
	}
	return key, nil
}

func (o object) rsaKey() (*rsa.PublicKey, error) {
	n, err := o.bytes("n")
	if err != nil {
		return nil, err
	}
	e, err := o.bytes("e")
	if err != nil {
		return nil, err
	}
	modulus, exponent := new(big.Int).SetBytes(n), new(big.Int).SetBytes(e)
	switch bits := modulus.BitLen(); {
	case bits < minRSABits || bits > maxRSABits:
		return nil, fmt.Errorf("its modulus has %d bits, and must have %d to %d", bits, minRSABits, maxRSABits)
	case modulus.Bit(0) == 0:
		return nil, errors.New("its modulus is even")
	case exponent.BitLen() > 31 || exponent.Int64() < 3 || exponent.Bit(0) == 0:
		return nil, errors.New("its exponent is not an odd number from 3 to 2³¹")
	}
	return &rsa.PublicKey{N: modulus, E: int(exponent.Int64())}, nil
}
