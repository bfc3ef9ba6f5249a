package resolutiontest

import (
	"encoding/json"
	"time"

	"github.com/leadetl/leadetl/resolution"
)

// fact is one question and its answer; want nil is no match.
type fact struct {
	name string
	ask  resolution.Request
	want *resolution.Lead
}

// The digests were computed with another program (Python's hashlib).
var (
	adaWork = hashes("ecbf749d27be2a7d75d973d53b06de39", "66923d597b72401c415c2e3a2d221510c9cffdb4",
		"92c241f7636b6e8bc502851362a9833ca66fbb0e8e1b23ac64d1bae2162e26ab")
	adaHome = hashes("dbaf0beb291c122a0d44406769eb5e92", "1f58d16b96e9c4cfdbf76d5228ff3fb708d6e1ab",
		"6454b4eac7c5720e8605acf66897f64e4eb46c783e191b33b94e74ba533df350")
	cleoHome = hashes("e1267ea835118a327a53abbe2e58f2e6", "052df5b01ef94bc17f28de72ba51e5472db22ab4",
		"363c1fc1f4a969ee3e8e1c90e6982804b7c20633f0ee2286b0d1f2dbac53cd5f")
	respelled = hashes("db2dc73c1d4510aa22758390806285fd", "33206d0237b06a5a434470e6779c3d6cb3a3e81f",
		"1525a2bd3328a0b7981b4a54ceac00dff587a5cedd0da5a1f95dd79cd892f029")
	strangers = hashes("93a122bd6053e67e85612f8c4d442cb0", "66f1ff351d93001b73340873cd226c69d712d870",
		"b8cc998238094f84460ab9657bf64dfb834fe2ebee3d617add3803a29afacb64")
)

func hashes(md5, sha1, sha256 string) []resolution.HashedEmail {
	return []resolution.HashedEmail{{Email: md5, Type: "md5"}, {Email: sha1, Type: "sha1"}, {Email: sha256, Type: "sha256"}}
}

func ptr[T any](v T) *T { return &v }

const (
	ada  = "network.example/in/ada-example"
	cleo = "network.example/in/cleo-fixture"
)

var bakery = resolution.Company{
	Name: "Sample Bakery", Domain: "bakery.example", WebsiteURL: "https://www.bakery.example",
	NetworkURL: "network.example/company/sample-bakery", Industry: ptr("Food Production"), Revenue: "$1M-$10M",
	EmployeeCount: "11-50", YearFounded: ptr(int32(1987)),
	Address: resolution.Address{Street: "1 Example Street", ZipCode: "94105", City: "San Example", State: "CA"},
	About:   "Bread and cakes that exist on paper only.",
}

var robots = resolution.Company{
	Name: "Test Robots", Domain: "robots.example", WebsiteURL: "https://robots.example",
	NetworkURL: "network.example/company/test-robots", EmployeeCount: "1-10",
	Address: resolution.Address{Street: "5 Circuit Court", ZipCode: "78701", City: "Dummy City", State: "TX"},
	About:   "A company of which little is known.",
}

var adaLead = resolution.Lead{
	Contact: resolution.Contact{
		FirstName: "Ada", LastName: "Example", FullName: "Ada Example", Headline: "Head Baker at Sample Bakery",
		JobTitle: "Head Baker", Seniority: "manager", Department: "Operations", Email: "ada.example@bakery.example",
		Emails:     []resolution.ContactEmail{{Email: "ada.example@bakery.example"}, {Email: "ada.example0@mail.example"}},
		Phones:     []resolution.ContactPhone{{Phone: "+12025550100"}},
		Address:    resolution.Address{Street: "100 Sample Street", ZipCode: "94105", City: "San Example", State: "CA"},
		LastSeenAt: ptr(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)),
	},
	Phone:        "+12025550100",
	HashedEmails: append(adaWork[:3:3], adaHome...),
	NetworkURL:   ada,
	Company:      &bakery,
}

// seen is who as a visitor.
func seen(who resolution.Lead, confidence float64) *resolution.Lead {
	who.MatchLevel, who.Confidence = "person", &confidence
	return &who
}

var facts = []fact{
	{"email_to_hem: an address of a person", resolution.Request{Operation: resolution.EmailToHEM, Key: "ada.example@bakery.example"},
		&resolution.Lead{HashedEmails: adaWork, NetworkURL: ada}},
	{"email_to_hem: the person's second address", resolution.Request{Operation: resolution.EmailToHEM, Key: "ada.example0@mail.example"},
		&resolution.Lead{HashedEmails: adaHome, NetworkURL: ada}},
	{"email_to_hem: an unknown address", resolution.Request{Operation: resolution.EmailToHEM, Key: "nobody@nowhere.example"},
		&resolution.Lead{HashedEmails: strangers}},
	{"email_to_hem: md5 of a known address", resolution.Request{Operation: resolution.EmailToHEM, Key: adaHome[0].Email},
		&resolution.Lead{HashedEmails: adaHome, NetworkURL: ada}},
	{"email_to_hem: sha1 of a known address", resolution.Request{Operation: resolution.EmailToHEM, Key: adaHome[1].Email},
		&resolution.Lead{HashedEmails: adaHome, NetworkURL: ada}},
	{"email_to_hem: sha256 of a known address", resolution.Request{Operation: resolution.EmailToHEM, Key: adaHome[2].Email},
		&resolution.Lead{HashedEmails: adaHome, NetworkURL: ada}},
	{"email_to_hem: sha256 of the uid2 form", // of cf@gmail.com
		resolution.Request{Operation: resolution.EmailToHEM, Key: "1525a2bd3328a0b7981b4a54ceac00dff587a5cedd0da5a1f95dd79cd892f029"},
		&resolution.Lead{HashedEmails: cleoHome, NetworkURL: cleo}},
	{"email_to_hem: an address that is another's uid2 form", resolution.Request{Operation: resolution.EmailToHEM, Key: "cf@gmail.com"},
		&resolution.Lead{HashedEmails: respelled}},
	{"email_to_hem: an unknown digest", resolution.Request{Operation: resolution.EmailToHEM, Key: "0123456789abcdef0123456789abcdef"},
		&resolution.Lead{HashedEmails: []resolution.HashedEmail{{Email: "0123456789abcdef0123456789abcdef", Type: "md5"}}}},

	{"network_to_hem: every email of the person", resolution.Request{Operation: resolution.NetworkToHEM, Key: ada},
		&resolution.Lead{HashedEmails: adaLead.HashedEmails, NetworkURL: ada}},
	{"network_to_hem: only a digest is known", resolution.Request{Operation: resolution.NetworkToHEM, Key: "network.example/in/mia-fixture"},
		&resolution.Lead{NetworkURL: "network.example/in/mia-fixture", HashedEmails: []resolution.HashedEmail{
			{Email: "42ae150a6199b61a7b4afb052bf3e89afab78ef8ea620dc1ad53951710c515dc", Type: "sha256"}}}},
	{"network_to_hem: no email", resolution.Request{Operation: resolution.NetworkToHEM, Key: "network.example/in/gia-dummy"}, nil},
	{"network_to_hem: a stranger", resolution.Request{Operation: resolution.NetworkToHEM, Key: "network.example/in/a-stranger"}, nil},

	{"network_to_phone: the first of two", resolution.Request{Operation: resolution.NetworkToPhone, Key: cleo},
		&resolution.Lead{Phone: "+12025550102"}},
	{"network_to_phone: written without country", resolution.Request{Operation: resolution.NetworkToPhone, Key: "network.example/in/ned-instance"},
		&resolution.Lead{Phone: "+12025550113"}},
	{"network_to_phone: no phone", resolution.Request{Operation: resolution.NetworkToPhone, Key: "network.example/in/dan-instance"}, nil},
	{"network_to_phone: a stranger", resolution.Request{Operation: resolution.NetworkToPhone, Key: "network.example/in/a-stranger"}, nil},

	{"ip_to_company: in a network", resolution.Request{Operation: resolution.IPToCompany, Key: "192.31.196.5"},
		&resolution.Lead{Company: &bakery}},
	{"ip_to_company: at the end of a range", resolution.Request{Operation: resolution.IPToCompany, Key: "192.31.196.139"},
		&resolution.Lead{Company: &robots}},
	{"ip_to_company: NAT64 of an address", resolution.Request{Operation: resolution.IPToCompany, Key: "64:ff9b::c01f:c405"},
		&resolution.Lead{Company: &bakery}},
	{"ip_to_company: a name without a record", resolution.Request{Operation: resolution.IPToCompany, Key: "192.31.196.200"},
		&resolution.Lead{Company: &resolution.Company{Name: "Unlisted Workshop"}}},
	{"ip_to_company: an access provider", resolution.Request{Operation: resolution.IPToCompany, Key: "192.52.193.10"}, nil},
	{"ip_to_company: a private address", resolution.Request{Operation: resolution.IPToCompany, Key: "10.1.2.3"}, nil},
	{"ip_to_company: between ranges", resolution.Request{Operation: resolution.IPToCompany, Key: "192.31.196.150"}, nil},

	{"enrichment: everything", resolution.Request{Operation: resolution.Enrichment, Key: ada}, &adaLead},
	{"enrichment: a stranger", resolution.Request{Operation: resolution.Enrichment, Key: "network.example/in/a-stranger"}, nil},

	{"deanonymization: of two visitors the surer", resolution.Request{Operation: resolution.Deanonymization, Key: "192.31.196.5"},
		seen(adaLead, 0.92)},
	{"deanonymization: a visitor of whom only the profile is known", resolution.Request{Operation: resolution.Deanonymization, Key: "192.175.48.77"},
		seen(resolution.Lead{NetworkURL: "network.example/in/stranger-unlisted"}, 0.7)},
	{"deanonymization: an access provider", resolution.Request{Operation: resolution.Deanonymization, Key: "192.52.193.60"}, nil},
	{"deanonymization: a private address", resolution.Request{Operation: resolution.Deanonymization, Key: "10.1.2.3"}, nil},
}

// text shows a lead with what its pointers point to.
func text(l resolution.Lead) string {
	b, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}
