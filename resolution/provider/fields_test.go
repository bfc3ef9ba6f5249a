package provider

import (
	"reflect"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution"
)

const manyFields = `p:
  base: "https://api.example"
  key: none
  ask: {network_url: "GET /{handle}", ip: "GET /{ip}", email: "GET /{email}"}
  answers: [{match: 200 d}]
  helper: [email_status]
  fields:
    email_status: d.ok
    first_name: d.first | d.name.0
    email: d.mail
    emails: {each: d.mails, email: a, type: t}
    phone: d.none
    phones: d.phones
    hashed_emails: {each: "d.hashes.*.list", email: h, type: k}
    hem_sha256: d.sha
    network_url: d.url
    last_seen_at: d.seen
    confidence: d.sure
    match_level: d.level
    org_type: d.org
    company_name: d.c.name
    company_network_url: d.c.url
    company_year_founded: d.c.year
    company_industry: d.c.industry
`

const manyValues = `{"d":{"ok":true,"first":"","name":[" Ann "],"mail":"Ann <A@X.example>","mails":[{"a":"b@x.example","t":"work"},{"a":"none"},{"a":true},{"t":"x"},{"a":"A@x.example"}],
	"phones":["+33 6 39 98 12 34","12"],"hashes":[{"list":[{"h":"0CC175B9C0F1B6A831C399E269772661","k":"MD5"}]},{"list":[{"h":"plain@x.example","k":"md5"}]}],"sha":"zz",
	"url":"HTTPS://www.LinkedIn.com/in/ann-b/?x=1","seen":"2026-01-02","sure":0.5,"level":"PERSON","org":"business","c":{"name":"X","url":"https://linkedin.com/company/x","year":"1999","industry":null}}}`

// readOf is the first request of an entry.
func readOf(e *Entry) *Request { return e.requests[e.Kinds()[0]] }

// TestRead: values pass the transforms of all other answers, and addresses are hashed where the
// operation returns hashes.
func TestRead(t *testing.T) {
	e := parsed(t, manyFields)
	reply, err := readOf(e).Read(resolution.Enrichment, 200, []byte(manyValues), nil)
	if err != nil || reply.Quarantined != 2 || !reply.Found.Matched() {
		t.Fatalf("%+v, %v", reply, err)
	}
	l := reply.Found.Lead()
	if l.FirstName != "Ann" || l.Email != "a@x.example" || !reflect.DeepEqual(l.Emails, []resolution.ContactEmail{{Email: "b@x.example", Type: "work"}, {Email: "a@x.example"}}) ||
		l.Phone != "+33 6 39 98 12 34" || !reflect.DeepEqual(l.Phones, []resolution.ContactPhone{{Phone: "+33639981234"}, {Phone: "12"}}) ||
		l.NetworkURL != "linkedin.com/in/ann-b" || l.LastSeenAt == nil || *l.Confidence != 0.5 || l.MatchLevel != "person" ||
		!reflect.DeepEqual(l.Company, &resolution.Company{Name: "X", NetworkURL: "linkedin.com/company/x", YearFounded: new(int32(1999))}) {
		t.Errorf("%+v", l)
	}
	var kinds []string
	for _, h := range l.HashedEmails {
		kinds = append(kinds, h.Type)
	}
	if got := strings.Join(kinds, " "); got != "md5 md5 sha1 sha256 md5 sha1 sha256" || l.HashedEmails[0].Email != "0cc175b9c0f1b6a831c399e269772661" {
		t.Errorf("hashes %v", l.HashedEmails)
	}
	if got := e.Helpers(resolution.NetworkURL, 200, []byte(manyValues)); len(got) != 1 || got["email_status"] != "true" {
		t.Errorf("helpers %v", got)
	}
	again, _ := readOf(e).Read(resolution.IPToCompany, 200, []byte(manyValues), reply.Found.Of)
	if again.Found.I != 1 || len(again.Found.Lead().HashedEmails) > 0 || again.Found.Of.OrgTypes[1] != "business" || again.Found.Of.Company(1) != reply.Found.Of.Company(0) {
		t.Errorf("%+v", again.Found.Lead())
	}
	if empty, err := readOf(e).Read(resolution.Enrichment, 204, nil, nil); err != nil || !empty.Found.Matched() || !empty.Found.Of.IsLastEmpty() {
		t.Errorf("%+v, %v", empty, err)
	}
}

func BenchmarkRead(b *testing.B) {
	all, err := Parse("p.yaml", []byte(manyFields))
	if err != nil {
		b.Fatal(err)
	}
	into, body := resolution.NewAnswers(), []byte(manyValues)
	b.ReportAllocs()
	for b.Loop() {
		into.Reset()
		_, _ = readOf(all["p"]).Read(resolution.Enrichment, 200, body, into)
	}
}
