package order

import (
	"math"
	"strconv"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/phone"
)

// value is a column that a job may want, or accept some values of.
type value struct {
	group resolution.Group
	// of is the value as the column has it; "" without one. Of a list, it is the first.
	of   func(resolution.AnswerRow) string
	list bool
}

// values are those columns.
var values = map[string]value{
	"email":         textOf(resolution.GroupEmail, resolution.FieldEmail),
	"emails":        listOf(resolution.GroupEmails, func(a *resolution.Answers) *resolution.TypedTexts { return &a.Emails }),
	"phone":         textOf(resolution.GroupPhone, resolution.FieldPhone),
	"phone_region":  described(func(d phone.Details) string { return d.Region }),
	"phone_type":    described(func(d phone.Details) string { return d.Type }),
	"phone_valid":   described(func(d phone.Details) string { return strconv.FormatBool(d.Valid) }),
	"phones":        listOf(resolution.GroupPhones, func(a *resolution.Answers) *resolution.TypedTexts { return &a.Phones }),
	"hem_md5":       hashOf("md5"),
	"hem_sha1":      hashOf("sha1"),
	"hem_sha256":    hashOf("sha256"),
	"hashed_emails": listOf(resolution.GroupHashes, func(a *resolution.Answers) *resolution.TypedTexts { return &a.Hashes }),
	"network_url":   textOf(resolution.GroupPerson, resolution.FieldNetworkURL),
	"first_name":    textOf(resolution.GroupPerson, resolution.FieldFirstName),
	"last_name":     textOf(resolution.GroupPerson, resolution.FieldLastName),
	"full_name":     textOf(resolution.GroupPerson, resolution.FieldFullName),
	"headline":      textOf(resolution.GroupPerson, resolution.FieldHeadline),
	"job_title":     textOf(resolution.GroupPerson, resolution.FieldJobTitle),
	"seniority":     textOf(resolution.GroupPerson, resolution.FieldSeniority),
	"department":    textOf(resolution.GroupPerson, resolution.FieldDepartment),
	"last_seen_at": {group: resolution.GroupPerson, of: func(r resolution.AnswerRow) string {
		if r.I >= len(r.Of.LastSeen) || r.Of.LastSeen[r.I] == resolution.NotSeen {
			return ""
		}
		return time.UnixMicro(r.Of.LastSeen[r.I]).UTC().Format(time.RFC3339)
	}},
	"street":      textOf(resolution.GroupAddress, resolution.FieldStreet),
	"zip_code":    textOf(resolution.GroupAddress, resolution.FieldZipCode),
	"city":        textOf(resolution.GroupAddress, resolution.FieldCity),
	"state":       textOf(resolution.GroupAddress, resolution.FieldState),
	"match_level": textOf(resolution.GroupMatch, resolution.FieldMatchLevel),
	"confidence": {group: resolution.GroupMatch, of: func(r resolution.AnswerRow) string {
		if r.I >= len(r.Of.Confidences) || math.IsNaN(r.Of.Confidences[r.I]) {
			return ""
		}
		return strconv.FormatFloat(r.Of.Confidences[r.I], 'g', -1, 64)
	}},
	"org_type": {group: resolution.GroupCompany, of: func(r resolution.AnswerRow) string {
		if r.I >= len(r.Of.OrgTypes) {
			return ""
		}
		return r.Of.OrgTypes[r.I]
	}},
	"company_name":           companyOf(func(c *resolution.Company) string { return c.Name }),
	"company_domain":         companyOf(func(c *resolution.Company) string { return c.Domain }),
	"company_website_url":    companyOf(func(c *resolution.Company) string { return c.WebsiteURL }),
	"company_network_url":    companyOf(func(c *resolution.Company) string { return c.NetworkURL }),
	"company_revenue":        companyOf(func(c *resolution.Company) string { return c.Revenue }),
	"company_employee_count": companyOf(func(c *resolution.Company) string { return c.EmployeeCount }),
	"company_street":         companyOf(func(c *resolution.Company) string { return c.Address.Street }),
	"company_zip_code":       companyOf(func(c *resolution.Company) string { return c.Address.ZipCode }),
	"company_city":           companyOf(func(c *resolution.Company) string { return c.Address.City }),
	"company_state":          companyOf(func(c *resolution.Company) string { return c.Address.State }),
	"company_about":          companyOf(func(c *resolution.Company) string { return c.About }),
	"company_industry": companyOf(func(c *resolution.Company) string {
		if c.Industry == nil {
			return ""
		}
		return *c.Industry
	}),
	"company_year_founded": companyOf(func(c *resolution.Company) string {
		if c.YearFounded == nil {
			return ""
		}
		return strconv.Itoa(int(*c.YearFounded))
	}),
}

func textOf(g resolution.Group, f resolution.Field) value {
	return value{group: g, of: func(r resolution.AnswerRow) string { return string(r.Of.Texts[f].At(r.I)) }}
}

func listOf(g resolution.Group, list func(*resolution.Answers) *resolution.TypedTexts) value {
	return value{group: g, list: true, of: func(r resolution.AnswerRow) string {
		l := list(r.Of)
		from, to := l.Of(r.I)
		if from == to {
			return ""
		}
		return string(l.Texts.At(from))
	}}
}

// described is what the numbering plans say of the first number.
func described(say func(phone.Details) string) value {
	return value{group: resolution.GroupPhone, of: func(r resolution.AnswerRow) string {
		number := r.Of.Texts[resolution.FieldPhone].At(r.I)
		if len(number) == 0 {
			return ""
		}
		return say(phone.Describe(string(number)))
	}}
}

// hashOf is the first hash of a type.
func hashOf(kind string) value {
	return value{group: resolution.GroupHashes, of: func(r resolution.AnswerRow) string {
		l := &r.Of.Hashes
		for n, to := l.Of(r.I); n < to; n++ {
			if string(l.Types.At(n)) == kind {
				return string(l.Texts.At(n))
			}
		}
		return ""
	}}
}

func companyOf(say func(*resolution.Company) string) value {
	return value{group: resolution.GroupCompany, of: func(r resolution.AnswerRow) string {
		c := r.Of.Company(r.I)
		if c == nil {
			return ""
		}
		return say(c)
	}}
}
