package admission

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/leadetl/leadetl/resolution/service/account"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/metrics"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// Challenges, as in RFC 6750, 3.1. A request without credentials gets no error
// in its challenge.
const (
	challenge        = `Bearer realm="leadetl"`
	ChallengeInvalid = challenge + `, error="invalid_token", error_description="The credentials are not valid"`
	ChallengeExpired = challenge + `, error="invalid_token", error_description="The credentials have expired"`
)

// A caller with a wrong credential gets one of these answers, and no details.
var (
	errMissing = &wire.Problem{Kind: wire.MissingCredentials, Challenge: challenge,
		Detail: "Send an API key or an organization token in the header Authorization: Bearer."}
	errInvalid = &wire.Problem{Kind: wire.InvalidCredentials, Challenge: ChallengeInvalid,
		Detail: "The API key or token is not known here."}
	errExpired = &wire.Problem{Kind: wire.ExpiredCredentials, Challenge: ChallengeExpired,
		Detail: "The API key or token was known here, and has expired."}
)

// authenticate finds the caller of a call. Refused credentials count against
// the address they came from. Valid credentials from there are never delayed.
func (g *Gate) authenticate(c *Call) error {
	token := bearer(c.Request.Header)
	if token == "" {
		return errMissing
	}
	return g.authenticateWith(c, token)
}

func (g *Gate) authenticateWith(c *Call, token string) (err error) {
	c.Caller, err = g.identify(c, token)
	if err == nil {
		c.Caller.Account.MarkCalled()
		if c.Caller.Account.IsTest() {
			wire.MarkTest(c.Header)
		}
		return g.Permit(c)
	}
	p, is := errors.AsType[*wire.Problem](err)
	if !is {
		return err
	}
	if p.Cause != nil && g.Complaints.Allow() {
		g.Log.Info("token refused", "request", c.ID, "reason", credential.Reason(p.Cause))
	}
	return g.countGuess(p, refusalOf(p), addressKey(g.clientAddress(c.Request)), "credentials from this address", c.Began)
}

// countGuess counts wrong credentials against the limit of their origin. It
// returns the refusal, or that there were too many.
func (g *Gate) countGuess(refusal *wire.Problem, reason, from, what string, now time.Time) error {
	g.Metrics.FailedAuth.WithLabelValues(reason).Inc()
	d := g.guesses.Take(from, now)
	if d.Allowed {
		return refusal
	}
	p := wire.Refuse(wire.RateLimited, "Too many %s were wrong. Try again later.", what)
	p.RetryAfter = d.RetryAfter
	return p
}

// CountSystemKey counts a wrong system key against the limit of failed
// authentications, which all clients on this machine share. The right key is
// never delayed. Other errors pass.
func (g *Gate) CountSystemKey(err error) error {
	p, ok := errors.AsType[*wire.Problem](err)
	if !ok || p.Kind != wire.InvalidCredentials {
		return err
	}
	return g.countGuess(p, metrics.WrongSystemKey, "x-sys-key", "system keys", g.Now())
}

// SignIn returns the caller that a key belongs to, if it may read its account.
// Wrong keys count against their address.
func (g *Gate) SignIn(r *http.Request, key string) (account.Caller, error) {
	c := &Call{Request: r, Began: g.Now(), Header: http.Header{}, Operation: account.Scope}
	if err := g.authenticateWith(c, key); err != nil {
		return account.Caller{}, err
	}
	if c.Caller.Key == nil { // a token is not for browsers
		return account.Caller{}, errInvalid
	}
	return c.Caller, nil
}

// SignedIn returns a caller as it is now, if its key is still valid here.
func (g *Gate) SignedIn(r *http.Request, before account.Caller) (account.Caller, error) {
	found, ok := g.Roster.ByKey(before.Key.Hash)
	if !ok || isExpired(found.Key, g.Now()) {
		return account.Caller{}, errInvalid
	}
	return found, g.Permit(&Call{Request: r, Operation: account.Scope, Caller: found})
}

func isExpired(k *state.Key, now time.Time) bool {
	return !k.Expires.IsZero() && !now.Before(k.Expires)
}

// bearer returns the credentials after Bearer in the only Authorization header,
// otherwise "".
func bearer(h http.Header) string {
	values := h["Authorization"]
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.Trim(token, " ")
}

// Permit refuses valid credentials that are not for this call.
func (g *Gate) Permit(c *Call) error {
	switch key := c.Caller.Key; {
	case c.Caller.Account.Suspended():
		return wire.Refuse(wire.Forbidden, "The organization is suspended. Ask the operator of the service why.")
	case key == nil:
		return nil
	case c.Operation != SingleResult && !key.May(string(c.Operation)):
		return wire.Refuse(wire.Forbidden, "This API key may not call this operation. Its scope is set where keys are made.")
	case !key.From(g.clientAddress(c.Request)):
		return wire.Refuse(wire.Forbidden, "This API key may not be used from this address. Its scope is set where keys are made.")
	}
	return nil
}

// identify returns the caller of credentials.
func (g *Gate) identify(c *Call, token string) (account.Caller, error) {
	if g.Tokens != nil && credential.IsToken(token) {
		return g.identifyToken(c, token)
	}
	// Malformed, unknown and revoked keys take the same path, and the same time.
	hash, _ := g.Pepper.Identify(token)
	found, ok := g.Roster.ByKey(hash)
	if !ok {
		if err := g.doubt(c); err != nil {
			return account.Caller{}, err
		}
		found, ok = g.Roster.ByKey(hash)
	}
	switch {
	case !ok:
		return account.Caller{}, errInvalid
	case isExpired(found.Key, c.Began):
		return account.Caller{}, errExpired
	}
	return found, nil
}

func (g *Gate) identifyToken(c *Call, token string) (account.Caller, error) {
	claims, err := g.Tokens.Verify(token, c.Began)
	switch {
	case errors.Is(err, credential.ErrExpired):
		return account.Caller{}, refusedToken(errExpired, err)
	case err != nil:
		return account.Caller{}, refusedToken(errInvalid, err)
	}
	a := g.Roster.ByPublic(claims.Organization)
	if a == nil {
		if err := g.doubt(c); err != nil {
			return account.Caller{}, err
		}
		a = g.Roster.ByPublic(claims.Organization)
	}
	if a == nil {
		return account.Caller{}, refusedToken(errInvalid, credential.ErrOrganization)
	}
	return account.Caller{Account: a}, nil
}

// refusedToken is an answer with the reason for the log and the metrics. The caller
// does not get it.
func refusedToken(answer *wire.Problem, why error) error {
	p := *answer
	p.Cause = why
	return &p
}

// refusalOf is what was wrong with credentials, in one of a few phrases.
func refusalOf(p *wire.Problem) string {
	switch {
	case p.Cause != nil:
		return "token: " + credential.Reason(p.Cause)
	case p.Kind == wire.ExpiredCredentials:
		return metrics.ExpiredKey
	}
	return metrics.UnknownKey
}

// doubt reads the credentials again, because they may be new. It does not when
// the address has used up its failed attempts, so that guesses do not delay the
// keys of others. A new key from there waits for the next refresh.
func (g *Gate) doubt(c *Call) error {
	if !g.guesses.Peek(addressKey(g.clientAddress(c.Request)), c.Began).Allowed {
		return nil
	}
	return g.Roster.Doubt(c.Request.Context())
}

// clientAddress returns the address a request came from: the peer or, behind
// trusted proxies, the last address in X-Forwarded-For that is not trusted.
func (g *Gate) clientAddress(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	client := peer.Addr().Unmap().WithZone("")
	if !g.trusted(client) {
		return client
	}
	said := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(said) - 1; i >= 0; i-- {
		a, ok := forwarded(said[i])
		if !ok {
			break
		}
		client = a
		if !g.trusted(client) {
			break
		}
	}
	return client
}

func (g *Gate) trusted(a netip.Addr) bool {
	for _, p := range g.Proxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// forwarded reads an element of X-Forwarded-For: an address, with or without
// port.
func forwarded(s string) (netip.Addr, bool) {
	s = strings.TrimSpace(s)
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return a.Unmap().WithZone(""), err == nil
}

// addressKey is the key under which an address is counted: for IPv6 the /64,
// because one caller usually has all of it.
func addressKey(a netip.Addr) string {
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}
