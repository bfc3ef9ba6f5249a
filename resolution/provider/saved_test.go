package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution/exchange"
	"github.com/leadetl/leadetl/transforms/profile"
)

// exchange is a documented answer as it would be received.
func (e *Entry) exchange(d Documented) Exchange {
	r, _ := e.Request(d.kind)
	x := Exchange{Request: r, Keys: d.keys, Response: d.answer, Verdicts: d.judged(r)}
	x.Message, _ = r.Message(d.keys...)
	return x
}

// canary has letters that no made-up word has.
const canary = "Qxz.Quux@qxz-quux.com"

// canaries adds members that no entry names to all objects of a JSON value.
func canaries(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = canaries(member)
		}
		if len(v) > 0 {
			v["qxz quux"] = map[string]any{canary: canary, "n": 4155552671, "list": []any{canary, []any{canary}}}
		}
	case []any:
		for i, item := range v {
			v[i] = canaries(item)
		}
	}
	return v
}

// TestAnonymous: each documented answer of the shipped entries means the same without its values, whatever else
// is in the answer, and nothing is left of a person, of what no entry names, or of headers.
func TestAnonymous(t *testing.T) {
	n := 0
	for name, e := range Shipped() {
		file := "shipped/testdata/" + name + ".yaml"
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		answers, err := ParseDocumented(file, noDocumentation.ReplaceAll(content, []byte("8.20.30.")))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range answers {
			x := e.exchange(d)
			var body any
			if x.Request.batch == nil || x.Request.batch.id == nil || x.Request.batch.id.back != nil { // an object of ids has no other members
				if json.Unmarshal(d.answer.Body, &body) == nil {
					d.answer.Body, _ = json.Marshal(canaries(body))
					x = e.exchange(d)
				}
			}
			x.Response.Header.Set("X-Secret", canary)
			text, differences, err := x.Anonymous("it", profile.DefaultRules().Hosts)
			if err != nil || len(differences) > 0 {
				t.Errorf("%s: %s: %v, %v\n%s", name, d.Name, err, differences, text)
				continue
			}
			n++
			stored(t, x.Request, d.keys, x.Verdicts)
			for _, word := range append([]string{"qxz", "quux", "halden", "northwind", "4155552671"}, d.keys...) {
				if shows(string(text), word) {
					t.Errorf("%s: %s: %s is in\n%s", name, d.Name, word, text)
				}
			}
		}
	}
	if n < 120 {
		t.Errorf("%d answers", n)
	}
}

// noDocumentation are IPs reserved for documentation: what is made up has such ones, too, by chance the same.
var noDocumentation = regexp.MustCompile(`\b(192\.0\.2|198\.51\.100|203\.0\.113)\.`)

// shows reports whether a text has a word that nothing longer ends.
func shows(text, word string) bool {
	return regexp.MustCompile(`(?i)` + regexp.QuoteMeta(word) + `\b`).MatchString(text)
}

// stored checks that what is stored of an answer can be saved, too.
func stored(t *testing.T, r *Request, keys []string, all []Verdict) (n int) {
	t.Helper()
	for i, v := range all {
		if v.Outcome != Match && v.Outcome != NoMatch {
			continue
		}
		n++
		text, differences, err := r.Stored(keys[i], v.Status, v.Body, v.Outcome, v.Credits).Anonymous("it", profile.DefaultRules().Hosts)
		if err != nil || len(differences) > 0 || shows(string(text), keys[i]) || strings.Contains(string(text), canary) {
			t.Errorf("%s of %s: %v, %v\n%s", v.Body, r.Name(), err, differences, text)
		}
	}
	return n
}

// TestAnonymousOfBatch: of a batch the element of a key is stored, and is saved as an answer about this key alone.
func TestAnonymousOfBatch(t *testing.T) {
	keys := []string{"ann@northwind.com", "bob@northwind.com"}
	for batch, body := range map[string]string{
		byPosition: `{"out": [{"email": null}, {"email": "bob@northwind.com", "s": 1}]}`,
		byRef:      `{"out": [{"r": "2", "email": "bob@northwind.com"}, {"r": 1, "email": ""}]}`,
		byName:     `{"out": {"bob@northwind.com": {"email": "bob@northwind.com"}, "ann@northwind.com": {"email": null}}}`,
		byLists:    `{"matched": [{"r": 2, "email": "bob@northwind.com"}], "not_matched": ["1"]}`,
		byEmails:   `{"matched": [{"me": "bob@northwind.com", "email": "bob@northwind.com"}], "not_matched": ["ann@northwind.com"]}`,
		byStatus:   `{"out": [{"s": 404}, {"s": 200, "email": "bob@northwind.com"}]}`,
		asPerson:   `{"out": [null, {"email": "bob@northwind.com"}]}`,
	} {
		r, _ := parsed(t, batchOf(batch)).Request("email")
		all := r.Judge(exchange.NewAsked(nil), Response{Status: 200, Body: []byte(body)}, keys...)
		if n := stored(t, r, keys, all); n != 2 {
			t.Errorf("%s: %d answers are stored, %v", batch, n, all)
		}
	}
	r, _ := parsed(t, batchOf(strings.Replace(byPosition, "out", "out.0.all", 1))).Request("email")
	if _, _, err := r.Stored(keys[0], 200, []byte(`{"email": "a@b.example"}`), Match, nil).Anonymous("it", nil); err == nil {
		t.Error("it is saved without its place")
	}
}

// entryOfForms reads values of all kinds.
const entryOfForms = `p:
  base: "https://api.example"
  key: query key
  ask: {email: {send: "POST /find?who={email}", json: {q: ["{email}"]}}}
  limit: header X-Left
  cost: header X-Spent
  price: {match: 3}
  answers:
    - match: 200 found=true person.id note~"of today"
    - no_match: 200 !person
  helper: [email_status]
  fields:
    email_status: person.check
    first_name: person.first
    full_name: person.name
    email: person.mail
    emails: {each: person.lists.*, email: a, type: t}
    phone: person.phone
    phones: person.phones
    network_url: person.profile
    company_domain: person.site
    company_website_url: person.link
    company_employee_count: person.size
    company_year_founded: person.year
    hem_sha256: person.hash
    last_seen_at: person.seen
    zip_code: person.zip
`

// TestAnonymousForms: what is saved has the form of what came, and one value is one wherever it stands.
func TestAnonymousForms(t *testing.T) {
	entries, err := Parse("p.yaml", []byte(entryOfForms))
	if err != nil {
		t.Fatal(err)
	}
	e := entries["p"]
	r, _ := e.Request("email")
	sum := sha256.Sum256([]byte("mira.halden@northwind.com"))
	x := Exchange{Request: r, Keys: []string{"mira.halden@northwind.com"}, Response: Response{Status: 200, Header: http.Header{
		"X-Left": {"12"}, "X-Spent": {"2"}, "X-Request-Id": {"mira"}, "Set-Cookie": {"northwind"},
	}, Body: []byte(`{"found": true, "note": "an answer of today for Mira, {not} a stub", "unread": {"mail": "mira.halden@northwind.com"}, "person": {
		"id": 9007199254740993, "check": "valid", "first": "Mira", "name": "MIRA HALDEN", "mail": "Mira.Halden@Northwind.com",
		"lists": [[{"a": "mira.halden@northwind.com", "t": "work"}, {"a": "mh@northwind.com", "t": "Halden"}]],
		"phone": 14155552671, "phones": ["+1 (415) 555-2671", "+44 20 7031 3000"],
		"profile": "https://www.linkedin.com/in/mira-halden?mail=mira.halden%40northwind.com",
		"site": "northwind.com", "link": "https://northwind.com/people/mira%20halden", "size": "1,001-5,000", "year": 1999,
		"hash": "` + hex.EncodeToString(sum[:]) + `", "seen": "2025-11-30T10:11:12Z", "zip": "04101", "born": "1980-01-01"}}`),
	}}
	x.Message, _ = r.Message(x.Keys...)
	x.Verdicts = r.Judge(exchange.NewAsked(nil), x.Response, x.Keys...)
	text, differences, err := x.Anonymous("a \"quoted\" name", profile.DefaultRules().Hosts)
	if err != nil || len(differences) > 0 {
		t.Fatalf("%v, %v\n%s", err, differences, text)
	}
	all, err := ParseDocumented("p.answers.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Found  bool
		Note   string
		Unread any
		Person struct {
			ID, Phone                                                            json.Number
			Check, First, Name, Mail, Profile, Site, Link, Size, Hash, Seen, Zip string
			Born                                                                 any
			Year                                                                 int
			Lists                                                                [][]struct{ A, T string }
			Phones                                                               []string
		}
	}
	if err := json.Unmarshal(all[0].answer.Body, &body); err != nil {
		t.Fatal(err)
	}
	p, mail := body.Person, all[0].keys[0]
	hash := sha256.Sum256([]byte(mail))
	first, last, _ := strings.Cut(p.Name, " ")
	domain := mail[strings.Index(mail, "@")+1:]
	for i, f := range []struct{ got, want any }{
		{body.Found, true}, {body.Note, "of today"}, {body.Unread, nil}, {p.Born, nil}, {p.Check, "valid"}, {p.Size, "1,001-5,000"}, {p.Year, 1999},
		{strings.ToUpper(p.First), first}, {strings.ToLower(p.Mail), mail}, {p.Lists[0][0].A, mail}, {p.Lists[0][0].T, "work"}, {strings.ToUpper(p.Lists[0][1].T), last},
		{mail, strings.ToLower(first+"."+last) + "@" + p.Site}, {p.Site, domain}, {p.Link, "https://" + domain + "/" + p.Link[len("https://"+domain+"/"):]},
		{strings.HasSuffix(p.Link, "/"+strings.ToLower(first+"%20"+last)), true}, {p.Hash, hex.EncodeToString(hash[:])}, {p.Seen, "2024-01-15T00:00:00Z"},
		{p.Profile, "https://www.linkedin.com/in/" + strings.ToLower(first+"-"+last) + "?" + p.Profile[strings.Index(p.Profile, "?")+1:]},
		{strings.HasSuffix(p.Profile, "="+percentEncoded(mail)), true}, {len(p.ID), 16}, {p.Zip[0], byte('0')}, {len(p.Zip), 5},
		{"+" + string(p.Phone), canonicalPhone(p.Phones[0])}, {strings.HasPrefix(p.Phones[0], "+1 (202) 555-01"), true}, {strings.HasPrefix(p.Phones[1], "+44 20 7946 0"), true},
		{all[0].request, "POST /find?who=" + percentEncoded(mail)}, {all[0].sent, `{"q":["` + mail + `"]}`}, {len(all[0].answer.Header), 2}, {all[0].want[0].credits, int64(2)},
	} {
		if !reflect.DeepEqual(f.got, f.want) {
			t.Errorf("%d: %v, want %v", i, f.got, f.want)
		}
	}
	for _, word := range []string{"halden", "northwind", "9007199254740993", "4155552671", "7031 3000", "10:11", "cookie", hex.EncodeToString(sum[:])} {
		if strings.Contains(strings.ToLower(string(text)), word) {
			t.Errorf("%s is in\n%s", word, text)
		}
	}
}
