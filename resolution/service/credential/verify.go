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
	// ErrInvalid says that a credential is not one of ours. What it is
	// wrapped in says why in words of ours, for the log; a caller is told no
	// more than that it is invalid.
	ErrInvalid = errors.New("invalid credential")

	// ErrExpired says that a credential was good until it expired: the
	// signature of the token and all else in it is right.
	ErrExpired = errors.New("expired credential")
)

// Claims are what a token says of its bearer.
type Claims struct {
	Organization string    // org_id: org_ and 16 lower-case hex digits
	ID           string    // jti
	Expires      time.Time // exp, without the leeway
}

// IsToken reports whether a bearer value is to be verified as a token rather
// than looked up as an API key: a key has no full stop in it, a token two.
func IsToken(bearer string) bool { return strings.Contains(bearer, ".") }

// Verify checks a token at the moment now, and returns its claims, ErrInvalid
// or ErrExpired.
//
// A token is a JWS in compact form, at most 8 KiB long, of the type at+jwt,
// signed with EdDSA, ES256 or RS256 by the key of the set that its kid names
// and that is for this algorithm. It has the claims iss, aud, sub, exp, iat,
// jti and org_id; iss is our issuer, aud our audience or a list with it;
// exp is at most one hour after iat; now is before exp, and not before iat nor
// before nbf, if given, all with 60 s of leeway. What its header has besides
// (jwk, jku, x5u and others) is not looked at, except that crit and b64 are
// refused. Source: RFC 9068, RFC 8725.
func (t *Tokens) Verify(token string, now time.Time) (Claims, error) {
	if len(token) > maxTokenLength {
		return Claims{}, invalid("too long")
	}
	if strings.ContainsAny(token, "\r\n") {
		return Claims{}, invalid("malformed") // encoding/base64 would pass over them
	}
	p := payload{}
	if _, err := t.parser.ParseWithClaims(token, &p, t.key); err != nil {
		return Claims{}, invalid(why(err))
	}
	return p.check(t.options, now)
}

// reason is why a token is invalid; it never holds a part of it.
type reason string

func (r reason) Error() string { return string(r) }

func invalid(why reason) error { return fmt.Errorf("%w: %w", ErrInvalid, why) }

// why is the reason for an error of the parser, whose own words are not passed
// on: they may hold parts of the token.
func why(err error) reason {
	var ours reason
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.Is(err, jwt.ErrTokenMalformed):
		return "malformed"
	}
	return "algorithm not one of ours, or not signed by the key it names"
}

// newParser leaves the claims to payload.check: the moment is a parameter here
// and a field there, and most of our rules are not among the parser's.
func newParser() *jwt.Parser {
	return jwt.NewParser(
		jwt.WithValidMethods([]string{algEdDSA, algES256, algRS256}),
		jwt.WithStrictDecoding(),
		jwt.WithoutClaimsValidation(),
	)
}

// key checks the header of a token and gives the key it is to be verified
// with. The parser has found its alg among the valid methods.
func (t *Tokens) key(token *jwt.Token) (any, error) {
	segment, _, _ := strings.Cut(token.Raw, ".")
	raw, err := t.parser.DecodeSegment(segment)
	if err != nil {
		return nil, reason("header not base64url")
	}
	header, err := parseObject(raw)
	if err != nil {
		return nil, reason("header not a JSON object with each name once")
	}
	if header.has("crit") || header.has("b64") {
		return nil, reason("header with extensions")
	}
	typ, _ := header.text("typ")
	if !strings.EqualFold(typ, "at+jwt") && !strings.EqualFold(typ, "application/at+jwt") {
		return nil, reason("type not at+jwt")
	}
	kid, _ := header.text("kid")
	key, known := (*t.keys.Load())[kid]
	switch {
	case !known:
		return nil, reason("key unknown")
	case key.alg != token.Method.Alg():
		return nil, reason("algorithm not the key's")
	}
	return key.public, nil
}

// payload is the claims of a token as they stand.
type payload struct {
	jwt.MapClaims // for its methods, which the parser's interface wants and nobody calls
	claims        object
}

func (p *payload) UnmarshalJSON(data []byte) (err error) {
	p.claims, err = parseObject(data)
	return err
}

// check applies the rules on claims. That a token has expired comes last: it
// is said only of one that is otherwise good.
func (p *payload) check(o TokenOptions, now time.Time) (Claims, error) {
	c := p.claims
	issuer, _ := c.text("iss")
	subject, _ := c.text("sub")
	id, _ := c.text("jti")
	organization, _ := c.text("org_id")
	issued, hasIssued := c.moment("iat")
	expires, hasExpires := c.moment("exp")
	notBefore, hasNotBefore := c.moment("nbf")
	switch {
	case issuer != o.Issuer:
		return Claims{}, invalid("issuer not ours")
	case !c.isFor(o.Audience):
		return Claims{}, invalid("audience not ours")
	case subject == "":
		return Claims{}, invalid("no subject")
	case id == "":
		return Claims{}, invalid("no id")
	case !isOrganization(organization):
		return Claims{}, invalid("no organization")
	case !hasIssued || !hasExpires || c.has("nbf") && !hasNotBefore:
		return Claims{}, invalid("times missing or not numbers")
	case !expires.After(issued) || expires.Sub(issued) > maxLifetime:
		return Claims{}, invalid("lifetime not up to one hour")
	case now.Add(leeway).Before(issued) || hasNotBefore && now.Add(leeway).Before(notBefore):
		return Claims{}, invalid("not valid yet")
	case !now.Before(expires.Add(leeway)):
		return Claims{}, ErrExpired
	}
	return Claims{Organization: organization, ID: id, Expires: expires}, nil
}

// isFor reports whether aud is the audience, or a list of strings with it.
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

// lastSecond is the end of the year 9999 in unix time.
const lastSecond = 253402300799

// moment is the member's value as a NumericDate: seconds, perhaps with a
// fraction, since 1970. Source: RFC 7519, section 2.
func (o object) moment(name string) (time.Time, bool) {
	seconds, is := o.number(name)
	if !is || !(seconds >= 0 && seconds <= lastSecond) {
		return time.Time{}, false
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*float64(time.Second))).UTC(), true
}
