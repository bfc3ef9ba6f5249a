package orgtype

import (
	"fmt"
	"strings"
	"testing"
)

// TestOrgTypes: a word of a provider's vocabulary is its kind, and an unknown word is a
// provider of its own.
func TestOrgTypes(t *testing.T) {
	own := NewVocabulary(map[string]string{"Satellite Farm": Business, "isp": Education})
	known := NewVocabulary(nil)
	for _, f := range []struct {
		kinds       Vocabulary
		words, want string // words are separated by ;
	}{
		// Source: IP2Location, usage types; IP2Proxy, proxy types.
		{known, "COM;ORG", Business},
		{known, "GOV;MIL", Government},
		{known, "EDU;LIB", Education},
		{known, "ISP;isp/edu;EDU/ISP", ISP},
		{known, "MOB", Cellular},
		{known, "ISP/MOB", ISP},
		{known, "DCH;SES", Hosting},
		{known, "CDN", CDN},
		{known, "VPN;TOR;PUB;WEB;RES;CPN;EPN", VPN},
		{known, "RSV", "rsv"},
		// Source: AbuseIPDB, usage types.
		{known, "Commercial;Organization", Business},
		{known, "Government;Military", Government},
		{known, "University/College/School;Library", Education},
		{known, "Content Delivery Network", CDN},
		{known, "Fixed Line ISP", ISP},
		{known, "Mobile ISP", Cellular},
		{known, "Data Center/Web Hosting/Transit;Data Center / Web Hosting / Transit;Search Engine Spider", Hosting},
		{known, "Reserved", "reserved"},
		// Source: MaxMind GeoIP2, user_type and connection_type.
		{known, "business;Corporate", Business},
		{known, "college;school;library", Education},
		{known, "government;military", Government},
		{known, "cafe;dialup;residential;router;traveler;Cable/DSL;Satellite", ISP},
		{known, "hosting;search_engine_spider", Hosting},
		{known, "cellular;Cellular", Cellular},
		{known, "content_delivery_network", CDN},
		{known, "consumer_privacy_network", VPN},
		// Source: IPinfo, DB-IP, ipregistry, ipapi.is, PeeringDB.
		{known, "isp;consumer;Cable/DSL/ISP;NSP", ISP},
		{known, "education;Educational/Research", Education},
		{known, "banking;corporate;Enterprise;Non-Profit", Business},
		{known, "Content", Hosting},
		{known, "inactive", Unknown},
		{known, "relay;proxy;tor", VPN},

		{known, "telecom;Telecommunications", ISP},
		{known, "carrier;5G", Cellular},
		{known, "cloud;Data-Center;data  center", Hosting},
		{known, "nonprofit;NON PROFIT;bank", Business},
		{known, ";  ;-;N/A;null;unknown;UNKNOWN;--", Unknown},

		{known, "Circus;  CIRCUS ", "circus"},
		{known, "Circus  Troupe;circus_troupe;circus-troupe", "circus_troupe"},
		{known, "business/circus", "business/circus"},
		{known, "unknown/business", "unknown/business"},
		{known, "zirkus_größe", "zirkus_größe"},
		{known, "circus/hosting", Hosting},

		{known, "jane@mail.example;+44 20 7946 0958;192.31.196.1;123;a,b;=cmd();a\"b;<b>;a\nb\x01;\xff;1234a;jane.doe;+cmd;" + strings.Repeat("x", 41), Other},

		{own, "satellite farm;SATELLITE_FARM;satellite-farm/edu", Business},
		{own, "ISP", Education},
		{own, "DCH", Hosting},
	} {
		for word := range strings.SplitSeq(f.words, ";") {
			if got := f.kinds.Kind(word); got != f.want {
				t.Errorf("%q is %q, want %q", word, got, f.want)
			}
		}
	}
	for _, f := range []struct {
		kind     string
		provider bool
	}{{Business, false}, {Education, false}, {Government, false}, {Unknown, false}, {ISP, true}, {VPN, true}, {"circus", true}, {Other, true}, {"", true}} {
		if IsProvider(f.kind) != f.provider {
			t.Errorf("%q: provider %v, want %v", f.kind, !f.provider, f.provider)
		}
	}
}

// TestFlags: fields that say yes or no name a kind of provider, whatever they are called.
func TestFlags(t *testing.T) {
	known := NewVocabulary(nil)
	for _, f := range []struct{ fields, want string }{
		// Source: IPinfo privacy and core data; MaxMind Anonymous IP and Enterprise; ipregistry; ipapi.is; ipdata; IP2Proxy.
		{"vpn proxy tor relay is_anonymous is_anonymous_vpn is_public_proxy is_residential_proxy is_tor_exit_node is_anonymous_proxy", VPN},
		{"is_vpn is_proxy is_tor is_tor_exit is_relay is_icloud_relay isVpn isTorExitNode IS_VPN VPN", VPN},
		{"hosting is_hosting is_hosting_provider is_cloud_provider is_datacenter is_crawler isHosting", Hosting},
		{"mobile is_mobile cellular", Cellular},
		{"is_satellite is_satellite_provider", ISP},
		{"cdn is_cdn", CDN},
		{"is_anycast is_legitimate_proxy is_business business is_in_european_union name domain is_ is_abuser", ""},
	} {
		for field := range strings.FieldsSeq(f.fields) {
			if got := known.Flag(field); got != f.want {
				t.Errorf("%s is %q, want %q", field, got, f.want)
			}
		}
	}
	if got := NewVocabulary(map[string]string{"hosting": Business}).Flag("is_hosting"); got != "" {
		t.Errorf("hosting, called a business, is %q", got)
	}
}

// TestWordsAreAVocabulary: what has more words than a vocabulary is no column of kinds, and is
// not repeated.
func TestWordsAreAVocabulary(t *testing.T) {
	counts := Counts{}
	for _, word := range []string{"circus", ISP, "zoo", "zoo", Unknown} {
		counts.Add(word)
	}
	if got := fmt.Sprint(counts.List()); got != "[{zoo 2} {circus 1}]" {
		t.Error(got)
	}
	for i := range 200 {
		counts.Add(fmt.Sprintf("jane %d", i))
	}
	if got := fmt.Sprint(counts.List()); got != "[{other 203}]" {
		t.Error(got)
	}
}
