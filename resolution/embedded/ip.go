package embedded

import (
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/orgtype"
)

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
