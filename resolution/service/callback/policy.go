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
