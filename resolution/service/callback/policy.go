package callback

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
)

// Policy says which addresses callbacks may go to: https on port 443 or 8443
// of the public Internet. The zero value is ready to use; it must not be copied
// after first use. All methods are safe from many goroutines.
type Policy struct {
	// Allow lists ranges for tests and demonstrations: all their addresses are
	// allowed, with every port, and with plain http.
	Allow []netip.Prefix

	// Resolver finds the addresses of names, in Check and for connections; nil is
	// net.DefaultResolver.
	Resolver *net.Resolver
	// Transport posts the callbacks of tests, in place of connections; it is nil else.
	Transport http.RoundTripper

	names names
}

// Check checks a callback address and returns its receiver: host and port, in one
// spelling for each receiver. The error is a Refusal.
//
// A name is looked up for two seconds at most, and refused if one of its addresses
// is. A name that is not found now is accepted, because every connection is checked
// again.
func (p *Policy) Check(ctx context.Context, raw string) (receiver string, err error) {
	t, err := p.parse(raw)
	if err != nil {
		return "", err
	}
	addrs := []netip.Addr{t.addr}
	if !t.addr.IsValid() {
		addrs = p.names.find(ctx, p.resolver(), t.host)
	}
	if t.fault != "" && len(addrs) == 0 {
		return "", t.fault // no address excuses it
	}
	for _, a := range addrs {
		switch {
		case p.opened(a):
		case t.fault != "":
			return "", t.fault
		case isSpecial(a):
			return "", ErrSpecialAddress
		}
	}
	return t.receiver(), nil
}

// parse is the part of Check without look-ups. It accepts a fault that an address
// of Allow may excuse.
func (p *Policy) parse(raw string) (target, error) {
	t, err := parse(raw)
	if err == nil && t.fault != "" && len(p.Allow) == 0 {
		err = t.fault
	}
	return t, err
}

// opened reports whether Allow contains an address.
func (p *Policy) opened(a netip.Addr) bool {
	a = a.Unmap()
	return slices.ContainsFunc(p.Allow, func(prefix netip.Prefix) bool { return prefix.Contains(a) })
}

func (p *Policy) resolver() *net.Resolver {
	if p.Resolver != nil {
		return p.Resolver
	}
	return net.DefaultResolver
}

// Refusal says why a callback address is not accepted: a word that can be shown to
// the caller. It never contains the address, so it can be logged.
type Refusal string

// The refusals of Policy.Check, for errors.Is.
const (
	ErrInvalidURL     Refusal = "invalid_url"      // not an absolute URL of visible ASCII (the host may have other letters)
	ErrTooLong        Refusal = "too_long"         // more than 2,048 bytes
	ErrNotHTTPS       Refusal = "not_https"        // another scheme
	ErrUserInfo       Refusal = "user_info"        // a name or password before the host
	ErrFragment       Refusal = "fragment"         // a part that is never sent
	ErrPort           Refusal = "port_not_allowed" // not 443 or 8443
	ErrBadHost        Refusal = "bad_host"         // not a domain name
	ErrSpecialName    Refusal = "special_name"     // a name that means something else in each network
	ErrOddAddress     Refusal = "odd_address"      // an IP address, not spelled the canonical way
	ErrSpecialAddress Refusal = "special_address"  // an IP address, in the URL or of the name, that is not of the public Internet
)

// Error returns a text with the word at its end.
func (r Refusal) Error() string { return "callback address refused: " + string(r) }

// Word returns the word alone.
func (r Refusal) Word() string { return string(r) }
