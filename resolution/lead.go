package resolution

import (
	"iter"
	"math"
	"time"
	"unsafe"
)

// HashedEmail is one hash of one email address.
type HashedEmail struct {
	// Email is the hash, lower-case hex, never an address: the interface
	// calls the field email.
	Email string `json:"email"`
	// Type is the algorithm: md5, sha1 or sha256.
	Type string `json:"type"`
}

// ContactEmail is one email address of a person; Type says of what kind
// ("work", "personal"), empty when unknown.
type ContactEmail struct {
	Email string `json:"email"`
	Type  string `json:"type,omitempty"`
}

// ContactPhone is one phone number of a person, + and digits (E.164), of a service as it is
// sent; Type says of what kind ("mobile", "work"), empty when unknown.
type ContactPhone struct {
	Phone string `json:"phone"`
	Type  string `json:"type,omitempty"`
}

// Address is a postal address; any member may be empty.
type Address struct {
	Street  string `json:"street,omitempty"`
	ZipCode string `json:"zip_code,omitempty"`
	City    string `json:"city,omitempty"`
	State   string `json:"state,omitempty"`
}

// Contact is what is known of a person beyond hashes, phone and company.
type Contact struct {
	FirstName  string         `json:"first_name,omitempty"`
	LastName   string         `json:"last_name,omitempty"`
	FullName   string         `json:"full_name,omitempty"`
	Headline   string         `json:"headline,omitempty"`
	JobTitle   string         `json:"job_title,omitempty"`
	Seniority  string         `json:"seniority,omitempty"`
	Department string         `json:"department,omitempty"`
	Email      string         `json:"email,omitempty"` // the first of Emails
	Emails     []ContactEmail `json:"emails,omitempty"`
	Phones     []ContactPhone `json:"phones,omitempty"`
	Address    Address        `json:"address,omitzero"`
	LastSeenAt *time.Time     `json:"last_seen_at,omitempty"` // UTC
}

// Lead is the data of one answer. An operation fills the members of its own
// shape and leaves the rest zero.
type Lead struct {
	Contact
	// PhoneRaw is Phone as the source has it; "" if it is the same, and in answers of services.
	PhoneRaw string `json:"-"`
	// Phone is + and digits (E.164), of a service as it is sent.
	Phone string `json:"phone,omitempty"`
	// HashedEmails holds, per email, md5, sha1 and sha256 in that order, of
	// the address in profile plain.
	HashedEmails []HashedEmail `json:"hashed_emails,omitempty"`
	// NetworkURL is the profile address without scheme: the person's key.
	NetworkURL string   `json:"network_url,omitempty"`
	Company    *Company `json:"company,omitempty"`
	// MatchLevel is "person" or "company"; deanonymization only.
	MatchLevel string `json:"match_level,omitempty"`
	// Confidence is from 0 to 1; deanonymization only.
	Confidence *float64 `json:"confidence,omitempty"`
}

// Field is a text that an answer has at most one of.
type Field int

// The fields of Answers.Texts. The first is in no column of a person, so that 0 may stand for none.
const (
	FieldLeadID Field = iota
	FieldLeadType
	FieldMatchLevel
	FieldNetworkURL
	FieldEmail    // the first plain address
	FieldPhone    // the first number
	FieldPhoneRaw // the same as the source has it, "" if that is FieldPhone
	// FieldPhoneDetails are the details of the first number as package phone writes them. Only
	// reference data that were described by the rules of this program have them.
	FieldPhoneDetails
	FieldFullName
	// The fields from here on are those of reference data, as they are there.
	FieldFirstName
	FieldLastName
	FieldHeadline
	FieldJobTitle
	FieldSeniority
	FieldDepartment
	FieldStreet
	FieldZipCode
	FieldCity
	FieldState
	Fields
)

// Texts are the texts of a lead by their fields; nil for FieldLeadID, FieldLeadType and FieldPhoneDetails.
func (l *Lead) Texts() [Fields]*string {
	return [...]*string{
		FieldMatchLevel: &l.MatchLevel, FieldNetworkURL: &l.NetworkURL, FieldEmail: &l.Email, FieldPhone: &l.Phone, FieldPhoneRaw: &l.PhoneRaw,
		FieldFullName: &l.FullName, FieldFirstName: &l.FirstName, FieldLastName: &l.LastName, FieldHeadline: &l.Headline,
		FieldJobTitle: &l.JobTitle, FieldSeniority: &l.Seniority, FieldDepartment: &l.Department,
		FieldStreet: &l.Address.Street, FieldZipCode: &l.Address.ZipCode, FieldCity: &l.Address.City, FieldState: &l.Address.State,
	}
}

// AddLead adds the answer that is a lead; none without a match.
func (a *Answers) AddLead(l *Lead) {
	if l == nil {
		a.AddMiss("")
		return
	}
	a.AddMatch()
	for f, text := range l.Texts() {
		if text != nil {
			a.SetText(Field(f), *text)
		}
	}
	for _, e := range l.Emails {
		a.AddTyped(&a.Emails, e.Email, e.Type)
	}
	for _, p := range l.Phones {
		a.AddTyped(&a.Phones, p.Phone, p.Type)
	}
	for _, h := range l.HashedEmails {
		a.AddHash(h.Email, h.Type)
	}
	if l.LastSeenAt != nil {
		a.SetTime(&a.LastSeen, *l.LastSeenAt)
	}
	if l.Confidence != nil {
		a.SetConfidence(*l.Confidence)
	}
	if l.Company != nil {
		a.SetCompany(a.Companies.Table.AddShared(l.Company))
	}
}

// AddFound adds a lead that a search has found.
func (a *Answers) AddFound(l *FoundLead) {
	a.AddLead(&l.Lead)
	a.SetText(FieldLeadID, l.LeadID)
	a.SetText(FieldLeadType, l.LeadType)
	for _, k := range l.MatchedKeywords {
		a.AddKeyword(k)
	}
	if !l.SearchedAt.IsZero() {
		a.SetTime(&a.SearchedAt, l.SearchedAt)
	}
}

// Lead is an answer as a lead; nil without a match. It has a company if the table of
// companies is a CompanyList.
func (a *Answers) Lead(i int) *Lead {
	if !a.Matched[i] {
		return nil
	}
	l := &Lead{Company: a.Company(i)}
	for f, text := range l.Texts() {
		if text != nil {
			*text = string(a.Texts[f].At(i))
		}
	}
	for text, kind := range a.Emails.all(i) {
		l.Emails = append(l.Emails, ContactEmail{Email: text, Type: kind})
	}
	for text, kind := range a.Phones.all(i) {
		l.Phones = append(l.Phones, ContactPhone{Phone: text, Type: kind})
	}
	for text, kind := range a.Hashes.all(i) {
		l.HashedEmails = append(l.HashedEmails, HashedEmail{Email: text, Type: kind})
	}
	if at := timeAt(a.LastSeen, i); !at.IsZero() {
		l.LastSeenAt = &at
	}
	if i < len(a.Confidences) && !math.IsNaN(a.Confidences[i]) {
		c := a.Confidences[i]
		l.Confidence = &c
	}
	return l
}

// Found is an answer as a lead that a search has found.
func (a *Answers) Found(i int) FoundLead {
	l := FoundLead{
		LeadID: string(a.Texts[FieldLeadID].At(i)), LeadType: string(a.Texts[FieldLeadType].At(i)),
		MatchedKeywords: []string{}, SearchedAt: timeAt(a.SearchedAt, i), Lead: *a.Lead(i),
	}
	for n, to := a.Keywords.Of(i); n < to; n++ {
		l.MatchedKeywords = append(l.MatchedKeywords, string(a.Keywords.Texts.At(n)))
	}
	return l
}

// all yields the texts of list i with their types.
func (l *TypedTexts) all(i int) iter.Seq2[string, string] {
	return func(yield func(text, kind string) bool) {
		for n, to := l.Of(i); n < to && yield(string(l.Texts.At(n)), string(l.Types.At(n))); n++ {
		}
	}
}

// timeAt is a time of a column, zero if it is unknown.
func timeAt(column []int64, i int) time.Time {
	if i >= len(column) || column[i] == NotSeen {
		return time.Time{}
	}
	return time.UnixMicro(column[i]).UTC()
}

// bytesOf is a text without a copy of it, to be copied.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }
