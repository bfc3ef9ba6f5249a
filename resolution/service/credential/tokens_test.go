package credential_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/resolution/service/credential"
)

func open(path string) (*credential.Tokens, error) {
	return credential.OpenTokens(context.Background(), credential.TokenOptions{JWKSFile: path, Issuer: issuer, Audience: audience})
}

// TestOpenTokens gives sets of keys, and what is said of them.
func TestOpenTokens(t *testing.T) {
	ed, ec, rsa := ed25519JWK(), ecdsaJWK(), rsaJWK()
	set := func(keys ...members) string { return string(encode(members{"keys": keys})) }
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := p384.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	otherCurve := members{"kty": "EC", "crv": "P-384", "kid": "p384", "x": b64(point[1:49]), "y": b64(point[49:])}
	odd := func(bits int) string { // a number of so many bits, odd
		n := make([]byte, (bits+7)/8)
		n[0], n[len(n)-1] = 1<<((bits-1)%8), 1
		return b64(n)
	}

	for _, c := range []struct{ name, content, err string }{
		{"three keys", set(ed, ec, rsa), ""},
		{"one key", set(ed), ""},
		{"members of more", string(encode(members{"keys": []any{ed}, "issuer": "a", "d": "b"})), ""},
		{"no alg, no use", set(with(ed, members{"alg": nil, "use": nil})), ""},
		{"others passed over", set(otherCurve, with(rsa, members{"use": "enc", "kid": "rsa"}), with(rsa, members{"alg": "RS512"}),
			with(ed, members{"key_ops": []string{"sign"}}), members{"kty": "new"}, ec), ""},

		{"empty file", "", "not a JSON object"},
		{"not JSON", "-----BEGIN PUBLIC KEY-----", "not a JSON object"},
		{"a list", "[]", "not a JSON object"},
		{"cut", set(ed)[:40], "not a JSON object"},
		{"a lone key", string(encode(ed)), "no list called keys"},
		{"keys no list", `{"keys": {}}`, "no list called keys"},
		{"keys twice", `{"keys": [], "keys": []}`, "unique names"},
		{"no key", set(), "none of its 0 keys"},
		{"others alone", set(otherCurve, with(rsa, members{"use": "enc"})), "none of its 2 keys is for verifying EdDSA, ES256 or RS256"},
		{"a key no object", `{"keys": ["ed"]}`, "key 1: not a JSON object"},
		{"no kty", set(ed, with(ec, members{"kty": nil})), `key 2, kid "ec": it has no kty`},

		{"no kid", set(ed, with(ec, members{"kid": nil})), "key 2: it has no kid"},
		{"kid empty", set(with(ec, members{"kid": ""})), "key 1: it has no kid"},
		{"kid twice", set(ed, ec, with(rsa, members{"kid": "ed"})), `key 3, kid "ed": another key has the same kid`},

		{"private Ed25519", set(with(ed, members{"d": "c2VjcmV0"})), `key 1, kid "ed": it holds private key material (d)`},
		{"private EC", set(rsa, with(ec, members{"d": "c2VjcmV0"})), `key 2, kid "ec": it holds private key material (d)`},
		{"private RSA", set(with(rsa, members{"d": "c2VjcmV0", "p": "c2VjcmV0", "q": "c2VjcmV0"})), "private key material (d): replace this key"},
		{"private RSA, without d", set(with(rsa, members{"dp": "c2VjcmV0"})), "private key material (dp)"},
		{"private and null", `{"keys": [{"kty": "OKP", "d": null}]}`, "key 1: it holds private key material (d)"},
		{"private, not for us", set(ed, with(rsa, members{"use": "enc", "d": "c2VjcmV0"})), "key 2, kid \"rsa\": it holds private key material (d)"},
		{"symmetric", set(members{"kty": "oct", "kid": "hs", "alg": "HS256", "k": "c2VjcmV0"}), `key 1, kid "hs": it holds private key material (k)`},

		{"RSA of 1024 bits", set(with(rsa, members{"n": odd(1024)})), "its modulus has 1024 bits, and must have 2048 to 8192"},
		{"RSA of 2047 bits", set(with(rsa, members{"n": odd(2047)})), "its modulus has 2047 bits"},
		{"RSA of 2048 bits", set(with(rsa, members{"n": odd(2048)})), ""},
		{"RSA of 8193 bits", set(with(rsa, members{"n": odd(8193)})), "its modulus has 8193 bits"},
		{"RSA of 1024 bits and zeros", set(with(rsa, members{"n": b64(append(make([]byte, 200), bytesOf(odd(1024))...))})), "its modulus has 1024 bits"},
		{"RSA even", set(with(rsa, members{"n": b64(append(bytesOf(odd(2048)), 0))})), "its modulus is even"},
		{"RSA without n", set(with(rsa, members{"n": nil})), "its n is missing or not base64url"},
		{"RSA with padding", set(with(rsa, members{"n": "AQAB=="})), "its n is missing or not base64url"},
		{"RSA with e of 1", set(with(rsa, members{"e": "AQ"})), "its exponent is not an odd number"},
		{"RSA with e even", set(with(rsa, members{"e": "BA"})), "its exponent is not an odd number"},
		{"RSA with e large", set(with(rsa, members{"e": odd(33)})), "its exponent is not an odd number"},
		{"EC not on the curve", set(with(ec, members{"y": ec["x"]})), "not a point of P-256"},
		{"EC at infinity", set(with(ec, members{"x": b64(make([]byte, 32)), "y": b64(make([]byte, 32))})), "not a point of P-256"},
		{"EC too short", set(with(ec, members{"x": b64(make([]byte, 31))})), "31 and 32 bytes, not 32 each"},
		{"EC without y", set(with(ec, members{"y": nil})), "its y is missing"},
		{"Ed25519 too long", set(with(ed, members{"x": b64(make([]byte, 33))})), "its x has 33 bytes, not 32"},
		{"Ed25519 a number", set(with(ed, members{"x": 5})), "its x is missing or not base64url"},
		{"too large", set(with(ed, members{"pad": strings.Repeat("a", 1<<20)})), "too large for a set of keys"},
	} {
		path := filepath.Join(t.TempDir(), "jwks.json")
		if err := os.WriteFile(path, []byte(c.content), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := open(path)
		switch {
		case c.err == "" && err != nil, c.err != "" && err == nil:
			t.Errorf("%s: error %v, want %q", c.name, err, c.err)
		case err == nil:
		case !strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), path):
			t.Errorf("%s: error %v, want %q and the file", c.name, err, c.err)
		case strings.Contains(err.Error(), "c2VjcmV0"):
			t.Errorf("%s: the error holds the secret: %v", c.name, err)
		}
	}
}

func bytesOf(text string) []byte {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return b
}

func TestTokenOptions(t *testing.T) {
	_, err := credential.OpenTokens(t.Context(), credential.TokenOptions{})
	for _, want := range []string{"file of keys", "issuer", "audience"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q among it", err, want)
		}
	}
	if _, err := open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want %v", err, fs.ErrNotExist)
	}
}

func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jwks.json")
	writeKeys(t, path, ed25519JWK())
	tokens, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	ed := token(goodHeader("EdDSA", "ed"), goodClaims(), signEd25519)
	ec := token(goodHeader("ES256", "ec"), goodClaims(), signES256)
	accepts := func(when, token string, want bool) {
		t.Helper()
		if _, err := tokens.Verify(token, now); (err == nil) != want {
			t.Errorf("%s: accepted %v (%v), want %v", when, err == nil, err, want)
		}
	}
	reload := func(when, want string) {
		t.Helper()
		err := tokens.Reload(t.Context(), now)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", when, err, want)
		}
	}

	accepts("at first", ed, true)
	accepts("at first", ec, false)
	reload("unchanged", "")

	writeKeys(t, path, ed25519JWK(), ecdsaJWK())
	accepts("before it is read", ec, false)
	reload("a key more", "")
	accepts("a key more", ed, true)
	accepts("a key more", ec, true)

	writeKeys(t, path, with(ed25519JWK(), members{"d": "AA"}))
	reload("broken", "private key material")
	for range 3 {
		reload("said already", "")
	}
	accepts("broken", ed, true)
	accepts("broken", ec, true)

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	reload("missing", "no such file")
	for range 3 {
		reload("said already", "")
	}
	accepts("missing", ec, true)

	writeKeys(t, path, ecdsaJWK())
	reload("one key less", "")
	accepts("one key less", ed, false)
	accepts("one key less", ec, true)
}

// TestKeysAreBelievedForAnHour after their file was emptied, and at once again when
// it is back.
func TestKeysAreBelievedForAnHour(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jwks.json")
	writeKeys(t, path, ed25519JWK())
	tokens, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	accepts := func(when time.Time, want bool) {
		t.Helper()
		claims := goodClaims()
		claims["iat"], claims["exp"] = when.Unix(), when.Add(time.Minute).Unix()
		if _, err := tokens.Verify(token(goodHeader("EdDSA", "ed"), claims, signEd25519), when); (err == nil) != want {
			t.Errorf("%s after: accepted %v (%v), want %v", when.Sub(now), err == nil, err, want)
		} else if !want && credential.Reason(err) != "the keys are too old, because their file cannot be read" {
			t.Errorf("%s after: %s", when.Sub(now), credential.Reason(err))
		}
	}
	for _, emptied := range []string{"", `{"keys":[]}`} {
		if err := os.WriteFile(path, []byte(emptied), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := tokens.Reload(t.Context(), now); err == nil {
			t.Errorf("%q is a set of keys", emptied)
		}
		_ = tokens.Reload(t.Context(), now.Add(50*time.Minute)) // the bound does not move
		accepts(now.Add(59*time.Minute), true)
		accepts(now.Add(61*time.Minute), false)
	}
	writeKeys(t, path, ed25519JWK())
	if err := tokens.Reload(t.Context(), now.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	accepts(now.Add(2*time.Hour), true)
}

// TestReloadSameStat: two versions of a file may look the same from outside,
// when the second comes within one tick of the clock of the file system.
func TestReloadSameStat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jwks.json")
	put := func(kid string) {
		t.Helper()
		writeKeys(t, path, with(ed25519JWK(), members{"kid": kid}))
		if err := os.Chtimes(path, now, now); err != nil {
			t.Fatal(err)
		}
	}
	put("k1")
	tokens, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	put("k2")
	if err := tokens.Reload(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Verify(token(goodHeader("EdDSA", "k2"), goodClaims(), signEd25519), now); err != nil {
		t.Errorf("the second version was not read: %v", err)
	}
}

// TestReloadWhileVerifying is for the race detector, and to see that no token
// is refused while keys are replaced.
func TestReloadWhileVerifying(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jwks.json")
	writeKeys(t, path, ed25519JWK())
	tokens, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	good := token(goodHeader("EdDSA", "ed"), goodClaims(), signEd25519)
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for range 50 {
				if _, err := tokens.Verify(good, now); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Go(func() {
		for i := range 50 {
			content := encode(members{"keys": []members{ed25519JWK(), with(ecdsaJWK(), members{"kid": strings.Repeat("k", i+1)})}})
			if err := atomicfile.Write(path, content); err != nil {
				t.Error(err)
			}
			if err := tokens.Reload(t.Context(), now); err != nil {
				t.Error(err)
			}
		}
	})
	done.Wait()
}

func FuzzKeySet(f *testing.F) {
	f.Add(encode(members{"keys": []members{ed25519JWK(), ecdsaJWK(), {"kty": "RSA", "kid": "rsa", "n": b64(bytes.Repeat([]byte{255}, 256)), "e": "AQAB"}}}))
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"","e":"AQAB","kid":"a"}]}`))
	path := filepath.Join(f.TempDir(), "jwks.json")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		tokens, err := open(path)
		if err != nil {
			return
		}
		// Whatever was accepted as a key must do as one.
		tokens.Verify(token(goodHeader("EdDSA", "ed"), goodClaims(), signEd25519), now)
		tokens.Verify(token(goodHeader("ES256", "ec"), goodClaims(), signES256), now)
		tokens.Verify(token(goodHeader("RS256", "rsa"), goodClaims(), func(string) []byte { return make([]byte, 256) }), now)
	})
}

func BenchmarkReloadUnchanged(b *testing.B) {
	path := filepath.Join(b.TempDir(), "jwks.json")
	writeKeys(b, path, ed25519JWK(), ecdsaJWK(), rsaJWK())
	tokens, err := open(path)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := tokens.Reload(b.Context(), now); err != nil {
			b.Fatal(err)
		}
	}
}
