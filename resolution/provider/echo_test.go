package provider

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
)

// profilesBy is an entry that is asked about profiles.
func profilesBy(how string) string {
	return `p:
  base: "https://api.example"
  key: none
  ` + how + `
  answers:
    - match: 200 email
    - no_match: 200 !email | 404
  fields: {email: email, network_url: url}
`
}

const (
	profilesByRef  = `batch: {size: 9, ask: "POST /bulk", each: {ref: "{ref}", u: "{network_url_https}"}, in: keys, answers: ".", id: {send: ref, back: ref}}`
	profilesByURL  = `batch: {size: 9, ask: "POST /bulk", each: {ref: "{ref}", u: "{network_url_https}"}, in: keys, answers: ".", id: {send: u, back: u}}`
	profilesInTurn = `batch: {size: 9, ask: "POST /bulk", each: {u: "{network_url_https}"}, in: keys, answers: "."}`
	profilesEchoed = `batch: {size: 9, ask: "POST /bulk", each: {ref: "{ref}", u: "{network_url_https}"}, in: keys, answers: ".", id: {send: ref, back: ref}, echo: me}`
	profilesAlone  = `ask: {network_url: "GET /{handle}"}` + "\n  echo: me"
)

// TestNames: an answer that names another question of the run is nobody's. The keys are p1, p2 and p3
// of a batch, while p7 is asked elsewhere; an element is its ref, and what it says: an email of pN is
// mN@x.example.
func TestNames(t *testing.T) {
	type element struct {
		ref     int
		of      string // whose the content is, "" for a miss
		url, me string
	}
	url := func(of string) string { return "https://www.linkedin.com/in/" + strings.ToUpper(of) + "/?trk=x" }
	full := func(ref int, of string) element { return element{ref: ref, of: of, url: url(of), me: ""} }
	bare := func(ref int, of string) element { return element{ref: ref, of: of} }
	for _, f := range []struct {
		name, entry string
		elements    []element
		want        string // of each key: the email, - for a miss, ? for an unknown call
	}{
		{"each under its own", profilesByRef, []element{full(1, "p1"), full(2, "p2"), full(3, "p3")}, "m1 m2 m3"},
		{"without addresses", profilesByRef, []element{bare(1, "p1"), bare(2, ""), bare(3, "p3")}, "m1 - m3"},
		{"turned", profilesByRef, []element{full(1, "p2"), full(2, "p3"), full(3, "p1")}, "? ? ?"},
		{"turned, some without an address", profilesByRef, []element{full(1, "p2"), bare(2, "p3"), full(3, "p1")}, "? ? ?"},
		{"turned, with a miss", profilesByRef, []element{bare(1, ""), full(2, "p3"), full(3, "p1")}, "? ? ?"},
		{"two turned", profilesByRef, []element{full(1, "p2"), full(2, "p1"), full(3, "p3")}, "? ? m3"},
		{"two turned, one without an address", profilesByRef, []element{full(1, "p2"), bare(2, "p1"), full(3, "p3")}, "? ? m3"},
		{"of another batch", profilesByRef, []element{full(1, "p7"), bare(2, "p8"), bare(3, "")}, "? ? ?"},
		{"one person under two addresses", profilesByRef, []element{full(1, "p2"), full(2, "p2"), bare(3, "p3")}, "? m2 m3"},
		{"one under an address that is asked elsewhere", profilesByRef, []element{full(1, "p7"), full(2, "p2"), bare(3, "p3")}, "? m2 m3"},
		{"under addresses that nobody asks about", profilesByRef, []element{full(1, "p91"), full(2, "p92"), bare(3, "p3")}, "m91 m92 m3"},
		{"an email of another is none", profilesByRef, []element{{ref: 1, of: "p2", url: url("p1")}, full(2, "p2"), full(3, "p3")}, "m2 m2 m3"},
		{"by an echo with ids", profilesEchoed, []element{{ref: 1, of: "p2", me: url("p2")}, {ref: 2, of: "p1", me: "p1"}, {ref: 3, of: "", me: url("p3")}}, "? ? -"},
		{"a miss with the echo of another", profilesEchoed, []element{{ref: 1, of: "", me: url("p2")}, {ref: 2, of: "p2", me: url("p2")}, {ref: 3, of: "p3"}}, "? m2 m3"},
		{"an echo that is right, and an address that is not", profilesEchoed, []element{{ref: 1, of: "p2", url: url("p2"), me: url("p1")}, full(2, "p2"), full(3, "p3")}, "? m2 m3"},
		{"by order", profilesInTurn, []element{full(1, "p1"), full(2, "p2"), full(3, "p3")}, "m1 m2 m3"},
		{"by order, out of it", profilesInTurn, []element{full(1, "p1"), full(2, "p3"), full(3, "p2")}, "? ? ?"},
		{"by order, of another batch", profilesInTurn, []element{full(1, "p7"), bare(2, "p8"), bare(3, "")}, "? ? ?"},
	} {
		var list []string
		for _, e := range f.elements {
			email := ""
			if e.of != "" {
				email = "m" + e.of[1:] + "@x.example"
			}
			list = append(list, fmt.Sprintf(`{"ref":%d,"email":%q,"url":%q,"me":%q}`, e.ref, email, e.url, e.me))
		}
		r, _ := parsed(t, profilesBy(f.entry)).Request(resolution.NetworkURL)
		run := exchange.NewAsked([]string{"linkedin.com"})
		r.asked(run, []string{"linkedin.com/in/p7", "linkedin.com/in/p8"})
		all := r.Judge(run, Response{Status: 200, Body: []byte("[" + strings.Join(list, ",") + "]")}, "linkedin.com/in/p1", "linkedin.com/in/p2", "linkedin.com/in/p3")
		if got := shownVerdicts(r, all); got != f.want {
			t.Errorf("%s: %s, want %s", f.name, got, f.want)
		}
	}
}

// shownVerdicts are verdicts in a line.
func shownVerdicts(r *Request, all []Verdict) string {
	var got []string
	for _, v := range all {
		switch v.Outcome {
		case Match:
			reply, _ := r.Read(resolution.Enrichment, v.Status, v.Body, nil)
			name, _, _ := strings.Cut(reply.Found.Lead().Email, "@")
			got = append(got, name)
		case NoMatch:
			got = append(got, "-")
		case Unknown:
			got = append(got, "?")
		default:
			got = append(got, string(v.Outcome))
		}
	}
	return strings.Join(got, " ")
}

// TestNamesAlone: the same of one key a request, whatever names it.
func TestNamesAlone(t *testing.T) {
	const email, check, ip = `ask: {email: "GET /{email}"}` + "\n  echo: me", "check: email\n  ask: {email: \"GET /{email}\"}\n  echo: me", `ask: {ip: "GET /{ip}"}` + "\n  echo: me"
	for _, f := range []struct {
		entry, key, other string
		body, want        string
	}{
		{profilesAlone, "linkedin.com/in/p1", "linkedin.com/in/p2", `{"email":"m1@x.example"}`, "m1"},
		{profilesAlone, "linkedin.com/in/p1", "linkedin.com/in/p2", `{"email":"m1@x.example","me":"P1"}`, "m1"},
		{profilesAlone, "linkedin.com/in/p1", "linkedin.com/in/p2", `{"email":"m1@x.example","me":"p2"}`, "?"},
		{profilesAlone, "linkedin.com/in/p1", "linkedin.com/in/p2", `{"email":"","me":"p2"}`, "?"},
		{profilesAlone, "linkedin.com/in/p1", "linkedin.com/in/p2", `{"email":"m1@x.example","me":"p3"}`, "m1"},
		{profilesAlone, "linkedin.com/in/p1", "linkedin.com/in/p2", `{"email":"m1@x.example","url":"http://uk.linkedin.com/in/p2"}`, "?"},
		{profilesAlone, "linkedin.com/in/ACoAAB1", "linkedin.com/in/p2", `{"email":"m1@x.example","url":"linkedin.com/in/p2"}`, "?"},
		{profilesAlone, "linkedin.com/in/ACoAAB1", "linkedin.com/in/p2", `{"email":"m1@x.example","url":"linkedin.com/in/p2","me":"ACoAAB1"}`, "m1"}, // the person's address of today
		{email, "ann@x.example", "bob@x.example", `{"email":"bob@x.example"}`, "bob"},                                                                // a value that is found
		{email, "ann@x.example", "bob@x.example", `{"email":"m1@x.example","me":" ANN@X.example"}`, "m1"},
		{email, "ann@x.example", "bob@x.example", `{"email":"m1@x.example","me":"Bob@x.example"}`, "?"},
		{email, "ann@x.example", "bob@x.example", `{"email":"m1@x.example","me":"` + emailForm("email_md5", "bob@x.example") + `"}`, "?"},
		{email, emailForm("email_md5", "ann@x.example"), "bob@x.example", `{"email":"m1@x.example","me":"ann@x.example"}`, "m1"},
		{ip, "2001:db8::7", "192.0.2.1", `{"email":"m1@x.example","me":"2001:0DB8:0::7"}`, "m1"},
		{ip, "2001:db8::7", "192.0.2.1", `{"email":"m1@x.example","me":"::ffff:192.0.2.1"}`, "?"},
	} {
		e := parsed(t, profilesBy(f.entry))
		r, _ := e.Request(e.Kinds()[0])
		run := exchange.NewAsked([]string{"linkedin.com"})
		r.asked(run, []string{f.other})
		if got := shownVerdicts(r, r.Judge(run, Response{Status: 200, Body: []byte(f.body)}, f.key)); got != f.want {
			t.Errorf("%s is answered by %s: %s, want %s", f.key, f.body, got, f.want)
		}
	}
	e := parsed(t, "p:\n  base: \"https://api.example\"\n  key: none\n  "+check+"\n  answers: [{match: 200 s}]\n  helper: [s]\n  fields: {s: s}\n")
	r, _ := e.Request(resolution.Email)
	run := exchange.NewAsked(nil)
	r.asked(run, []string{"bob@x.example"})
	if v := r.Judge(run, Response{Status: 200, Body: []byte(`{"s":"valid","me":"bob@x.example"}`)}, "ann@x.example")[0]; v.Outcome != Unknown || !v.Swapped {
		t.Errorf("a verifier that names another address: %+v", v)
	}
}

// TestSpellings: an id is the one that was sent in each spelling of what it is made of.
func TestSpellings(t *testing.T) {
	const alone, in = `batch: {size: 9, ask: "POST /bulk", in: keys, answers: ".", each: `, `, id: {send: i, back: i}}`
	md5 := emailForm("email_md5", "ann@x.example")
	for _, f := range []struct {
		id, key, back string
		is            bool
	}{
		{"{network_url_https}", "linkedin.com/in/p-1", "https://www.linkedin.com/in/p-1/", true},
		{"{network_url_https}", "linkedin.com/in/p-1", "http://LinkedIn.com/in/P-1?trk=x", true},
		{"{network_url}", "linkedin.com/in/p-1", "https://uk.linkedin.com/in/p%2D1", true},
		{"{network_url}", "network.example/in/p-1", "https://www.network.example/in/p-1/", true},
		{"{network_url}", "linkedin.com/in/p-1", "linkedin.com/in/p-2", false},
		{"profile:{network_url}", "linkedin.com/in/p-1", "profile:https://linkedin.com/in/p-1", true},
		{"{handle}", "linkedin.com/in/p-1", "P-1", true}, {"{handle}", "linkedin.com/in/p-1", "https://linkedin.com/in/p-1", true}, {"{handle}", "linkedin.com/in/p-1", "p-2", false},
		{"{email}", "ann@x.example", "Ann@X.example ", true}, {"{email}", "ann@x.example", "bob@x.example", false},
		{"{email_md5}", "ann@x.example", strings.ToUpper(md5), true}, {"{email_md5}", "ann@x.example", "ANN@x.example", true}, {"{email_md5}", md5, md5, true},
		{"{ip}", "2001:db8::7", "2001:0DB8::0007", true}, {"lookup/{ip}", "2001:db8::7", "lookup/2001:0DB8::0007", true}, {"{ip}", "192.0.2.1", "::ffff:192.0.2.1", true}, {"{ip}", "192.0.2.1", "192.0.2.2", false},
		{"{ref}", "linkedin.com/in/p-1", "1", true}, {"{ref}", "linkedin.com/in/p-1", "01", false}, {"r{ref}", "linkedin.com/in/p-1", "r1", true},
	} {
		each := fmt.Sprintf(`{i: %q, k: "{%s}"}`, f.id, map[bool]string{true: "email", false: "network_url"}[strings.Contains(f.id, "email")])
		if strings.Contains(f.id, "ip}") {
			each = fmt.Sprintf(`{i: %q}`, f.id)
		}
		if f.key == md5 {
			each = fmt.Sprintf(`{i: %q}`, f.id)
		}
		e := parsed(t, profilesBy(alone+each+in))
		r, _ := e.Request(e.Kinds()[0])
		run := exchange.NewAsked([]string{"linkedin.com", "network.example"})
		v := r.Judge(run, Response{Status: 200, Body: []byte(fmt.Sprintf(`[{"i":%q,"email":"m1@x.example"}]`, f.back))}, f.key)[0]
		if (v.Outcome == Match) != f.is {
			t.Errorf("%s of %s comes back as %s: %+v", f.id, f.key, f.back, v)
		}
	}
}

// TestTurnedByURL: ids in another spelling and another order are those of their keys.
func TestTurnedByURL(t *testing.T) {
	c := clientOf(t, profilesBy(profilesByURL), "", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `[{"u":"https://www.linkedin.com/in/p-2/","email":"m2@x.example"},{"u":"https://www.linkedin.com/in/p-1/","email":"m1@x.example"}]`)
	})
	calls := make([]resolution.Call, 2)
	for i := range calls {
		calls[i].Request = resolution.Request{Operation: resolution.Enrichment, Key: fmt.Sprintf("linkedin.com/in/p-%d", i+1)}
	}
	for i, r := range c.DoBatch(t.Context(), calls) {
		if got, want := shownResult(r), fmt.Sprintf("match m%d@x.example 1", i+1); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
