package credential

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// maxTokenLength bounds a token, in bytes, before anything is decoded.
	maxTokenLength = 8 << 10

	// maxLifetime bounds exp − iat.
	maxLifetime = time.Hour

	// leeway is how far the issuer's clock may be from ours, either way.
	leeway = time.Minute
)

var (
	// ErrInvalid says that a credential is not valid. The error that wraps it
	// says why, for the log. Tell a caller only that the credential is invalid.
	ErrInvalid = errors.New("invalid credential")

	// ErrExpired says that a token has expired and is valid in every other
	// way, signature included.
	ErrExpired = errors.New("expired credential")
)

// Claims are what a token says about its bearer.
type Claims struct {
	Organization string    // org_id: org_ and 16 lower-case hex digits
	ID           string    // jti
	Expires      time.Time // exp, without the leeway
}

// IsToken reports whether a bearer value is a token and not an API key. A token
// contains two full stops, a key none.
func IsToken(bearer string) bool { return strings.Contains(bearer, ".") }

// Verify checks a token at the time now. It returns the claims, or ErrInvalid or
// ErrExpired. A valid token
//
//   - is a JWS in compact form of at most 8 KiB, of type at+jwt;
//   - is signed with EdDSA, ES256 or RS256 by the key that its kid names, and that
//     key is for this algorithm;
//   - has the claims iss (the issuer of the options), aud (their audience, or a list
//     with it), sub, exp, iat, jti and org_id;
//   - has an exp that is at most one hour after iat;
//   - is used before exp, and not before iat or nbf, with 60 s of leeway.
//
// Other members of the header, such as jwk, jku and x5u, are ignored. A header with
// crit or b64 is refused. Source: RFC 9068, RFC 8725.
func (t *Tokens) Verify(token string, now time.Time) (Claims, error) {
	if since := t.failing.Load(); since != 0 && now.Sub(time.Unix(since, 0)) > believed {
		return Claims{}, invalid("the keys are too old, because their file cannot be read")
	}
	if len(token) > maxTokenLength {
		return Claims{}, invalid("too long")
	}
	if strings.ContainsAny(token, "\r\n") {
		return Claims{}, invalid("malformed") // encoding/base64 would ignore them
	}
	p := payload{}
	if _, err := t.parser.ParseWithClaims(token, &p, t.key); err != nil {
		return Claims{}, invalid(why(err))
	}
	return checkClaims(p.object, t.options, now)
}

// reason says why a token is invalid. It never contains a part of the token.
type reason string

func (r reason) Error() string { return string(r) }

// ErrOrganization refuses a valid token of an organization that there is not.
var ErrOrganization = invalid("there is no such organization")

// Reason returns why Verify refused a token, in words that never contain a part of
// it.
func Reason(err error) string {
	if r, ok := errors.AsType[reason](err); ok {
		return string(r)
	}
	return "expired"
}

func invalid(why reason) error { return fmt.Errorf("%w: %w", ErrInvalid, why) }

// why returns the reason for an error of the parser. The text of the error is
// dropped, because it may contain parts of the token.
func why(err error) reason {
	var ours reason
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.Is(err, jwt.ErrTokenMalformed):
		return "malformed"
	}
	return "algorithm not allowed, or not signed by the key it names"
}

// newParser makes a parser that leaves the claims to checkClaims: its time is a
// field, ours a parameter, and it does not have most of our rules.
func newParser() *jwt.Parser {
	return jwt.NewParser(
		jwt.WithValidMethods([]string{algEdDSA, algES256, algRS256}),
		jwt.WithStrictDecoding(),
		jwt.WithoutClaimsValidation(),
	)
}

// key checks the header of a token and returns the key that verifies it. The
// parser has checked that alg is a valid method.
func (t *Tokens) key(token *jwt.Token) (any, error) {
	segment, _, _ := strings.Cut(token.Raw, ".")
	raw, err := t.parser.DecodeSegment(segment)
	if err != nil {
		return nil, reason("header is not base64url")
	}
	header, err := parseObject(raw)
	if err != nil {
		return nil, reason("header is not a JSON object with unique names")
	}
	if header.has("crit") || header.has("b64") {
		return nil, reason("header has extensions")
	}
	typ, _ := header.text("typ")
	if !strings.EqualFold(typ, "at+jwt") && !strings.EqualFold(typ, "application/at+jwt") {
		return nil, reason("type is not at+jwt")
	}
	kid, _ := header.text("kid")
	key, known := (*t.keys.Load())[kid]
	switch {
	case !known:
		return nil, reason("unknown key")
	case key.alg != token.Method.Alg():
		return nil, reason("key is for another algorithm")
	}
	return key.public, nil
}

// payload holds the claims of a token as they are. It is a jwt.Claims by its
// MapClaims, whose methods are not used.
type payload struct {
	jwt.MapClaims
	object object
}

func (p *payload) UnmarshalJSON(data []byte) (err error) {
	p.object, err = parseObject(data)
	return err
}

// checkClaims applies the rules on claims. Expiry is checked last, so that
// ErrExpired says that everything else is valid.
func checkClaims(c object, o TokenOptions, now time.Time) (Claims, error) {
	issuer, _ := c.text("iss")
	subject, _ := c.text("sub")
	id, _ := c.text("jti")
	organization, _ := c.text("org_id")
	issued, hasIssued := c.moment("iat")
	expires, hasExpires := c.moment("exp")
	notBefore, hasNotBefore := c.moment("nbf")
	switch {
	case issuer != o.Issuer:
		return Claims{}, invalid("wrong issuer")
	case !c.isFor(o.Audience):
		return Claims{}, invalid("wrong audience")
	case subject == "":
		return Claims{}, invalid("no subject")
	case id == "":
		return Claims{}, invalid("no id")
	case !isOrganization(organization):
		return Claims{}, invalid("no organization")
	case !hasIssued || !hasExpires || c.has("nbf") && !hasNotBefore:
		return Claims{}, invalid("iat, exp or nbf is missing or not a number")
	case !expires.After(issued) || expires.Sub(issued) > maxLifetime:
		return Claims{}, invalid("lifetime is not between 0 and one hour")
	case now.Add(leeway).Before(issued) || hasNotBefore && now.Add(leeway).Before(notBefore):
		return Claims{}, invalid("not valid yet")
	case !now.Before(expires.Add(leeway)):
		return Claims{}, ErrExpired
	}
	return Claims{Organization: organization, ID: id, Expires: expires}, nil
}

// isFor reports whether aud is the audience, or a list that contains it.
func (o object) isFor(audience string) bool {
	if one, given := o.text("aud"); given {
		return one == audience
	}
	all, _ := o.texts("aud")
	return slices.Contains(all, audience)
}

// isOrganization reports whether s has the form of an organization's id.
func isOrganization(s string) bool {
	digits, found := strings.CutPrefix(s, "org_")
	return found && len(digits) == 16 && strings.Trim(digits, "0123456789abcdef") == ""
}

// lastSecond is the end of the year 9999 in Unix time.
const lastSecond = 253402300799

// moment returns the member's value as a NumericDate: seconds since 1970, which may
// have a fraction. Source: RFC 7519, section 2.
func (o object) moment(name string) (time.Time, bool) {
	seconds, is := o.number(name)
	if !is || !(seconds >= 0 && seconds <= lastSecond) {
		return time.Time{}, false
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*float64(time.Second))).UTC(), true
}
