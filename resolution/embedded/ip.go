package embedded

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/orgtype"
)

// companyOf finds the company of an address. Without a match, c is nil and reason says why.
// orgType is that of the range, "" outside of any.
func (e *Engine) companyOf(a netip.Addr) (c *resolution.Company, orgType, reason string, err error) {
	found, ok := ipaddr.LookupAddr(a)
	if !ok {
		return nil, "", classReason(ipaddr.ClassOf(a)), nil
	}
	if e.options.Listed != nil && e.listed(resolution.IP, a.String()) || e.directory == nil {
		return nil, "", NotFound, nil
	}
	r, err := e.directory.Range(found)
	switch {
	case err != nil:
		return nil, "", "", readable(err)
	case r == nil:
		return nil, "", NotFound, nil
	case orgtype.IsProvider(r.OrgType) && !e.options.IncludeProviders:
		return nil, r.OrgType, providerReason(r.OrgType), nil
	case r.Company == nil:
		return nil, r.OrgType, NoCompany, nil
	}
	return r.Company, r.OrgType, "", nil
}

// classReason and providerReason have the joined texts, so that a row allocates nothing.
func classReason(c ipaddr.Class) string {
	switch c {
	case ipaddr.Private:
		return "ip_class:private"
	case ipaddr.CGNAT:
		return "ip_class:cgnat"
	case ipaddr.Loopback:
		return "ip_class:loopback"
	case ipaddr.LinkLocal:
		return "ip_class:link_local"
	case ipaddr.Documentation:
		return "ip_class:documentation"
	case ipaddr.Benchmark:
		return "ip_class:benchmark"
	case ipaddr.Multicast:
		return "ip_class:multicast"
	case ipaddr.Reserved:
		return "ip_class:reserved"
	case ipaddr.Tunnel6to4:
		return "ip_class:tunnel_6to4"
	case ipaddr.Teredo:
		return "ip_class:teredo"
	case ipaddr.NAT64:
		return "ip_class:nat64"
	}
	return "ip_class:" + string(c)
}

func providerReason(orgType string) string {
	switch orgType {
	case orgtype.ISP:
		return "org_type:isp"
	case orgtype.Hosting:
		return "org_type:hosting"
	case orgtype.Cellular:
		return "org_type:cellular"
	case orgtype.CDN:
		return "org_type:cdn"
	case orgtype.VPN:
		return "org_type:vpn"
	}
	return orgtype.ReasonPrefix + orgType
}

func (e *Engine) ipToCompany(key string) (resolution.Answer, error) {
	a, err := parseAddr(key)
	if err != nil {
		return resolution.Answer{}, err
	}
	c, orgType, reason, err := e.companyOf(a)
	if err != nil {
		return resolution.Answer{}, err
	}
	if c == nil {
		return resolution.Answer{Reason: reason, OrgType: orgType}, nil
	}
	return resolution.Answer{Lead: &resolution.Lead{Company: c}, OrgType: orgType}, nil
}

func parseAddr(key string) (netip.Addr, error) {
	a, err := netip.ParseAddr(key)
	if err != nil || a.Zone() != "" || a.Is4In6() {
		// err would repeat the key.
		return netip.Addr{}, fmt.Errorf("%w: the key is not an IP address in canonical form", resolution.ErrInvalid)
	}
	return a, nil
}

// The match levels of deanonymization.
const (
	levelPerson  = "person"
	levelCompany = "company"
)

// companyConfidence is the confidence of a match by range that the visitor belongs to the
// company. It is high for addresses of the organization itself, lower for an unknown kind
// of range, and very low for a provider (with IncludeProviders).
func companyConfidence(orgType string) float64 {
	switch {
	case orgtype.IsProvider(orgType):
		return 0.1
	case orgType == orgtype.Unknown:
		return 0.4
	}
	return 0.7
}

// deanonymization looks for a visitor of the address, and then for the company of the
// address.
func (e *Engine) deanonymization(ctx context.Context, key string) (resolution.Answer, error) {
	a, err := parseAddr(key)
	if err != nil {
		return resolution.Answer{}, err
	}
	if found, ok := ipaddr.LookupAddr(a); ok && e.directory != nil {
		lead, err := e.visitor(ctx, found)
		if err != nil {
			return resolution.Answer{}, err
		}
		if lead != nil {
			return match(lead), nil
		}
	}
	c, orgType, reason, err := e.companyOf(a)
	if err != nil {
		return resolution.Answer{}, err
	}
	if c == nil {
		return noMatch(reason), nil
	}
	confidence := companyConfidence(orgType)
	return match(&resolution.Lead{Company: c, MatchLevel: levelCompany, Confidence: &confidence}), nil
}

// visitor returns the person of the best visit; nil without one. It prefers a visitor of whom
// the directory has more than the profile.
func (e *Engine) visitor(ctx context.Context, a netip.Addr) (*resolution.Lead, error) {
	visits, err := e.directory.Visits(ctx, a)
	if err != nil {
		return nil, unreadable(ctx, err)
	}
	if visits, err = e.showable(ctx, visits); err != nil || len(visits) == 0 {
		return nil, err
	}
	best, lead := visits[0], &resolution.Lead{NetworkURL: visits[0].NetworkURL}
	for _, v := range visits {
		p, err := e.person(ctx, v.NetworkURL)
		if err != nil {
			return nil, err
		}
		if p != nil {
			best = v
			if lead, err = e.lead(ctx, p); err != nil {
				return nil, err
			}
			break
		}
	}
	lead.MatchLevel, lead.Confidence = levelPerson, &best.Confidence
	return lead, nil
}
