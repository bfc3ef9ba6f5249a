package ranges

import (
	"strings"
)

// The kinds of organizations that have addresses.
const (
	Business   = "business"
	Education  = "education"
	Government = "government"
	ISP        = "isp"
	Hosting    = "hosting"
	Cellular   = "cellular"
	CDN        = "cdn"
	VPN        = "vpn"
	Unknown    = "unknown"
)

// orgTypes are the kinds by their code in a file.
var orgTypes = []string{Unknown, Business, Education, Government, ISP, Hosting, Cellular, CDN, VPN}

// IsProvider reports whether others use the addresses of this kind of organization, so that
// it is not the company of the visitor.
func IsProvider(orgType string) bool {
	switch orgType {
	case ISP, Hosting, Cellular, CDN, VPN:
		return true
	}
	return false
}

// orgTypeOf maps the words of range files and MMDBs to kinds. known is false for other words,
// which count as unknown.
//
// Sources: MaxMind GeoIP2 user_type and connection_type, IPinfo as_type, as
// their documentation lists them.
func orgTypeOf(word string) (t string, known bool) {
	word = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(word)), " ", "_")
	switch word {
	case "business", "corporate", "company", "enterprise":
		return Business, true
	case "education", "edu", "school", "college", "university", "library":
		return Education, true
	case "government", "gov", "military":
		return Government, true
	// Guests of a café or a hotel do not work for it.
	case "isp", "residential", "consumer", "cable/dsl", "cable", "dsl", "dialup", "satellite", "router", "cafe", "traveler":
		return ISP, true
	case "hosting", "datacenter", "data_center", "search_engine_spider":
		return Hosting, true
	case "cellular", "mobile":
		return Cellular, true
	case "cdn", "content_delivery_network":
		return CDN, true
	case "vpn", "consumer_privacy_network", "proxy", "tor":
		return VPN, true
	case "", "unknown", "inactive":
		return Unknown, true
	}
	return Unknown, false
}
