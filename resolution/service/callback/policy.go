package callback

import (
	"context"
	"net"
	"net/netip"
	"slices"
)

// Policy says which addresses callbacks may go to: https on port 443 or 8443
// of the public Internet. The zero value is in force; it must not be copied
// after first use. All methods are safe from many goroutines.
type Policy struct {
	// Allow opens addresses for tests and demonstrations: inside these ranges
	// nothing is special, any port goes, and plain http as well.
	Allow []netip.Prefix

	// Resolver finds the addresses of names, when an address is accepted and
	// when it is dialled; nil is net.DefaultResolver.
	Resolver *net.Resolver

	names names
}

// Check judges a callback address and returns whom its deliveries go to: host
// and port, in one spelling for one receiver. The error is a Refusal.
//
// A name is looked up, for two seconds at most, and refused when any of its
// addresses is. A name that is not found now is accepted: the dialling decides,
// and an attempt that fails is made again.
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
		return "", t.fault // nothing says that it is opened
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

// parse is the part of Check that asks nobody. A fault of the target is left
// for its addresses to excuse.
func (p *Policy) parse(raw string) (target, error) {
	t, err := parse(raw)
	if err == nil && t.fault != "" && len(p.Allow) == 0 {
		err = t.fault
	}
	return t, err
}

// opened reports whether Allow holds a.
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

// Refusal is why a callback address is not accepted: a word that can be shown
// to who sent it. It never holds the address, so it can be logged as well.
type Refusal string

// The refusals of Policy.Check, for errors.Is.
const (
	ErrInvalidURL     Refusal = "invalid_url"      // not an absolute URL of visible ASCII, its host aside
	ErrTooLong        Refusal = "too_long"         // more than 2,048 bytes
	ErrNotHTTPS       Refusal = "not_https"        // another scheme
	ErrUserInfo       Refusal = "user_info"        // a name or password before the host
	ErrFragment       Refusal = "fragment"         // a part that is never sent
	ErrPort           Refusal = "port_not_allowed" // not 443 or 8443
	ErrBadHost        Refusal = "bad_host"         // not a domain name
	ErrSpecialName    Refusal = "special_name"     // a name that means something else in each network
	ErrOddAddress     Refusal = "odd_address"      // an IP address, not spelled the canonical way
	ErrSpecialAddress Refusal = "special_address"  // an address, literal or behind the name, that is not the public Internet's
)

// Error returns the word, with what it is about before it.
func (r Refusal) Error() string { return "callback address refused: " + string(r) }

// Word returns the word alone.
func (r Refusal) Word() string { return string(r) }
