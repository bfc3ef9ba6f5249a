package embedded

import (
	"cmp"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
)

// model answers as an engine should, by reading all lines of the sources.
type model struct {
	directory                         bool
	people, companies, ranges, visits [][]string
	kept                              [][]string // of people: the last lines of each
	listed                            string
	providers                         bool
}

// The lines of people, companies, ranges and visits.
const (
	peopleHead    = "network_url,first_name,last_name,emails,phones,company_domain,last_seen_at,city"
	companiesHead = "domain,name,industry,year_founded"
	rangesHead    = "cidr,company_domain,name,org_type"
	visitsHead    = "ip,network_url,confidence"
)

// someModel draws lines of few keys, so that much of them meets.
func someModel(t *rapid.T) *model {
	some := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	lines := func(name string, line func() []string) (all [][]string) {
		for range rapid.IntRange(0, 12).Draw(t, name) {
			all = append(all, line())
		}
		return all
	}
	m := &model{
		directory: rapid.IntRange(0, 9).Draw(t, "directory") > 0,
		listed:    some("listed", "", "", "n.example/in/a", "x@y.example", "+12025550100", "8.8.8.8"),
		providers: rapid.Bool().Draw(t, "providers"),
	}
	if !m.directory {
		return m
	}
	m.people = lines("people", func() []string {
		return []string{"n.example/in/" + some("who", "a", "b", "c", "d"), some("first", "", "Ann"), some("last", "", "Last"),
			someEmail(t) + ";" + some("second", "", "x@y.example", hashOf("z@y.example", 32)),
			some("phones", "", "+12025550100", "(202) 555-0100;+12025550102", "+12025550101;+12025550102"),
			some("domain", "", "a.example", "b.example", "c.example"), some("seen", "", "2026-01-02"), some("city", "", "Here")}
	})
	m.kept = slices.DeleteFunc(slices.Clone(m.people), func(line []string) bool { return &last(m.people, line[0])[0] != &line[0] })
	m.companies = lines("companies", func() []string {
		return []string{some("company", "a", "b") + ".example", some("name", "", "A", "B"), some("industry", "", "Tea"), some("year", "", "1987")}
	})
	m.ranges = lines("ranges", func() []string {
		return []string{some("cidr", "8.8.8.0/24", "8.8.8.8/32", "8.8.0.0/16", "2001:4860::/32", "2001:4860::8/128"),
			some("owner", "", "a.example", "c.example"), some("called", "", "N"), some("type", "isp", "business", "hosting", "circus")}
	})
	m.visits = lines("visits", func() []string {
		return []string{some("ip", "8.8.8.8", "8.8.4.4", "2001:4860::8"), "n.example/in/" + some("visitor", "a", "b", "c", "d", "e"),
			"0." + strconv.Itoa(rapid.IntRange(1, 9).Draw(t, "confidence"))}
	})
	return m
}

// engine imports the lines.
func (m *model) engine(t *rapid.T, tb testing.TB) (e *Engine, closeDirectory func() error) {
	var o Options
	o.IncludeProviders = m.providers
	if m.listed != "" {
		o.Listed = func(_ resolution.Identifier, value string) bool { return value == m.listed }
	}
	if !m.directory {
		return New(nil, o), func() error { return nil }
	}
	source := func(name, head string, lines [][]string) string {
		text := head + "\n"
		for _, line := range lines {
			text += strings.Join(line, ",") + "\n"
		}
		return file(tb, name, text)
	}
	files := directory.Files{People: source("p.csv", peopleHead, m.people), IPRanges: source("r.csv", rangesHead, m.ranges), Visits: source("v.csv", visitsHead, m.visits)}
	if len(m.companies) > 0 {
		files.Companies = source("c.csv", companiesHead, m.companies)
	}
	dir := tb.TempDir()
	if _, err := directory.Import(tb.Context(), dir, files, directory.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	d, err := directory.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return New(d, o), d.Close
}

// answer is the answer to a key, and none to an empty one.
func (m *model) answer(op resolution.Operation, key string) resolution.Answer {
	switch {
	case key == "":
		return resolution.Answer{}
	case key == m.listed:
		return resolution.Answer{Reason: "not_found"}
	case key == nat64:
		key = "8.8.8.8"
	}
	switch op {
	case resolution.EmailToHEM:
		return m.hashes(key)
	case resolution.IPToCompany:
		return m.company(key)
	case resolution.Deanonymization:
		return m.visitor(key)
	}
	p := m.person(key)
	lead := &resolution.Lead{}
	switch {
	case p == nil:
		return resolution.Answer{Reason: "not_found"}
	case op == resolution.NetworkToHEM && p.HashedEmails == nil:
		return resolution.Answer{Reason: "no_email"}
	case op == resolution.NetworkToPhone && p.Phone == "":
		return resolution.Answer{Reason: "no_phone"}
	case op == resolution.NetworkToHEM:
		lead.HashedEmails, lead.NetworkURL = p.HashedEmails, p.NetworkURL
	case op == resolution.NetworkToPhone:
		lead.Phone, lead.PhoneRaw = p.Phone, p.PhoneRaw
	default:
		lead = p
	}
	return resolution.Answer{Lead: lead}
}

// last returns the last line with a key, nil without one.
func last(lines [][]string, key string) []string {
	for _, line := range slices.Backward(lines) {
		if line[0] == key {
			return line
		}
	}
	return nil
}

// list returns the distinct members of a list with ;.
func list(cell string) (all []string) {
	for member := range strings.SplitSeq(cell, ";") {
		if member != "" && !slices.Contains(all, member) {
			all = append(all, member)
		}
	}
	return all
}

func (m *model) hides(line []string) bool {
	return m.listed != "" && (line[0] == m.listed || slices.Contains(list(line[3]), m.listed) ||
		slices.Contains(list(strings.ReplaceAll(line[4], "(202) 555-0100", "+12025550100")), m.listed))
}

// person is all that is known of a person; nil if they are unknown or suppressed.
func (m *model) person(url string) *resolution.Lead {
	line := last(m.people, url)
	if line == nil || m.hides(line) {
		return nil
	}
	p := &resolution.Lead{NetworkURL: url, Contact: resolution.Contact{FirstName: line[1], LastName: line[2],
		FullName: strings.TrimSpace(line[1] + " " + line[2]), Address: resolution.Address{City: line[7]}}}
	for _, key := range list(line[3]) {
		p.HashedEmails = append(p.HashedEmails, hashed(key)...)
		if strings.Contains(key, "@") {
			p.Emails = append(p.Emails, resolution.ContactEmail{Email: key})
			p.Email = p.Emails[0].Email
		}
	}
	for i, number := range list(line[4]) {
		if number == "(202) 555-0100" {
			number, p.PhoneRaw = "+12025550100", number
		}
		if p.Phones = append(p.Phones, resolution.ContactPhone{Phone: number}); i == 0 {
			p.Phone = number
		}
	}
	if line[5] != "" {
		p.Company = m.described(line[5], "")
	}
	if at, err := time.Parse(time.DateOnly, line[6]); err == nil {
		p.LastSeenAt = &at
	}
	return p
}

// described is the company with a domain, and the name that a range has for it.
func (m *model) described(domain, name string) *resolution.Company {
	c := &resolution.Company{Domain: domain, Name: name}
	line := last(m.companies, domain)
	if line == nil {
		return c
	}
	if line[1] != "" {
		c.Name = line[1]
	}
	if line[2] != "" {
		c.Industry = &line[2]
	}
	if line[3] != "" {
		year := int32(1987)
		c.YearFounded = &year
	}
	return c
}

// hashed are the hashes of the key of an email.
func hashed(key string) []resolution.HashedEmail {
	if !strings.Contains(key, "@") {
		return []resolution.HashedEmail{{Email: key, Type: map[int]string{32: "md5", 40: "sha1", 64: "sha256"}[len(key)]}}
	}
	return []resolution.HashedEmail{{Email: hashOf(key, 32), Type: "md5"}, {Email: hashOf(key, 40), Type: "sha1"}, {Email: hashOf(key, 64), Type: "sha256"}}
}

// hashOf is a digest of an address by its length in hex.
func hashOf(address string, length int) string {
	switch length {
	case 32:
		return fmt.Sprintf("%x", md5.Sum([]byte(address)))
	case 40:
		return fmt.Sprintf("%x", sha1.Sum([]byte(address)))
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(address)))
}

// hashes are those of the first person who has the email as it is, and else of one who has it
// in the form of another profile: those are for digests alone.
func (m *model) hashes(key string) resolution.Answer {
	isAddress := strings.Contains(key, "@")
	same := func(email string) bool { return email == key || isAddress && email == hashOf(key, 64) }
	digest := func(email string) bool {
		return !isAddress && slices.ContainsFunc(hashed(email), func(h resolution.HashedEmail) bool { return h.Email == key })
	}
	respelled := func(email string) bool { return email == "a.b+c@gmail.com" && key == hashOf("ab@gmail.com", 64) }
	for _, has := range []func(email string) bool{func(email string) bool { return same(email) || digest(email) }, respelled} {
		for _, line := range m.kept {
			for _, email := range list(line[3]) {
				switch {
				case !has(email):
					continue
				case m.hides(line):
					return resolution.Answer{Reason: "not_found"}
				case isAddress:
					email = key
				}
				return resolution.Answer{Lead: &resolution.Lead{HashedEmails: hashed(email), NetworkURL: line[0]}}
			}
		}
	}
	return resolution.Answer{Lead: &resolution.Lead{HashedEmails: hashed(key)}}
}

// within are the ranges around addresses, the narrowest first.
var within = map[string][]string{
	"8.8.8.8": {"8.8.8.8/32", "8.8.8.0/24", "8.8.0.0/16"}, "8.8.8.9": {"8.8.8.0/24", "8.8.0.0/16"}, "8.8.4.4": {"8.8.0.0/16"},
	"2001:4860::8": {"2001:4860::8/128", "2001:4860::/32"}, "2001:4860::9": {"2001:4860::/32"},
}

// special are the addresses that are not looked up.
var special = map[string]string{"10.1.2.3": "ip_class:private", "::1": "ip_class:loopback"}

// nat64 is the address of 8.8.8.8 behind NAT64.
const nat64 = "64:ff9b::808:808"

// company is that of the narrowest range, of equals of the last.
func (m *model) company(ip string) resolution.Answer {
	var r []string
	for _, cidr := range within[ip] {
		if r == nil {
			r = last(m.ranges, cidr)
		}
	}
	switch {
	case special[ip] != "":
		return resolution.Answer{Reason: special[ip]}
	case r == nil:
		return resolution.Answer{Reason: "not_found"}
	case r[3] != "business" && !m.providers:
		return resolution.Answer{Reason: "org_type:" + r[3], OrgType: r[3]}
	case r[1] == "" && r[2] == "":
		return resolution.Answer{Reason: "no_company", OrgType: r[3]}
	}
	return resolution.Answer{Lead: &resolution.Lead{Company: m.described(r[1], r[2])}, OrgType: r[3]}
}

// visitor is the surest one of whom more than the profile is known, else the surest, else the
// company.
func (m *model) visitor(ip string) resolution.Answer {
	var seen [][]string
	for _, v := range m.visits {
		if line := last(m.people, v[1]); v[0] == ip && v[1] != m.listed && (line == nil || !m.hides(line)) {
			seen = append(seen, v)
		}
	}
	slices.SortFunc(seen, func(a, b []string) int { return cmp.Or(cmp.Compare(b[2], a[2]), cmp.Compare(a[1], b[1])) })
	for i, v := range append(seen, seen[:min(1, len(seen))]...) {
		lead := m.person(v[1])
		switch {
		case lead == nil && i < len(seen):
			continue
		case lead == nil:
			lead = &resolution.Lead{NetworkURL: v[1]}
		}
		confidence := float64(v[2][2]-'0') / 10
		lead.MatchLevel, lead.Confidence = "person", &confidence
		return resolution.Answer{Lead: lead}
	}
	answer := m.company(ip)
	if answer.Lead != nil {
		confidence := map[string]float64{"business": 0.7}[answer.OrgType]
		if confidence == 0 {
			confidence = 0.1
		}
		answer.Lead.MatchLevel, answer.Lead.Confidence = "company", &confidence
	}
	answer.OrgType = ""
	return answer
}
