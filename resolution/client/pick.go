package client

import (
	"cmp"
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution"
)

// first returns the first of the named members that is text.
func first(m jsontree.Value, names ...string) string {
	for _, name := range names {
		if s := jsontree.Text(m.Get(name)); s != "" {
			return s
		}
	}
	return ""
}

// number is v as a number, also one written as a string.
func number(v jsontree.Value) (float64, bool) {
	s := jsontree.Text(v)
	if s == "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
}

// whole is v as a count: a whole number from 0, exact as a float.
func whole(v jsontree.Value) (n int64, is bool) {
	f, is := number(v)
	if !is || f < 0 || f != math.Trunc(f) || f > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// year is a year written as a number, a string or a float; nil for anything else.
func year(v jsontree.Value) *int32 {
	n, ok := number(v)
	if !ok || n != math.Trunc(n) || n < 1 || n > 9999 {
		return nil
	}
	y := int32(n)
	return &y
}

// moment is a time as services write them: RFC 3339, a date, or seconds or
// milliseconds since 1970; nil when it is none.
func moment(v jsontree.Value) *time.Time {
	s := jsontree.Text(v)
	if s == "" {
		return nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly, "2006-01-02T15:04:05", time.DateTime} {
		if at, err := time.Parse(layout, s); err == nil {
			at = at.UTC()
			return &at
		}
	}
	if n, ok := number(v); ok && n > 0 {
		if n < 1e11 {
			n *= 1000
		}
		if n < 1e14 {
			at := time.UnixMilli(int64(n)).UTC()
			return &at
		}
	}
	return nil
}

// picker reads leads from what services send, each as a match that it adds to into, and
// counts what it left out.
type picker struct {
	into        *resolution.Answers
	quarantined int
	companies   *companies
}

// texts are the members of a lead that are texts as they are, in the order of preference.
var texts = []struct {
	field resolution.Field
	names []string
}{
	{resolution.FieldFirstName, []string{"first_name"}}, {resolution.FieldLastName, []string{"last_name"}}, {resolution.FieldFullName, []string{"full_name", "name"}},
	{resolution.FieldHeadline, []string{"headline"}}, {resolution.FieldJobTitle, []string{"job_title", "title"}}, {resolution.FieldSeniority, []string{"seniority"}},
	{resolution.FieldDepartment, []string{"department"}}, {resolution.FieldEmail, []string{"email"}},
}

// lead reads the data of an answer, and returns its row. For a company operation, the
// members of the company may stand in place of the lead.
func (p *picker) lead(op resolution.Operation, m jsontree.Value) (row int) {
	a := p.into
	row = a.AddMatch()
	c := jsontree.Object(m.Get("company"))
	if c == nil && op == resolution.IPToCompany {
		p.company(m)
	} else {
		p.company(c)
		p.person(m)
	}
	for v := range jsontree.List(m.Get("hashed_emails")).All() {
		if hash, kind, is := p.hash(v); is && (c != nil || op != resolution.IPToCompany) {
			a.AddHash(hash, kind)
		}
	}
	if n, ok := number(m.Get("confidence")); ok && n >= 0 && n <= 1 {
		a.SetConfidence(n)
	}
	return row
}

// person reads what is known of a person beside hashes and company.
func (p *picker) person(m jsontree.Value) {
	a := p.into
	for _, t := range texts {
		a.SetText(t.field, first(m, t.names...))
	}
	a.SetText(resolution.FieldNetworkURL, withoutScheme(first(m, "network_url", "profile_url")))
	a.SetText(resolution.FieldMatchLevel, strings.ToLower(jsontree.Text(m.Get("match_level"))))
	home := address(m.Get("address"))
	a.SetText(resolution.FieldStreet, home.Street)
	a.SetText(resolution.FieldZipCode, home.ZipCode)
	a.SetText(resolution.FieldCity, home.City)
	a.SetText(resolution.FieldState, home.State)
	if at := moment(m.Get("last_seen_at")); at != nil {
		a.SetTime(&a.LastSeen, *at)
	}
	for v := range jsontree.List(m.Get("emails")).All() {
		if e := jsontree.Text(v); e != "" {
			a.AddTyped(&a.Emails, e, "")
		} else if m := jsontree.Object(v); first(m, "email", "address", "value") != "" {
			a.AddTyped(&a.Emails, first(m, "email", "address", "value"), jsontree.Text(m.Get("type")))
		}
	}
	number := ""
	for v := range jsontree.List(m.Get("phone")).All() {
		number = cmp.Or(number, phone(v))
	}
	for _, name := range []string{"phones", "phone_numbers"} {
		for v := range jsontree.List(m.Get(name)).All() {
			if n := phone(v); n != "" {
				a.AddTyped(&a.Phones, n, jsontree.Text(jsontree.Object(v).Get("type")))
				number = cmp.Or(number, n)
			}
		}
	}
	a.SetText(resolution.FieldPhone, number)
}

// company reads the company of the last row.
func (p *picker) company(m jsontree.Value) {
	if c := p.companies.read(m); c != nil {
		p.into.SetCompany(p.into.Companies.Table.AddShared(c))
	}
}

// hash reads a hashed email; is says whether the value is one.
func (p *picker) hash(v jsontree.Value) (hash, kind string, is bool) {
	hash = jsontree.Text(v)
	if m := jsontree.Object(v); m != nil {
		hash, kind = first(m, "email", "hash", "value"), hashType(first(m, "type", "algorithm"))
	}
	if hash == "" {
		return "", "", false
	}
	if hash, kind, is = digest(hash, kind); !is {
		p.quarantined++
	}
	return hash, kind, is
}

// digest reads a hash of a type, which is told by the length if kind is empty. It is
// none if it does not have the form of its type: an address that was not hashed, a
// word such as pending, a hash under the name of another. Nor is one of nobody.
func digest(hash, kind string) (value, ofType string, ok bool) {
	isHash := isHex(hash)
	if isHash {
		hash = strings.ToLower(hash)
	}
	kind = cmp.Or(kind, typeOfLength[len(hash)])
	if length, known := lengthOfType[kind]; known {
		ok = isHash && len(hash) == length
	} else {
		ok = kind != "" && (isHash && len(hash) >= 32 && len(hash)%2 == 0 || isBase64(hash))
	}
	return hash, kind, ok && !ofNobody[hash] && strings.Trim(hash, hash[:1]) != ""
}

// typeOfLength are the types of hashes by their length in hex.
var (
	typeOfLength = map[int]string{32: "md5", 40: "sha1", 64: "sha256"}
	lengthOfType = map[string]int{"md5": 32, "sha1": 40, "sha256": 64}
)

// ofNobody are the hashes of an empty text.
var ofNobody = map[string]bool{
	"d41d8cd98f00b204e9800998ecf8427e":                                 true,
	"da39a3ee5e6b4b0d3255bfef95601890afd80709":                         true,
	"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855": true,
}

// hashType is a hash's type in our spelling (MD5, SHA-256); an unknown one is
// kept.
func hashType(s string) string {
	switch s {
	case "md5", "sha1", "sha256":
		return s
	}
	switch folded := dashes.Replace(strings.ToLower(s)); folded {
	case "md5", "sha1", "sha256":
		return folded
	}
	return s
}

var dashes = strings.NewReplacer("-", "", "_", "", " ", "")

// isBase64 reports whether s is a hash of a usual size in base64.
func isBase64(s string) bool {
	s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	sum, err := base64.RawStdEncoding.Strict().DecodeString(s)
	return err == nil && (len(sum) == 16 || len(sum) == 20 || len(sum) == 32 || len(sum) == 64)
}

func isHex(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F')
	})
}

func phone(v jsontree.Value) string {
	if s := jsontree.Text(v); s != "" {
		return s
	}
	return first(jsontree.Object(v), "phone", "number", "phone_number", "value")
}

func address(v jsontree.Value) resolution.Address {
	m := jsontree.Object(v)
	return resolution.Address{Street: jsontree.Text(m.Get("street")), ZipCode: first(m, "zip_code", "zip", "postal_code"), City: jsontree.Text(m.Get("city")), State: jsontree.Text(m.Get("state"))}
}

// company is a company's record, nil when nothing is in it.
func company(m jsontree.Value) *resolution.Company {
	c := resolution.Company{
		Name:          jsontree.Text(m.Get("name")),
		Domain:        jsontree.Text(m.Get("domain")),
		WebsiteURL:    first(m, "website_url", "website"),
		NetworkURL:    withoutScheme(jsontree.Text(m.Get("network_url"))),
		Revenue:       jsontree.Text(m.Get("revenue")),
		EmployeeCount: jsontree.Text(m.Get("employee_count")),
		YearFounded:   year(m.Get("year_founded")),
		Address:       address(m.Get("address")),
		About:         jsontree.Text(m.Get("about")),
	}
	if s := jsontree.Text(m.Get("industry")); s != "" {
		c.Industry = &s
	}
	if c == (resolution.Company{}) {
		return nil
	}
	return c.Clone() // its texts are parts of the body
}

// withoutScheme returns an address as the interface shows it.
func withoutScheme(s string) string {
	for _, scheme := range []string{"https://", "http://"} {
		if len(s) > len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
			return s[len(scheme):]
		}
	}
	return s
}
