package service

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/metrics"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// Challenges, as in RFC 6750, 3.1. A request without credentials gets no error
// in its challenge.
const (
	challenge        = `Bearer realm="leadetl"`
	challengeInvalid = challenge + `, error="invalid_token", error_description="The credentials are not valid"`
	challengeExpired = challenge + `, error="invalid_token", error_description="The credentials have expired"`
)

// A caller with a wrong credential gets one of these answers, and no details.
var (
	errMissing = &wire.Problem{Kind: wire.MissingCredentials, Challenge: challenge,
		Detail: "Send an API key or an organization token in the header Authorization: Bearer."}
	errInvalid = &wire.Problem{Kind: wire.InvalidCredentials, Challenge: challengeInvalid,
		Detail: "The API key or token is not known here."}
	errExpired = &wire.Problem{Kind: wire.ExpiredCredentials, Challenge: challengeExpired,
		Detail: "The API key or token was known here, and has expired."}
)

// authenticate finds the account of a call. Refused credentials count against
// the address they came from. Valid credentials from there are never delayed.
func (s *Service) authenticate(c *call) error {
	token := bearer(c.request.Header)
	if token == "" {
		return errMissing
	}
	return s.authenticateWith(c, token)
}

func (s *Service) authenticateWith(c *call, token string) error {
	err := s.identify(c, token)
	if err == nil {
		c.account.asked.Store(true)
		if c.account.isTest() {
			wire.MarkTest(c.header)
		}
		return s.permit(c)
	}
	p, is := errors.AsType[*wire.Problem](err)
	if !is {
		return err
	}
	s.metrics.FailedAuth.WithLabelValues(refusalOf(p)).Inc()
	if p.Cause != nil && s.complaints.Allow() {
		s.log.Info("token refused", "request", c.id, "reason", credential.Reason(p.Cause))
	}
	d := s.guesses.Take(addressKey(s.clientAddress(c.request)), c.began)
	if !d.Allowed {
		p := wire.Refuse(wire.RateLimited, "Too many credentials from this address were wrong. Try again later.")
		p.RetryAfter = d.RetryAfter
		return p
	}
	return err
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

// permit refuses valid credentials that are not for this call.
func (s *Service) permit(c *call) error {
	switch {
	case c.account.suspended.Load():
		return wire.Refuse(wire.Forbidden, "The organization is suspended. Ask the operator of the service why.")
	case c.apiKey == nil:
		return nil
	case !c.apiKey.May(string(c.route.operation)):
		return wire.Refuse(wire.Forbidden, "This API key may not call this operation. Its scope is set where keys are made.")
	case !c.apiKey.From(s.clientAddress(c.request)):
		return wire.Refuse(wire.Forbidden, "This API key may not be used from this address. Its scope is set where keys are made.")
	}
	return nil
}

// identify sets the account and the API key of a call.
func (s *Service) identify(c *call, token string) error {
	if s.options.Tokens != nil && credential.IsToken(token) {
		return s.identifyToken(c, token)
	}
	// Malformed, unknown and revoked keys take the same path, and the same time.
	hash, _ := s.options.Pepper.Identify(token)
	k, found := s.rosters.present.Load().keys[hash]
	if !found || !k.record.Revoked.IsZero() {
		if err := s.doubt(c); err != nil {
			return err
		}
		k, found = s.rosters.present.Load().keys[hash]
	}
	if found && !k.record.Test && credential.IsTest(token) { // created by an old version, in which test keys spent real credits
		var err error
		if k, err = s.rosters.moveTestKey(c.request.Context(), hash); err != nil {
			return err
		}
	}
	switch {
	case !found || !k.record.Revoked.IsZero():
		return errInvalid
	case !k.record.Expires.IsZero() && !c.began.Before(k.record.Expires):
		return errExpired
	}
	c.account, c.apiKey = k.account, k.record
	return nil
}

func (s *Service) identifyToken(c *call, token string) error {
	claims, err := s.options.Tokens.Verify(token, c.began)
	switch {
	case errors.Is(err, credential.ErrExpired):
		return refusedToken(errExpired, err)
	case err != nil:
		return refusedToken(errInvalid, err)
	}
	a := s.rosters.present.Load().accounts[claims.Organization]
	if a == nil {
		if err := s.doubt(c); err != nil {
			return err
		}
		a = s.rosters.present.Load().accounts[claims.Organization]
	}
	if a == nil {
		return refusedToken(errInvalid, credential.ErrOrganization)
	}
	c.account = a
	return nil
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
func (s *Service) doubt(c *call) error {
	if !s.guesses.Peek(addressKey(s.clientAddress(c.request)), c.began).Allowed {
		return nil
	}
	return s.rosters.doubt(c.request.Context())
}

// clientAddress returns the address a request came from: the peer or, behind
// trusted proxies, the last address in X-Forwarded-For that is not trusted.
func (s *Service) clientAddress(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	client := peer.Addr().Unmap().WithZone("")
	if !s.trusted(client) {
		return client
	}
	said := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(said) - 1; i >= 0; i-- {
		a, ok := forwarded(said[i])
		if !ok {
			break
		}
		client = a
		if !s.trusted(client) {
			break
		}
	}
	return client
}

func (s *Service) trusted(a netip.Addr) bool {
	for _, p := range s.options.TrustedProxies {
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
