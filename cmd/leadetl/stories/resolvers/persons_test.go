//go:build unix

package resolvers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

const finderEntry = `finder:
  base: "%s"
  key: none
  ask: {person: "GET /find?domain={company_domain}&first={first_name}&last={last_name}"}
  answers: [{match: 200 data.email}, {no_match: "200 !data.email"}]
  fields: {email: data.email}
checker:
  base: "%[1]s"
  key: none
  check: email
  ask: {email: "GET /check?email={email}"}
  answers: [{match: 200 result}]
  helper: [email_status]
  fields: {email_status: result}
`

// TestPersons: a finder is asked by name and company, from the input or from what was found before it: once
// for all spellings, never again, and about no row that lacks a value.
func TestPersons(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	finder := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.RequestURI())
		mu.Unlock()
		q := r.URL.Query()
		switch first := q.Get("first"); {
		case q.Get("email") != "":
			fmt.Fprint(w, `{"result":"valid"}`)
		case first == "nobody":
			fmt.Fprint(w, `{"data":{"email":null}}`)
		default:
			fmt.Fprintf(w, `{"data":{"email":"%s@%s"}}`, first, q.Get("domain"))
		}
	}))
	t.Cleanup(finder.Close)
	calls := func() (all []string) {
		mu.Lock()
		defer mu.Unlock()
		all, asked = asked, nil
		slices.Sort(all)
		return all
	}
	x := newOrder(t, strings.Join([]string{
		"network_url,First,Last,Website", ",Ada,Example,https://www.Bakery.example/", ", ADA ,EXAMPLE,bakery.example", "network.example/in/person-1,,,",
		"network.example/in/person-2,Ada,Example,bakery.example", "network.example/in/person-2,Eve,Other,bakery.example", ",Zoe,,bakery.example", ",,,", ",Bo,Second,forge.example", ",Nobody,X,B\u00fccher.example",
	}, "\n")+"\n")
	x.job = strings.Replace(x.job, "[email, phone]", "[email]", 1) + "from: {first_name: First, last_name: Last, company_domain: Website}\n"
	x.write("people.csv", "network_url,first_name,last_name,company_domain\nnetwork.example/in/person-1,Cy,Known,forge.example\n")
	clitest.Run(t, "directory", "import", "--directory", x.path("own"), "--people", x.path("people.csv"), "--network-hosts", "network.example")
	x.write("providers.yaml", fmt.Sprintf(finderEntry, finder.URL))
	x.resolvers = []string{"directory: ./own", "finder", "checker: {accept: {email_status: [valid]}}"}
	plan := clitest.Run(t, x.args("plan")...)
	if !strings.Contains(plan, "at most") || len(calls()) > 0 {
		t.Errorf("the plan\n%s", plan)
	}
	x.run(cli.ExitDone, "--max-rejects", "2")
	want := []string{
		"/check?email=ada%40bakery.example", "/check?email=bo%40forge.example", "/check?email=cy%40forge.example", "/check?email=eve%40bakery.example",
		"/find?domain=bakery.example&first=ada&last=example", "/find?domain=bakery.example&first=eve&last=other",
		"/find?domain=forge.example&first=bo&last=second", "/find?domain=forge.example&first=cy&last=known", "/find?domain=xn--bcher-kva.example&first=nobody&last=x",
	}
	if got := calls(); !slices.Equal(got, want) {
		t.Errorf("asked %q\nwant  %q", got, want)
	}
	d := clitest.ReadDataset(t, x.path("out"))
	const ada = `{"company_domain":"bakery.example","first_name":"ada","last_name":"example"}`
	for i, row := range [][4]string{
		{ada, "matched", "", "ada@bakery.example"}, {ada, "matched", "", "ada@bakery.example"}, {"network.example/in/person-1", "matched", "", "cy@forge.example"},
		{"network.example/in/person-2", "matched", "", "ada@bakery.example"}, {"network.example/in/person-2", "matched", "", "eve@bakery.example"},
		{"", "rejected", "incomplete", ""}, {"", "rejected", "empty", ""}, {`{"company_domain":"forge.example","first_name":"bo","last_name":"second"}`, "matched", "", "bo@forge.example"}, {`{"company_domain":"xn--bcher-kva.example","first_name":"nobody","last_name":"x"}`, "no_match", "no_match", ""},
	} {
		for c, column := range []string{"key", "outcome", "reason", "email"} {
			if got := d.Rows[i][d.Column(t, column)]; got != row[c] && !(row[c] == "" && got == "null") {
				t.Errorf("row %d: %s is %q, want %q", i+1, column, got, row[c])
			}
		}
	}
	clitest.Run(t, "verify", x.path("out"))
	x.write("listed.csv", "ada@bakery.example\n")
	x.run(cli.ExitDone, "--max-rejects", "2", "--out", x.path("listed"), "--suppress", x.path("listed.csv"))
	if n := clitest.ReadDataset(t, x.path("listed")).Count(t, "reason", "suppressed_answer:email"); n != 3 || len(calls()) > 0 {
		t.Errorf("%d rows are suppressed, want 3; asked again %q", n, calls())
	}
	clitest.Run(t, "answers", "forget", "--state", x.path("state"), "--file", x.path("listed.csv"))
	x.run(cli.ExitDone, "--max-rejects", "2", "--out", x.path("again"))
	if got := calls(); !slices.Equal(got, []string{want[0], want[4]}) {
		t.Errorf("after it was forgotten, asked %q", got)
	}
	x.write("requests.csv", "network_url,First,Last,Website\n,\"ADA \",Example,www.bakery.example\n,,,\nnetwork.example/in/person-2,,,\n")
	forget := []string{"answers", "forget", "--state", x.path("state"), "--network-hosts", "network.example", "--in", x.path("requests.csv")}
	if said := x.executes(cli.ExitRejects, append(forget, "--from", "first_name=First,last_name=Last,company_domain=Website")...); !strings.Contains(said, "2 identifiers forgotten") || !strings.Contains(said, "row 2: empty") {
		t.Errorf("forgotten by name: %s", said)
	}
	x.executes(cli.ExitUsage, append(forget, "--from", "name=First")...)
	x.run(cli.ExitDone, "--max-rejects", "2", "--out", x.path("anew"))
	if got := calls(); !slices.Equal(got, []string{want[0], want[4]}) {
		t.Errorf("after it was forgotten by name, asked %q", got)
	}
	x.write("persons.csv", "FULL_NAME,company_domain,email\nADA  example,https://bakery.example/,\nZoe,,zoe@forge.example\n")
	x.run(cli.ExitDone, "--max-rejects", "2", "--out", x.path("unnamed"), "--suppress", x.path("persons.csv"))
	if n := clitest.ReadDataset(t, x.path("unnamed")).Count(t, "reason", "suppressed:person"); n != 3 || len(calls()) > 0 {
		t.Errorf("%d rows are suppressed by name, want 3", n)
	}
	if said := x.executes(cli.ExitDone, "find", "--file", x.path("persons.csv"), "--state", x.path("state"), x.path("anew"), x.path("unnamed")); !strings.Contains(said, "1 of 2 lines found, in 2 of 3 places") {
		t.Errorf("found by name: %s", said)
	}
	if said := x.executes(cli.ExitDone, "answers", "forget", "--state", x.path("state"), "--file", x.path("persons.csv")); !strings.Contains(said, "1 identifier forgotten") {
		t.Errorf("forgotten by a list of persons: %s", said)
	}
	if said := x.executes(cli.ExitDone, "find", "--file", x.path("persons.csv"), "--state", x.path("state")); !strings.Contains(said, "0 of 2 lines found") {
		t.Errorf("found after it was forgotten: %s", said)
	}
	x.run(cli.ExitDone, "--max-rejects", "2", "--out", x.path("bought"))
	if got := calls(); !slices.Equal(got, want[4:5]) {
		t.Errorf("after it was forgotten by a list, asked %q", got)
	}
	x.write("in.csv", "First,Last,Website\nAda,Example,bakery.example\n") // no column of addresses
	x.run(cli.ExitDone, "--out", x.path("names"))
	if n := clitest.ReadDataset(t, x.path("names")).Count(t, "key", ada); n != 1 || len(calls()) > 0 {
		t.Errorf("%d rows by names alone, want 1", n)
	}
}

// TestFoundEmail: a provider that knows emails alone is asked about the email that a finder has found, once for all
// spellings, and not about one that is listed.
func TestFoundEmail(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	who := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case q.Get("first") == "nobody":
			fmt.Fprint(w, `{"data":{"email":null}}`)
		case q.Get("first") != "":
			fmt.Fprintf(w, `{"data":{"email":"%s@%s"}}`, strings.ToUpper(q.Get("first")), q.Get("domain"))
		default:
			mu.Lock()
			asked = append(asked, q.Get("email"))
			mu.Unlock()
			fmt.Fprint(w, `{"phone": "+1 415 555 2671"}`)
		}
	}))
	t.Cleanup(who.Close)
	x := newOrder(t, "First,Last,Website\nAda,Example,bakery.example\nADA,Example,bakery.example\nAda,Other,bakery.example\nEve,Listed,bakery.example\nNobody,X,bakery.example\n")
	x.job += "from: {first_name: First, last_name: Last, company_domain: Website}\n"
	x.write("listed.csv", "eve@bakery.example\n")
	x.write("providers.yaml", fmt.Sprintf(finderEntry, who.URL)+fmt.Sprintf(`contacts:
  base: "%s"
  key: none
  ask: {email: "GET /who?email={email}"}
  answers: [{match: 200 phone}]
  fields: {phone: phone}
`, who.URL))
	x.resolvers = []string{"contacts", "finder"}
	if said := x.run(cli.ExitUsage); !strings.Contains(said, "resolver contacts is asked by email, which no resolver before it finds") {
		t.Error(said)
	}
	x.resolvers = []string{"finder", "checker: {ask: email}"}
	if said := x.run(cli.ExitUsage); !strings.Contains(said, "ask is for resolvers that find values; provider checker verifies them") {
		t.Error(said)
	}
	x.resolvers = []string{"finder", "contacts"}
	x.run(cli.ExitDone, "--suppress", x.path("listed.csv"))
	if len(asked) != 1 || asked[0] != "ada@bakery.example" {
		t.Errorf("asked about %q", asked)
	}
	clitest.Run(t, "verify", x.path("out"))
	d := clitest.ReadDataset(t, x.path("out"))
	if n := d.Count(t, "phone_answered_by", "contacts"); n != 3 || d.Count(t, "outcome", "suppressed") != 1 || d.Count(t, "outcome", "no_match") != 1 {
		t.Errorf("%d phones of\n%s", n, d.Rows)
	}
	x.job = strings.Replace(x.job, "from: {first_name: First, last_name: Last, company_domain: Website}", "from: {email: Work}", 1)
	x.resolvers = []string{"contacts"}
	x.write("in.csv", "Work\nAda@Bakery.example\nbo@forge.example\nEve <EVE@bakery.example>\n- \nBo@Forge.example\n") // emails are all that is known
	if plan := clitest.Run(t, x.args("plan", "--out", x.path("emails"), "--suppress", x.path("listed.csv"))...); !strings.Contains(plan, "calls        1\n") || len(asked) != 1 {
		t.Errorf("the plan\n%s", plan)
	}
	x.run(cli.ExitDone, "--out", x.path("emails"), "--suppress", x.path("listed.csv"), "--max-rejects", "1")
	d = clitest.ReadDataset(t, x.path("emails"))
	if n := d.Count(t, "reason", "suppressed:person"); n != 1 || d.Count(t, "key", `{"email":"bo@forge.example"}`) != 2 || d.Count(t, "outcome", "matched") != 3 || !slices.Equal(asked, []string{"ada@bakery.example", "bo@forge.example"}) {
		t.Errorf("asked about %q for\n%s", asked, d.Rows)
	}
	clitest.Run(t, "verify", x.path("emails"))
	asked = asked[:1]
	x.job, x.resolvers = "operation: email_to_hem\n", []string{"contacts"} // it is one question
	x.write("in.csv", "email\nAda@Bakery.example\n")
	x.run(cli.ExitDone, "--out", x.path("hems"))
	if len(asked) != 1 {
		t.Errorf("asked again about %q", asked)
	}
}

// TestWrongPersons: what is wrong with values of a person is said before any call.
func TestWrongPersons(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, resolver, operation, says string }{
		{"{first_name: First, company_doman: Site}", "finder", "enrichment", `from has "company_doman"; it can have email, first_name, last_name, full_name, company_domain, company_name; did you mean "company_domain"?`},
		{"{first_name: First, last_name: Last, company_domain: Sit}", "finder", "enrichment", `has no column "Sit"`},
		{"{first_name: First, last_name: Last}", "finder", "enrichment", "resolver finder is asked by company_domain, which no resolver before it finds"},
		{"{first_name: First, last_name: Last, company_domain: Site, company_name: Site}", "finder", "enrichment", "from names company_name, which no resolver is asked by"},
		{"{first_name: First, last_name: Last, company_domain: Site}", "finder: {ask: persons}", "enrichment", `ask is "persons"; it can be person or email`},
		{"{first_name: First, last_name: Last, company_domain: Site}", "checker: {ask: person, accept: {email_status: [valid]}}", "enrichment", "ask is for resolvers that find values; provider checker verifies them"},
		{"{first_name: First, last_name: Last, company_domain: Site}", "finder: {ask: email}", "enrichment", "provider finder cannot be asked by email; it can be asked about person"},
		{"First", "finder", "enrichment", "from has the columns with values of a person"},
		{"{first_name: First, last_name: Last, company_domain: Site}", "finder", "ip_to_company", "from is for operations on profiles; the operation is ip_to_company"},
	} {
		x := newOrder(t, "network_url,ip,First,Last,Site\n,,a,b,c.example\n")
		x.job = "operation: " + c.operation + "\nfrom: " + c.from + "\n"
		if strings.Contains(c.resolver, "accept") {
			x.job += "want: [email]\n"
		}
		x.write("providers.yaml", fmt.Sprintf(finderEntry, "http://127.0.0.1:1"))
		x.resolvers = []string{c.resolver}
		if said := x.run(cli.ExitUsage); !strings.Contains(said, c.says) {
			t.Errorf("%s: it says\n%s\nwant %s", c.from, said, c.says)
		}
	}
}
