package credential_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution/service/credential"
)

// TestVerify gives good tokens, each with something about it.
func TestVerify(t *testing.T) {
	tokens := openTokens(t, ed25519JWK(), ecdsaJWK(), rsaJWK())
	ed := goodHeader("EdDSA", "ed")
	for _, c := range []struct {
		name  string
		token string
	}{
		{"EdDSA", token(ed, goodClaims(), signEd25519)},
		{"ES256", token(goodHeader("ES256", "ec"), goodClaims(), signES256)},
		{"RS256", token(goodHeader("RS256", "rsa"), goodClaims(), signRS256)},
		{"type in full", token(with(ed, members{"typ": "application/at+jwt"}), goodClaims(), signEd25519)},
		{"type in capitals", token(with(ed, members{"typ": "AT+JWT"}), goodClaims(), signEd25519)},
		{"header of more", token(with(ed, members{"x5t": "abc", "cty": "x"}), goodClaims(), signEd25519)},
		{"audience in a list", token(ed, with(goodClaims(), members{"aud": []string{"https://other.example", audience}}), signEd25519)},
		{"claims of more", token(ed, with(goodClaims(), members{"scope": "read", "client_id": "client-7", "nested": members{"aud": 1}}), signEd25519)},
		{"issued in 60 s", token(ed, with(goodClaims(), members{"iat": now.Unix() + 60, "exp": now.Unix() + 120}), signEd25519)},
		{"valid in 60 s", token(ed, with(goodClaims(), members{"nbf": now.Unix() + 60}), signEd25519)},
		{"expired 59 s ago", token(ed, with(goodClaims(), members{"iat": now.Unix() - 3600, "exp": now.Unix() - 59}), signEd25519)},
		{"a fraction of a second", token(ed, with(goodClaims(), members{"iat": float64(now.Unix()) + 0.25}), signEd25519)},
	} {
		got, err := tokens.Verify(c.token, now)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got.Organization != "org_0123456789abcdef" || got.ID != "token-1" || got.Expires.IsZero() {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
	got, err := tokens.Verify(token(ed, goodClaims(), signEd25519), now)
	if want := now.Add(time.Hour); err != nil || !got.Expires.Equal(want) {
		t.Errorf("expires %v, %v, want %v", got.Expires, err, want)
	}
}

// TestVerifyRefuses gives a hostile or broken token for each rule. Where a
// claim is wrong, the signature is right.
func TestVerifyRefuses(t *testing.T) {
	tokens := openTokens(t, ed25519JWK(), ecdsaJWK(), rsaJWK())
	ed, ec, rs := goodHeader("EdDSA", "ed"), goodHeader("ES256", "ec"), goodHeader("RS256", "rsa")
	good := goodClaims()
	genuine := token(ed, good, signEd25519)
	parts := strings.Split(genuine, ".")
	strangerPublic, stranger, _ := ed25519.GenerateKey(rand.Reader)
	signStranger := func(text string) []byte { return ed25519.Sign(stranger, []byte(text)) }
	rsaDER, err := x509.MarshalPKIXPublicKey(&rsaKey().PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	rsaPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: rsaDER})
	edPublic := ed25519Key.Public().(ed25519.PublicKey)

	header := func(changes members) string { return token(with(ed, changes), good, signEd25519) }
	claims := func(changes members) string { return token(ed, with(good, changes), signEd25519) }
	at := func(seconds int64) int64 { return now.Unix() + seconds }

	const forged = "algorithm not allowed, or not signed by the key it names"
	for _, c := range []struct{ name, token, why string }{
		// No token at all.
		{"empty", "", "malformed"},
		{"an API key", credential.NewKey(false).Reveal(), "malformed"},
		{"two segments", parts[0] + "." + parts[1], "malformed"},
		{"four segments", genuine + ".", "malformed"},
		{"five segments, as a JWE", genuine + ".AA.AA", "malformed"},
		{"full stops alone", "..", "malformed"},
		{"header not base64url", "{}." + parts[1] + "." + parts[2], "malformed"},
		{"base64 with padding", b64(encode(ed)) + "==." + parts[1] + "." + parts[2], "malformed"},
		{"too long", token(ed, with(good, members{"pad": strings.Repeat("a", 8<<10)}), signEd25519), "too long"},
		{"line end in the signature", genuine[:len(genuine)-9] + "\n" + genuine[len(genuine)-9:], "malformed"},
		{"line end at its end", genuine + "\r\n", "malformed"},
		{"header a list", token("[]", good, signEd25519), "malformed"},
		{"header null", token("null", good, signEd25519), forged},
		{"header cut", token(`{"alg":"EdDSA"`, good, signEd25519), "malformed"},
		{"header and more", token(string(encode(ed))+"{}", good, signEd25519), "malformed"},
		{"claims a list", token(ed, "[]", signEd25519), "malformed"},
		{"claims null", token(ed, "null", signEd25519), "wrong issuer"},
		{"claims a string", token(ed, `"iss"`, signEd25519), "malformed"},
		{"claims and more", token(ed, string(encode(good))+"{}", signEd25519), "malformed"},
		{"claims nested deep", token(ed, strings.Repeat(`{"a":`, 1000), signEd25519), "malformed"},

		// The signature.
		{"no signature", parts[0] + "." + parts[1] + ".", forged},
		{"signature cut", genuine[:len(genuine)-2], forged},
		{"signature with stray bits", strayBits(genuine), "malformed"},
		{"signature of zeros", parts[0] + "." + parts[1] + "." + b64(make([]byte, 64)), forged},
		{"claims changed", parts[0] + "." + b64(encode(with(good, members{"org_id": "org_fedcba9876543210"}))) + "." + parts[2], forged},
		{"header changed", b64(encode(with(ed, members{"x": 1}))) + "." + parts[1] + "." + parts[2], forged},
		{"signed by a stranger", token(ed, good, signStranger), forged},
		{"ES256 of zeros", token(ec, good, func(string) []byte { return make([]byte, 64) }), forged},
		{"ES256 in DER's length", token(ec, good, func(s string) []byte { return append(signES256(s), 0, 0, 0) }), forged},
		{"RS256 of zeros", token(rs, good, func(string) []byte { return make([]byte, 256) }), forged},

		// The algorithm.
		{"none", token(with(ed, members{"alg": "none"}), good, signNot), forged},
		{"None", token(with(ed, members{"alg": "None"}), good, signNot), forged},
		{"NONE with a signature", token(with(ed, members{"alg": "NONE"}), good, signEd25519), forged},
		{"alg empty", header(members{"alg": ""}), forged},
		{"alg missing", header(members{"alg": nil}), forged},
		{"alg a number", header(members{"alg": 5}), forged},
		{"alg a list", header(members{"alg": []string{"EdDSA"}}), forged},
		{"alg in small letters", header(members{"alg": "eddsa"}), forged},
		{"HS256 with the RSA key in PEM", token(with(rs, members{"alg": "HS256"}), good, signHS256(rsaPEM)), forged},
		{"HS256 with the RSA key in DER", token(with(rs, members{"alg": "HS256"}), good, signHS256(rsaDER)), forged},
		{"HS256 with the RSA modulus", token(with(rs, members{"alg": "HS256"}), good, signHS256(rsaKey().N.Bytes())), forged},
		{"HS256 with the Ed25519 key", token(with(ed, members{"alg": "HS256"}), good, signHS256(edPublic)), forged},
		{"HS256 with no secret", token(with(ed, members{"alg": "HS256"}), good, signHS256(nil)), forged},
		{"PS256 with the RSA key", token(with(rs, members{"alg": "PS256"}), good, signPS256), forged},
		{"RS512", token(with(rs, members{"alg": "RS512"}), good, signRS256), forged},
		{"ES384", token(with(ec, members{"alg": "ES384"}), good, signES256), forged},
		{"RS256 naming the EC key", token(goodHeader("RS256", "ec"), good, signRS256), "key is for another algorithm"},
		{"RS256 naming the Ed25519 key", token(goodHeader("RS256", "ed"), good, signRS256), "key is for another algorithm"},
		{"ES256 naming the RSA key", token(goodHeader("ES256", "rsa"), good, signES256), "key is for another algorithm"},
		{"EdDSA naming the EC key", token(goodHeader("EdDSA", "ec"), good, signEd25519), "key is for another algorithm"},

		// The key.
		{"kid missing", header(members{"kid": nil}), "unknown key"},
		{"kid empty", header(members{"kid": ""}), "unknown key"},
		{"kid unknown", header(members{"kid": "other"}), "unknown key"},
		{"kid in capitals", header(members{"kid": "ED"}), "unknown key"},
		{"kid a number", header(members{"kid": 1}), "unknown key"},
		{"kid a path", header(members{"kid": "../../dev/null"}), "unknown key"},
		{"key brought along", token(with(ed, members{"jwk": members{"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": b64(strangerPublic)}}), good, signStranger), forged},
		{"key somewhere else", token(with(ed, members{"jku": "https://stranger.example/jwks.json", "kid": "stranger"}), good, signStranger), "unknown key"},
		{"certificate brought along", token(with(ed, members{"x5c": []string{"MIIB"}, "kid": nil}), good, signStranger), "unknown key"},

		// The rest of the header.
		{"typ missing", header(members{"typ": nil}), "type is not at+jwt"},
		{"typ JWT", header(members{"typ": "JWT"}), "type is not at+jwt"},
		{"typ of an id token", header(members{"typ": "id+jwt"}), "type is not at+jwt"},
		{"typ of another media type", header(members{"typ": "text/at+jwt"}), "type is not at+jwt"},
		{"typ a list", header(members{"typ": []string{"at+jwt"}}), "type is not at+jwt"},
		{"crit", header(members{"crit": []string{"exp"}}), "header has extensions"},
		{"crit empty", header(members{"crit": []string{}}), "header has extensions"},
		{"crit null", token(strings.TrimSuffix(string(encode(ed)), "}")+`,"crit":null}`, good, signEd25519), "header has extensions"},
		{"b64 false", header(members{"b64": false, "crit": []string{"b64"}}), "header has extensions"},
		{"b64 false alone", header(members{"b64": false}), "header has extensions"},
		{"b64 true", header(members{"b64": true}), "header has extensions"},
		{"alg twice", token(`{"alg":"none","typ":"at+jwt","kid":"ed","alg":"EdDSA"}`, good, signEd25519), "header is not a JSON object with unique names"},
		{"kid twice", token(`{"alg":"EdDSA","typ":"at+jwt","kid":"other","kid":"ed"}`, good, signEd25519), "header is not a JSON object with unique names"},

		// The claims.
		{"no claims", token(ed, members{}, signEd25519), "wrong issuer"},
		{"iss missing", claims(members{"iss": nil}), "wrong issuer"},
		{"iss another", claims(members{"iss": "https://stranger.example"}), "wrong issuer"},
		{"iss with a slash", claims(members{"iss": issuer + "/"}), "wrong issuer"},
		{"iss in capitals", claims(members{"iss": strings.ToUpper(issuer)}), "wrong issuer"},
		{"iss a list", claims(members{"iss": []string{issuer}}), "wrong issuer"},
		{"iss spelled ISS", claims(members{"iss": nil, "ISS": issuer}), "wrong issuer"},
		{"iss twice", token(ed, strings.TrimSuffix(string(encode(good)), "}")+`,"iss":"`+issuer+`"}`, signEd25519), "malformed"},
		{"iss twice, once escaped", token(ed, strings.TrimSuffix(string(encode(good)), "}")+`,"\u0069ss":"`+issuer+`"}`, signEd25519), "malformed"},
		{"aud missing", claims(members{"aud": nil}), "wrong audience"},
		{"aud another", claims(members{"aud": "https://other.example"}), "wrong audience"},
		{"aud longer", claims(members{"aud": audience + ".stranger.example"}), "wrong audience"},
		{"aud an empty list", claims(members{"aud": []string{}}), "wrong audience"},
		{"aud a list of others", claims(members{"aud": []string{"a", "b"}}), "wrong audience"},
		{"aud a list of lists", claims(members{"aud": [][]string{{audience}}}), "wrong audience"},
		{"aud a list of more than strings", claims(members{"aud": []any{audience, nil, 1}}), "wrong audience"},
		{"sub missing", claims(members{"sub": nil}), "no subject"},
		{"sub empty", claims(members{"sub": ""}), "no subject"},
		{"sub a number", claims(members{"sub": 7}), "no subject"},
		{"jti missing", claims(members{"jti": nil}), "no id"},
		{"jti empty", claims(members{"jti": ""}), "no id"},
		{"jti a number", claims(members{"jti": 1}), "no id"},
		{"org_id missing", claims(members{"org_id": nil}), "no organization"},
		{"org_id empty", claims(members{"org_id": ""}), "no organization"},
		{"org_id a name", claims(members{"org_id": "acme"}), "no organization"},
		{"org_id short", claims(members{"org_id": "org_0123456789abcde"}), "no organization"},
		{"org_id in capitals", claims(members{"org_id": "org_0123456789ABCDEF"}), "no organization"},
		{"org_id with more", claims(members{"org_id": "org_0123456789abcdef\x00"}), "no organization"},
		{"org_id a list", claims(members{"org_id": []string{"org_0123456789abcdef"}}), "no organization"},

		// The times.
		{"exp missing", claims(members{"exp": nil}), "iat, exp or nbf is missing or not a number"},
		{"iat missing", claims(members{"iat": nil}), "iat, exp or nbf is missing or not a number"},
		{"exp a string", claims(members{"exp": fmt.Sprint(at(60))}), "iat, exp or nbf is missing or not a number"},
		{"exp a date", claims(members{"exp": "2026-11-20T10:00:00Z"}), "iat, exp or nbf is missing or not a number"},
		{"exp true", claims(members{"exp": true}), "iat, exp or nbf is missing or not a number"},
		{"exp null", token(ed, strings.Replace(string(encode(good)), `"exp":`, `"exp":null,"x":`, 1), signEd25519), "iat, exp or nbf is missing or not a number"},
		{"iat a list", claims(members{"iat": []int64{at(0)}}), "iat, exp or nbf is missing or not a number"},
		{"iat negative", claims(members{"iat": -1, "exp": 10}), "iat, exp or nbf is missing or not a number"},
		{"exp without end", claims(members{"exp": 1e300}), "iat, exp or nbf is missing or not a number"},
		{"exp beyond numbers", token(ed, strings.Replace(string(encode(good)), `"exp":`, `"exp":1e999,"x":`, 1), signEd25519), "iat, exp or nbf is missing or not a number"},
		{"for more than an hour", claims(members{"exp": at(3601)}), "lifetime is not between 0 and one hour"},
		{"for a fraction more", claims(members{"exp": float64(at(3600)) + 0.5}), "lifetime is not between 0 and one hour"},
		{"for a year", claims(members{"exp": at(365 * 86400)}), "lifetime is not between 0 and one hour"},
		{"for no time", claims(members{"exp": at(0)}), "lifetime is not between 0 and one hour"},
		{"ending before it begins", claims(members{"iat": at(30), "exp": at(20)}), "lifetime is not between 0 and one hour"},
		{"issued in 61 s", claims(members{"iat": at(61), "exp": at(120)}), "not valid yet"},
		{"valid in 61 s", claims(members{"nbf": at(61)}), "not valid yet"},
		{"nbf a string", claims(members{"nbf": "0"}), "iat, exp or nbf is missing or not a number"},
		{"nbf null", token(ed, strings.TrimSuffix(string(encode(good)), "}")+`,"nbf":null}`, signEd25519), "iat, exp or nbf is missing or not a number"},

		// Expired, and not otherwise good.
		{"expired, signed by a stranger", token(ed, with(good, members{"iat": at(-7200), "exp": at(-3600)}), signStranger), forged},
		{"expired, without signature", token(with(ed, members{"alg": "none"}), with(good, members{"iat": at(-7200), "exp": at(-3600)}), signNot), forged},
		{"expired, for another", claims(members{"iat": at(-7200), "exp": at(-3600), "aud": "https://other.example"}), "wrong audience"},
		{"expired, for too long", claims(members{"iat": at(-72000), "exp": at(-3600)}), "lifetime is not between 0 and one hour"},
	} {
		got, err := tokens.Verify(c.token, now)
		if !errors.Is(err, credential.ErrInvalid) || errors.Is(err, credential.ErrExpired) || got != (credential.Claims{}) {
			t.Errorf("%s: got %+v, %v, want nothing and %v", c.name, got, err, credential.ErrInvalid)
			continue
		}
		if want := "invalid credential: " + c.why; err.Error() != want {
			t.Errorf("%s: got %q, want %q", c.name, err, want)
		}
		for _, part := range append(strings.Split(c.token, "."), issuer, audience, "org_", "stranger", "client-7") {
			if len(part) > 3 && strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error holds a part of the token: %v", c.name, err)
			}
		}
	}
}

// strayBits changes the last digit of a token in bits that stand for nothing:
// 64 bytes are 85 digits and a third, so that four bits are left over.
func strayBits(token string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, token[len(token)-1])
	return token[:len(token)-1] + alphabet[last|1:last|1+1]
}

func TestVerifyExpired(t *testing.T) {
	tokens := openTokens(t, ed25519JWK(), ecdsaJWK(), rsaJWK())
	signed := map[string]string{
		"EdDSA": token(goodHeader("EdDSA", "ed"), goodClaims(), signEd25519),
		"ES256": token(goodHeader("ES256", "ec"), goodClaims(), signES256),
		"RS256": token(goodHeader("RS256", "rsa"), goodClaims(), signRS256),
	}
	for _, c := range []struct {
		after time.Duration
		want  error
	}{
		{-61 * time.Second, credential.ErrInvalid}, // not issued yet
		{-60 * time.Second, nil},
		{time.Hour, nil},
		{time.Hour + time.Minute - 1, nil},
		{time.Hour + time.Minute, credential.ErrExpired},
		{1000 * time.Hour, credential.ErrExpired},
	} {
		for alg, token := range signed {
			_, err := tokens.Verify(token, now.Add(c.after))
			if !errors.Is(err, c.want) || errors.Is(err, credential.ErrExpired) != (c.want == credential.ErrExpired) {
				t.Errorf("%s after %v: got %v, want %v", alg, c.after, err, c.want)
			}
		}
	}
}

func TestIsToken(t *testing.T) {
	for bearer, want := range map[string]bool{
		token(goodHeader("EdDSA", "ed"), goodClaims(), signEd25519): true,
		credential.NewKey(true).Reveal():                            false,
		"":                                                          false,
		"a.b":                                                       true,
		"a b":                                                       false,
	} {
		if got := credential.IsToken(bearer); got != want {
			t.Errorf("IsToken(%q) = %v, want %v", bearer, got, want)
		}
	}
}

// FuzzVerify looks for a token that is accepted without the issuer's having
// signed it, and for a panic.
func FuzzVerify(f *testing.F) {
	tokens := openTokens(f, ed25519JWK())
	for _, genuine := range []string{
		token(goodHeader("EdDSA", "ed"), goodClaims(), signEd25519),
		token(goodHeader("HS256", "ed"), goodClaims(), signHS256(nil)),
		token(goodHeader("none", "ed"), goodClaims(), signNot),
	} {
		parts := strings.Split(genuine, ".")
		header, _ := base64.RawURLEncoding.DecodeString(parts[0])
		claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
		signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
		f.Add(genuine, header, claims, signature)
	}
	f.Fuzz(func(t *testing.T, whole string, header, claims, signature []byte) {
		made := b64(header) + "." + b64(claims) + "." + b64(signature)
		signed := token(string(header), string(claims), signEd25519)
		for _, token := range []string{whole, made, signed} {
			got, err := tokens.Verify(token, now)
			switch {
			case err == nil && (got.ID == "" || len(got.Organization) != 20 || got.Expires.Before(now.Add(-time.Minute))):
				t.Errorf("%q is accepted: %+v", token, got)
			case err == nil && !json.Valid(claims) && token != whole:
				t.Errorf("%q is accepted", token)
			case err != nil && !errors.Is(err, credential.ErrInvalid) && !errors.Is(err, credential.ErrExpired):
				t.Errorf("%q: got %v, which is neither", token, err)
			}
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	tokens := openTokens(b, ed25519JWK(), ecdsaJWK(), rsaJWK())
	for name, token := range map[string]string{
		"EdDSA":   token(goodHeader("EdDSA", "ed"), goodClaims(), signEd25519),
		"ES256":   token(goodHeader("ES256", "ec"), goodClaims(), signES256),
		"RS256":   token(goodHeader("RS256", "rsa"), goodClaims(), signRS256),
		"garbage": token(goodHeader("EdDSA", "ed"), goodClaims(), func(string) []byte { return make([]byte, 64) }),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tokens.Verify(token, now)
			}
		})
	}
}
