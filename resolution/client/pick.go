package client

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/resolution"
)

// object is v as an object, nil when it is none.
func object(v any) map[string]any { m, _ := v.(map[string]any); return m }

// list is v as a list: a value alone is a list of one, null and absence none.
func list(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{v}
}

// text is v as text: a string without the space around it, a number as it is
// written, "" for everything else.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v)
	case json.Number:
		return v.String()
	}
	return ""
}

// first is the first of the named members that is text.
func first(m map[string]any, names ...string) string {
	for _, name := range names {
		if s := text(m[name]); s != "" {
			return s
		}
	}
	return ""
}

// number is v as a number, also one written as a string.
func number(v any) (float64, bool) {
	n, err := strconv.ParseFloat(text(v), 64)
	return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
}

// year is a year written as a number, a string or a float; nil when it is
// none.
func year(v any) *int32 {
	n, ok := number(v)
	if !ok || n != math.Trunc(n) || n < 1 || n > 9999 {
		return nil
	}
	y := int32(n)
	return &y
}

// moment is a time as services write them: RFC 3339, a date, or seconds or
// milliseconds since 1970; nil when it is none.
func moment(v any) *time.Time {
	s := text(v)
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

// picker takes leads from what services send, and counts what it had to leave.
type picker struct{ quarantined int }

// lead reads the data of an operation's answer. A company operation may have
// the company's members in the place of the lead.
func (p *picker) lead(op resolution.Operation, m map[string]any) resolution.Lead {
	if m == nil {
		return resolution.Lead{}
	}
	l := resolution.Lead{
		Contact: resolution.Contact{
			FirstName:  text(m["first_name"]),
			LastName:   text(m["last_name"]),
			FullName:   first(m, "full_name", "name"),
			Headline:   text(m["headline"]),
			JobTitle:   first(m, "job_title", "title"),
			Seniority:  text(m["seniority"]),
			Department: text(m["department"]),
			Email:      text(m["email"]),
			Address:    address(m["address"]),
			LastSeenAt: moment(m["last_seen_at"]),
		},
		NetworkURL: withoutScheme(first(m, "network_url", "profile_url")),
		MatchLevel: strings.ToLower(text(m["match_level"])),
	}
	for _, v := range list(m["emails"]) {
		if e := (resolution.ContactEmail{Email: text(v)}); e.Email != "" {
			l.Emails = append(l.Emails, e)
		} else if e := object(v); first(e, "email", "address", "value") != "" {
			l.Emails = append(l.Emails, resolution.ContactEmail{Email: first(e, "email", "address", "value"), Type: text(e["type"])})
		}
	}
	phones := append(list(m["phones"]), list(m["phone_numbers"])...)
	for _, v := range phones {
		if n := phone(v); n != "" {
			l.Phones = append(l.Phones, resolution.ContactPhone{Phone: n, Type: text(object(v)["type"])})
		}
	}
	for _, v := range append(list(m["phone"]), phones...) {
		if l.Phone == "" {
			l.Phone = phone(v)
		}
	}
	for _, v := range list(m["hashed_emails"]) {
		p.hash(&l, v)
	}
	if c := object(m["company"]); c != nil {
		l.Company = company(c)
	} else if op == resolution.IPToCompany {
		l = resolution.Lead{Company: company(m)}
	}
	if n, ok := number(m["confidence"]); ok && n >= 0 && n <= 1 {
		l.Confidence = &n
	}
	return l
}

// hash adds a hashed email. One that holds an @ is an address somebody forgot
// to hash, and is left out.
func (p *picker) hash(l *resolution.Lead, v any) {
	m := object(v)
	h := resolution.HashedEmail{Email: text(v), Type: hashType(first(m, "type", "algorithm"))}
	if m != nil {
		h.Email = first(m, "email", "hash", "value")
	}
	switch {
	case h.Email == "":
		return
	case strings.Contains(h.Email, "@"):
		p.quarantined++
		return
	}
	if h.Type == "" {
		h.Type = map[int]string{32: "md5", 40: "sha1", 64: "sha256"}[len(h.Email)]
	}
	if isHex(h.Email) {
		h.Email = strings.ToLower(h.Email)
	}
	l.HashedEmails = append(l.HashedEmails, h)
}

// hashType is a hash's type in our spelling (MD5, SHA-256); an unknown one is
// kept.
func hashType(s string) string {
	folded := strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
	switch folded {
	case "md5", "sha1", "sha256":
		return folded
	}
	return s
}

func isHex(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F')
	})
}

func phone(v any) string {
	if s := text(v); s != "" {
		return s
	}
	return first(object(v), "phone", "number", "phone_number", "value")
}

func address(v any) resolution.Address {
	m := object(v)
	return resolution.Address{Street: text(m["street"]), ZipCode: first(m, "zip_code", "zip", "postal_code"), City: text(m["city"]), State: text(m["state"])}
}

// company is a company's record, nil when nothing is in it.
func company(m map[string]any) *resolution.Company {
	c := resolution.Company{
		Name:          text(m["name"]),
		Domain:        text(m["domain"]),
		WebsiteURL:    first(m, "website_url", "website"),
		NetworkURL:    withoutScheme(text(m["network_url"])),
		Revenue:       text(m["revenue"]),
		EmployeeCount: text(m["employee_count"]),
		YearFounded:   year(m["year_founded"]),
		Address:       address(m["address"]),
		About:         text(m["about"]),
	}
	if s := text(m["industry"]); s != "" {
		c.Industry = &s
	}
	if c == (resolution.Company{}) {
		return nil
	}
	return &c
}

// withoutScheme is an address as the interface shows it.
func withoutScheme(s string) string {
	for _, scheme := range []string{"https://", "http://"} {
		if len(s) > len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
			return s[len(scheme):]
		}
	}
	return s
}

func isZero(l resolution.Lead) bool { return reflect.ValueOf(l).IsZero() }
