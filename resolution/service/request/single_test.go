package request

import (
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/profile"
)

// short writes problems as "pointer code", one a line.
func short(problems []Problem) string {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.Pointer + " " + p.Code
	}
	return strings.Join(lines, "\n")
}

func TestSingle(t *testing.T) {
	const back = `"callback_url":"https://a.example/b"`
	for _, c := range []struct {
		name    string
		op      resolution.Operation
		body    string
		key     string // of a good body
		payload string // of a good body; "" for the body as it is
		want    string // the problems
	}{
		{"an address", resolution.EmailToHEM, `{"email":" Ada@Example.com",` + back + `}`, "ada@example.com", "", ""},
		{"a digest", resolution.EmailToHEM, `{"email":"0BC83CB571CD1C50BA6F3E8A78EF1346",` + back + `}`, "0bc83cb571cd1c50ba6f3e8a78ef1346", "", ""},
		{"escapes in it", resolution.EmailToHEM, `{"email":"ada\u0040example.com",` + back + `}`, "ada@example.com", "", ""},
		{"unknown members are echoed", resolution.EmailToHEM, `{"x":{"y":[1.0]},"email":"ada@example.com",` + back + `}`, "ada@example.com", "", ""},
		{"spaces are not", resolution.EmailToHEM, `{ "email" : "ada@example.com", ` + back + `}`, "ada@example.com", `{"email":"ada@example.com",` + back + `}`, ""},
		{"a profile", resolution.NetworkToHEM, `{"network_url":"https://www.network.example/in/Ada",` + back + `}`, "network.example/in/ada", "", ""},
		{"a phone's profile is shown without scheme", resolution.NetworkToPhone, `{"a":1,"network_url":"https://www.network.example/in/Ada?trk=1",` + back + `}`,
			"network.example/in/ada", `{"a":1,"network_url":"www.network.example/in/Ada?trk=1",` + back + `}`, ""},
		{"also with escapes", resolution.NetworkToPhone, `{"network_url":" HTTP:\/\/network.example\/in\/\u0061da",` + back + `}`,
			"network.example/in/ada", `{"network_url":"network.example/in/ada",` + back + `}`, ""},
		{"and without a scheme", resolution.NetworkToPhone, `{"network_url":"//network.example/in/ada",` + back + `}`,
			"network.example/in/ada", `{"network_url":"network.example/in/ada",` + back + `}`, ""},
		{"an IPv4 address", resolution.IPToCompany, `{"ip":"192.0.2.1:80"}`, "192.0.2.1", "", ""},
		{"an IPv6 address", resolution.IPToCompany, `{"ip":"2001:DB8:0::1"}`, "2001:db8::1", "", ""},
		{"what ip_to_company passes over", resolution.IPToCompany, `{"ip":"192.0.2.1","callback_url":7,"metadata":[]}`, "192.0.2.1", "", ""},
		{"enrichment without a callback", resolution.Enrichment, `{"network_url":"network.example/in/ada"}`, "network.example/in/ada", "", ""},
		{"null is missing", resolution.Enrichment, `{"network_url":"network.example/in/ada","callback_url":null,"metadata":null}`, "network.example/in/ada", "", ""},
		{"a visit", resolution.Deanonymization, `{"ip":"192.0.2.1","user_agent":"Browser/1","page_url":"https://shop.example/a?b#c","referrer":"android-app://com.example",
			"visited_at":"2026-11-20T09:18:00.5+01:00","visitor_id":"v","callback_url":"https://a.example","metadata":{}}`, "192.0.2.1",
			`{"ip":"192.0.2.1","user_agent":"Browser/1","page_url":"https://shop.example/a?b#c","referrer":"android-app://com.example","visited_at":"2026-11-20T09:18:00.5+01:00","visitor_id":"v","callback_url":"https://a.example","metadata":{}}`, ""},
		{"a visit from nowhere", resolution.Deanonymization, `{"ip":"192.0.2.1","referrer":"","page_url":"about:blank"}`, "192.0.2.1", "", ""},

		{"nothing", resolution.EmailToHEM, `{}`, "", "", "/email required\n/callback_url required"},
		{"nulls", resolution.NetworkToHEM, `{"network_url":null,"callback_url":null}`, "", "", "/network_url required\n/callback_url required"},
		{"nothing for a phone", resolution.NetworkToPhone, `{}`, "", "", "/network_url required\n/callback_url required"},
		{"nothing for a company", resolution.IPToCompany, `{}`, "", "", "/ip required"},
		{"nothing for enrichment", resolution.Enrichment, `{}`, "", "", "/network_url required"},
		{"nothing for deanonymization", resolution.Deanonymization, `{}`, "", "", "/ip required"},
		{"a name in another case", resolution.Enrichment, `{"Network_URL":"network.example/in/ada"}`, "", "", "/network_url required"},
		{"numbers", resolution.EmailToHEM, `{"email":1,"callback_url":2,"metadata":3}`, "", "",
			"/email wrong_type\n/callback_url wrong_type\n/metadata wrong_type"},
		{"an array", resolution.Enrichment, `{"network_url":["network.example/in/ada"]}`, "", "", "/network_url wrong_type"},
		{"an object", resolution.IPToCompany, `{"ip":{}}`, "", "", "/ip wrong_type"},
		{"a boolean", resolution.IPToCompany, `{"ip":true}`, "", "", "/ip wrong_type"},
		{"an empty text", resolution.IPToCompany, `{"ip":""}`, "", "", "/ip empty"},

		{"email: no address", resolution.EmailToHEM, `{"email":"ada",` + back + `}`, "", "", "/email invalid_email"},
		{"email: several", resolution.EmailToHEM, `{"email":"a@b.example, c@d.example",` + back + `}`, "", "", "/email multiple"},
		{"email: a space inside", resolution.EmailToHEM, `{"email":"a b@c.example",` + back + `}`, "", "", "/email invalid_character"},
		{"email: the digest of nothing", resolution.EmailToHEM, `{"email":"d41d8cd98f00b204e9800998ecf8427e",` + back + `}`, "", "", "/email empty"},
		{"email: a null word", resolution.EmailToHEM, `{"email":"n/a",` + back + `}`, "", "", "/email empty"},
		{"profile: a company's page", resolution.Enrichment, `{"network_url":"network.example/company/ada"}`, "", "", "/network_url not_a_profile"},
		{"profile: no address", resolution.Enrichment, `{"network_url":"ada"}`, "", "", "/network_url invalid_url"},
		{"profile: no UTF-8", resolution.Enrichment, `{"network_url":"network.example/in/%ff"}`, "", "", "/network_url invalid_utf8"},
		{"profile: person in the query", resolution.Enrichment, `{"network_url":"https://www.facebook.com/profile.php?ref=x&id=1"}`, "facebook.com/profile.php?id=1", "", ""},
		{"profile: a placeholder", resolution.Enrichment, `{"network_url":"https://www.linkedin.com/in/undefined"}`, "", "", "/network_url empty"},
		{"profile: 2048 characters", resolution.Enrichment, `{"network_url":"network.example/in/ada?ref=` + strings.Repeat("é", 2048-27) + `"}`, "network.example/in/ada", "", ""},
		{"profile: 2049 characters", resolution.Enrichment, `{"network_url":"network.example/in/ada?ref=` + strings.Repeat("é", 2049-27) + `"}`, "", "", "/network_url too_long"},
		{"ip: no address", resolution.IPToCompany, `{"ip":"256.0.0.1"}`, "", "", "/ip invalid_ip"},
		{"ip: several", resolution.IPToCompany, `{"ip":"192.0.2.1, 192.0.2.2"}`, "", "", "/ip multiple"},

		{"callback: no scheme", resolution.EmailToHEM, `{"email":"a@b.example","callback_url":"a.example/b"}`, "", "", "/callback_url invalid_url"},
		{"callback: relative to a scheme", resolution.EmailToHEM, `{"email":"a@b.example","callback_url":"//a.example/b"}`, "", "", "/callback_url invalid_url"},
		{"callback: no host", resolution.EmailToHEM, `{"email":"a@b.example","callback_url":"https:///b"}`, "", "", "/callback_url invalid_url"},
		{"callback: a port without a host", resolution.EmailToHEM, `{"email":"a@b.example","callback_url":"https://:443/b"}`, "", "", "/callback_url invalid_url"},
		{"callback: opaque", resolution.EmailToHEM, `{"email":"a@b.example","callback_url":"mailto:a@b.example"}`, "", "", "/callback_url invalid_url"},
		{"callback: a space", resolution.EmailToHEM, `{"email":"a@b.example","callback_url":"https://a.example/b c"}`, "", "", "/callback_url invalid_url"},
		{"callback: a line feed", resolution.EmailToHEM, `{"email":"a@b.example","callback_url":"https://a.example/\n"}`, "", "", "/callback_url invalid_url"},
		{"callback: a bad escape", resolution.EmailToHEM, `{"email":"a@b.example","callback_url":"https://a.example/%zz"}`, "", "", "/callback_url invalid_url"},
		{"callback: empty", resolution.EmailToHEM, `{"email":"a@b.example","callback_url":""}`, "", "", "/callback_url invalid_url"},
		{"callback: optional, still checked", resolution.Enrichment, `{"network_url":"network.example/in/ada","callback_url":"x"}`, "", "", "/callback_url invalid_url"},
		{"callback: 2048 characters", resolution.Enrichment, `{"network_url":"network.example/in/ada","callback_url":"https://a.example/` + strings.Repeat("b", 2048-18) + `"}`, "network.example/in/ada", "", ""},
		{"callback: 2049 characters", resolution.Enrichment, `{"network_url":"network.example/in/ada","callback_url":"https://a.example/` + strings.Repeat("b", 2049-18) + `"}`, "", "", "/callback_url too_long"},

		{"visit: types", resolution.Deanonymization, `{"ip":"192.0.2.1","user_agent":1,"page_url":2,"referrer":3,"visited_at":4,"visitor_id":5}`, "", "",
			"/user_agent wrong_type\n/page_url wrong_type\n/referrer wrong_type\n/visited_at wrong_type\n/visitor_id wrong_type"},
		{"visit: longest", resolution.Deanonymization, `{"ip":"192.0.2.1","user_agent":"` + strings.Repeat("é", 2048) + `","visitor_id":"` + strings.Repeat("é", 200) + `"}`, "192.0.2.1", "", ""},
		{"visit: too long", resolution.Deanonymization, `{"ip":"192.0.2.1","user_agent":"` + strings.Repeat("a", 2049) + `","visitor_id":"` + strings.Repeat("a", 201) + `",
			"page_url":"https://` + strings.Repeat("a", 2048) + `","referrer":"https://` + strings.Repeat("a", 2048) + `"}`, "", "",
			"/user_agent too_long\n/page_url too_long\n/referrer too_long\n/visitor_id too_long"},
		{"visit: addresses", resolution.Deanonymization, `{"ip":"192.0.2.1","page_url":"/a","referrer":"shop.example"}`, "", "", "/page_url invalid_url\n/referrer invalid_url"},
		{"visit: a day is no moment", resolution.Deanonymization, `{"ip":"192.0.2.1","visited_at":"2026-11-20"}`, "", "", "/visited_at invalid_time"},
		{"visit: a moment without zone", resolution.Deanonymization, `{"ip":"192.0.2.1","visited_at":"2026-11-20T09:18:00"}`, "", "", "/visited_at invalid_time"},
		{"visit: a moment that does not exist", resolution.Deanonymization, `{"ip":"192.0.2.1","visited_at":"2026-02-30T09:18:00Z"}`, "", "", "/visited_at invalid_time"},
		{"visit fields elsewhere", resolution.Enrichment, `{"network_url":"network.example/in/ada","visited_at":1}`, "network.example/in/ada", "", ""},
	} {
		call, problems := DefaultLimits().Single(c.op, parse(t, c.body), profile.DefaultRules())
		if got := short(problems); got != c.want {
			t.Errorf("%s: got problems %q, want %q", c.name, got, c.want)
			continue
		}
		if c.payload == "" && c.want == "" {
			c.payload = c.body
		}
		if call.Key != c.key || string(call.Payload) != c.payload {
			t.Errorf("%s: got key %q, payload %s; want %q, %s", c.name, call.Key, call.Payload, c.key, c.payload)
		}
	}
}

func TestSingleCallback(t *testing.T) {
	for _, c := range []struct{ op, body, want string }{
		{"enrichment", `{"network_url":"network.example/in/ada","callback_url":"https://A.example:8443/b?c=d"}`, "https://A.example:8443/b?c=d"},
		{"enrichment", `{"network_url":"network.example/in/ada","callback_url":"https:\/\/a.example"}`, "https://a.example"},
		{"enrichment", `{"network_url":"network.example/in/ada"}`, ""},
		{"ip_to_company", `{"ip":"192.0.2.1","callback_url":"https://a.example"}`, ""},
	} {
		call, problems := DefaultLimits().Single(resolution.Operation(c.op), parse(t, c.body), profile.DefaultRules())
		if problems != nil || call.CallbackURL != c.want {
			t.Errorf("%s %s: got %q, %v; want %q", c.op, c.body, call.CallbackURL, problems, c.want)
		}
	}
}

func TestMetadata(t *testing.T) {
	for _, c := range []struct{ name, metadata, want string }{
		{"scalars", `{"a":"b","c":1.5,"d":true,"e":null,"":""}`, ""},
		{"lists and objects", `{"a":[1,[{"b":{}}]],"c":{"d":{"e":[null]}}}`, ""},
		{"many keys", `{` + numbered(500) + `"a":0}`, ""},
		{"a long key and a long value", `{"` + strings.Repeat("é", 5000) + `":"` + strings.Repeat("é", 5000) + `"}`, ""},
		{"as large as it may be", `{"a":"` + strings.Repeat("b", 64<<10-len(`{"a":""}`)) + `"}`, ""},
		{"white space does not count", `{` + strings.Repeat(" ", 64<<10) + `}`, ""},
		{"one byte larger", `{"a":"` + strings.Repeat("b", 64<<10-len(`{"a":""}`)+1) + `"}`, "/metadata too_large"},
		{"no object", `"a"`, "/metadata wrong_type"},
		{"a list", `[]`, "/metadata wrong_type"},
	} {
		o := parse(t, `{"network_url":"network.example/in/ada","metadata":`+c.metadata+`}`)
		if _, problems := DefaultLimits().Single(resolution.Enrichment, o, profile.DefaultRules()); short(problems) != c.want {
			t.Errorf("%s: got %q, want %q", c.name, short(problems), c.want)
		}
	}
}

// Every word of the transforms has a sentence.
func TestReasons(t *testing.T) {
	for _, err := range []error{
		email.ErrEmpty, email.ErrInvalidUTF8, email.ErrInvalidCharacter, email.ErrMultiple, email.ErrInvalid,
		profile.ErrEmpty, profile.ErrInvalidUTF8, profile.ErrMultiple, profile.ErrInvalid, profile.ErrNotProfile,
		ipaddr.ErrEmpty, ipaddr.ErrMultiple, ipaddr.ErrInvalid,
	} {
		if reasons[err] == "" {
			t.Errorf("%v says nothing to people", err)
		}
	}
}

func TestWrongOperation(t *testing.T) {
	for _, call := range []func(){
		func() { DefaultLimits().Single(resolution.KeywordToLead, Object{}, profile.Rules{}) },
		func() { DefaultLimits().Keyword(resolution.Enrichment, Object{}, today) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a wrong operation did not panic")
				}
			}()
			call()
		}()
	}
}
