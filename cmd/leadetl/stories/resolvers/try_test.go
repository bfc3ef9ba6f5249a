//go:build unix

package resolvers

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// tried is a provider as its page says: it knows all but those whose names begin with no, answers those that begin
// with odd otherwise than its page says, and bills each of the others.
type tried struct {
	testing.TB
	server *httptest.Server
	mu     sync.Mutex
	billed []string
	hangs  chan struct{} // nil answers at once
	left   string        // the answer of the account
}

// quux is in members that no entry names, and in headers.
const quux = "Qxz.Quux@qxz-quux.com"

const stubEntry = `stub:
  base: "%s"
  key: header X-Api-Key
  ask: {email: "GET /v1/people?email={email}"}
  price: {match: 2, no_match: 1}
  cost: header X-Spent
  answers:
    - match: 200 person.id
    - no_match: 200 !person
    - refused: 401
  fields:
    full_name: person.name
    email: person.emails.0.address
    phone: person.phone
    company_name: person.employer.nme
`

func newStub(t testing.TB, start func(http.Handler) *httptest.Server) *tried {
	s := &tried{TB: t}
	s.server = start(s)
	t.Cleanup(s.server.Close)
	return s
}

func (s *tried) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	email := r.URL.Query().Get("email")
	w.Header().Set("X-Secret", quux)
	w.Header().Set("X-RateLimit-Remaining", "7")
	if r.Header.Get("X-Api-Key") != clitest.RemoteKey {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.URL.Path == "/v1/account" {
		_, _ = w.Write([]byte(s.left)) // whoever asks may be gone
		return
	}
	s.mu.Lock()
	s.billed = append(s.billed, email)
	hangs := s.hangs
	s.mu.Unlock()
	if hangs != nil {
		hangs <- struct{}{}
		<-r.Context().Done()
		return
	}
	var body any = map[string]any{"person": map[string]any{
		"id": 71, "name": "Halden Thwaite", "emails": []any{map[string]any{"address": strings.ToUpper(email), "seen": quux}}, "phone": 14155552671,
		"employer": map[string]any{"name": "Northwind", quux: 1}, "note": quux,
	}, "request": quux}
	switch {
	case strings.HasPrefix(email, "no"):
		w.Header().Set("X-Spent", "1")
		body = map[string]any{"person": nil}
	case strings.HasPrefix(email, "odd"):
		body = map[string]any{"queued": true, "note": quux}
	default:
		w.Header().Set("X-Spent", "2")
	}
	_ = json.NewEncoder(w).Encode(body) // whoever asks may be gone
}

// asked is what was billed.
func (s *tried) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.billed, " ")
}

// try are the arguments of a trial of the stub.
func (x *order) try(s *tried, more ...string) []string {
	x.write("stub.yaml", fmt.Sprintf(stubEntry, s.server.URL))
	return append([]string{"provider", "try", "stub", "--providers", x.path("stub.yaml"), "--in", x.path("in.csv"), "--key-file", x.path("key"), "--state", x.path("state")}, more...)
}

// TestTry tries an entry: what is asked, answered, read, paid and not read is shown, and nothing else of what the
// entry does not read. Nothing is paid for twice, neither by another trial nor by a run.
func TestTry(t *testing.T) {
	t.Parallel()
	x := newOrder(t, "name,email\nA,ada.kvist@bakery.com\nB,ada.kvist@bakery.com\nC,\nD,nobody@bakery.com\nE,eva@bakery.com\n")
	s := newStub(t, httptest.NewServer)
	said := x.executes(cli.ExitDone, x.try(s, "--max-calls", "2", "--save", x.path("tried"))...)
	for _, line := range []string{
		"2 keys of kind email, 4 credits at most", "GET /v1/people?email=ada.kvist%40bakery.com, with the key in header X-Api-Key", "limit X-Ratelimit-Remaining: 7", "limit X-Spent: 2",
		"rule match: 200 person.id (" + x.path("stub.yaml") + ":8)", "full_name person.name Halden Thwaite", "phone person.phone 14155552671", "email person.emails.0.address ada.kvist@bakery.com",
		`company_name person.employer.nme – person.employer has no nme; did you mean "name"?`, "credits 2, as the answer says",
		"not read person.emails.*.seen, person.employer.…, person.note, request", "1 matched, 1 no_match; paid now: 3 credits",
	} {
		if !strings.Contains(strings.Join(strings.Fields(said), " "), line) {
			t.Errorf("does not say %q:\n%s", line, said)
		}
	}
	saved, err := os.ReadFile(x.path("tried/stub.answers.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"qxz", "quux", clitest.RemoteKey} {
		if strings.Contains(strings.ToLower(said+string(saved)), strings.ToLower(secret)) {
			t.Errorf("%s is in\n%s\n%s", secret, said, saved)
		}
	}
	for _, value := range []string{"kvist", "halden", "thwaite", "bakery", "4155552671", "ratelimit"} {
		if strings.Contains(strings.ToLower(string(saved)), value) {
			t.Errorf("%s is in\n%s", value, saved)
		}
	}
	if said := x.executes(cli.ExitDone, "provider", "check", x.path("tried/stub.yaml")); !strings.Contains(said, "documented answers: 2, all read as they say") {
		t.Error(said)
	}
	again := x.executes(cli.ExitDone, x.try(s, "--max-calls", "2")...)
	if !strings.Contains(again, "not asked again") || !strings.Contains(again, "Halden Thwaite") || !strings.Contains(again, "paid now: 0 credits") {
		t.Error(again)
	}
	x.job, x.resolvers = "operation: email_to_hem\n", []string{"stub: {key_file: ./key}"}
	x.write("providers.yaml", fmt.Sprintf(stubEntry, s.server.URL))
	x.executes(cli.ExitDone, x.args("run")...)
	if got, want := s.asked(), "ada.kvist@bakery.com nobody@bakery.com eva@bakery.com"; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
}

// TestTryPerson: an entry that is asked by person takes the columns of these names, and a run that takes the
// same values asks nothing.
func TestTryPerson(t *testing.T) {
	t.Parallel()
	x := newOrder(t, "First_Name,last_name,company_domain\nAda, KVIST,https://www.bakery.com/\nada,Kvist,bakery.com\nEva,,bakery.com\nNobody,X,bakery.com\n")
	s := newStub(t, httptest.NewServer)
	args := x.try(s, "--save", x.path("tried"))
	entry, err := os.ReadFile(x.path("stub.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	x.write("providers.yaml", strings.Replace(string(entry), `email: "GET /v1/people?email={email}"`, `person: "GET /v1/people?email={first_name}.{last_name}@{company_domain}"`, 1))
	x.write("stub.yaml", strings.Replace(string(entry), `email: "GET /v1/people?email={email}"`, `person: "GET /v1/people?email={first_name}.{last_name}@{company_domain}"`, 1))
	if said := x.executes(cli.ExitDone, args...); !strings.Contains(said, "2 keys of kind person") || !strings.Contains(said, "1 matched, 1 no_match; paid now: 3 credits") {
		t.Error(said)
	}
	if said := x.executes(cli.ExitDone, "provider", "check", x.path("tried/stub.yaml")); !strings.Contains(said, "documented answers: 2, all read as they say") {
		t.Error(said)
	}
	x.job = "operation: enrichment\nwant: [email]\nfrom: {first_name: First_Name, last_name: last_name, company_domain: company_domain}\nmax_rejects: 50%\n"
	x.resolvers = []string{"stub"}
	x.run(cli.ExitDone)
	if asked := s.asked(); asked != "ada.kvist@bakery.com nobody.x@bakery.com" {
		t.Errorf("asked %s", asked)
	}
	x.write("in.csv", "Given,Last_Name,Website\nADA,kvist,bakery.com\n")
	if said := x.executes(cli.ExitUsage, args...); !strings.Contains(said, "stub is asked by company_domain, first_name, last_name; the list has no column company_domain, first_name; say which it has: --from company_domain=COLUMN,first_name=COLUMN,last_name=COLUMN") {
		t.Error(said)
	}
	if said := x.executes(cli.ExitDone, append(args, "--from", "first_name=Given,company_domain=Website")...); !strings.Contains(said, "not asked again") {
		t.Error(said)
	}
	if said := x.executes(cli.ExitUsage, append(args, "--from", "first_nme=Given")...); !strings.Contains(said, `--from has first_nme; did you mean "first_name"?`) {
		t.Error(said)
	}
	if said := x.executes(cli.ExitUsage, append(args, "--from", "first_name=Name,company_domain=Website")...); !strings.Contains(said, "no column Name;") {
		t.Error(said)
	}
	x.write("stub.yaml", string(entry))
	if said := x.executes(cli.ExitUsage, append(args, "--from", "first_name=Given")...); !strings.Contains(said, "--from is for entries that are asked by person; stub is asked about email") {
		t.Error(said)
	}
	x.write("in.csv", "email\nada.kvist@bakery.com\n")
	if said := x.executes(cli.ExitUsage, args...); !strings.Contains(said, "--save: "+x.path("tried/stub.yaml")+", by which the answers are checked, is not as "+x.path("stub.yaml")+": remove it, or save beside that") {
		t.Error(said)
	}
}

// TestTryStops: what is wrong is said before a call, a wrong key stops, a budget holds, and an answer that fits no
// rule says which rule lacks what.
func TestTryStops(t *testing.T) {
	t.Parallel()
	x := newOrder(t, "email\nodd@bakery.com\nada@bakery.com\n")
	x.write("two.csv", "a,b\nx,y\n")
	x.write("wrong", "another")
	s := newStub(t, httptest.NewServer)
	for _, f := range []struct {
		code int
		args []string
		says string
	}{
		{cli.ExitUsage, []string{"--max-calls", "0"}, "--max-calls is 0; it must be at least 1"},
		{cli.ExitUsage, []string{"--key-file", x.path("none")}, "none does not exist; check its name; --key-file names its file"},
		{cli.ExitUsage, []string{"--save", x.path("key")}, "--save: "},
		{cli.ExitUsage, []string{"--providers", x.path("two.csv")}, "two.csv:1: "},
		{cli.ExitUsage, []string{"--in", x.path("none.csv")}, "none.csv"},
		{cli.ExitBudget, []string{"--max-credits", "1"}, "--max-credits"},
		{cli.ExitUsage, []string{"--key-file", x.path("wrong")}, "401"},
	} {
		if said := x.executes(f.code, x.try(s, f.args...)...); !strings.Contains(said, f.says) {
			t.Errorf("%q does not say %s:\n%s", f.args, f.says, said)
		}
	}
	if said := x.executes(cli.ExitUsage, "provider", "try", "stub", "--in", x.path("two.csv"), "--providers", x.path("stub.yaml")); !strings.Contains(said, "the list has no column email, which stub is asked about; name the column of the keys with --id-column") {
		t.Error(said)
	}
	if said := x.executes(cli.ExitUsage, "provider", "try", "stbu", "--in", "-", "--providers", x.path("stub.yaml")); !strings.Contains(said, `there is no provider stbu; did you mean "stub"?`) {
		t.Error(said)
	}
	if s.asked() != "" {
		t.Errorf("asked %s", s.asked())
	}
	said := x.executes(cli.ExitRejects, x.try(s)...)
	for _, line := range []string{
		"stub.yaml:8: match: 200 person.id: person.id does not hold: the answer has no person; it has note, queued", "stub.yaml:9: no_match: 200 !person: !person does not hold: the answer has no person",
		"write a rule for it under answers", "not read note, queued", "leadetl answers list --unknown",
	} {
		if !strings.Contains(strings.Join(strings.Fields(said), " "), line) {
			t.Errorf("does not say %q:\n%s", line, said)
		}
	}
}

// TestTryTLS: a provider with a certificate of its own.
func TestTryTLS(t *testing.T) {
	t.Parallel()
	x := newOrder(t, "email\nada@bakery.com\n")
	s := newStub(t, httptest.NewTLSServer)
	x.write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})))
	if said := x.executes(cli.ExitDone, x.try(s, "--ca-file", x.path("ca.pem"))...); !strings.Contains(said, "1 matched") {
		t.Error(said)
	}
}

// TestTryKilled: a trial that is killed after the provider has billed and before the answer is there leaves an
// unknown call, which is not sent again.
func TestTryKilled(t *testing.T) {
	t.Parallel()
	x := newOrder(t, "email\nada@bakery.com\n")
	s := newStub(t, httptest.NewServer)
	s.hangs = make(chan struct{})
	p := clitest.StartProgram(x, x.try(s)...)
	<-s.hangs
	_ = p.Process.Kill()
	<-p.Gone
	s.mu.Lock()
	s.hangs = nil
	s.mu.Unlock()
	if said := x.executes(cli.ExitRejects, x.try(s)...); !strings.Contains(said, "an earlier call about it is unknown") {
		t.Error(said)
	}
	if said := x.executes(cli.ExitDone, "answers", "list", "--unknown", "--state", x.path("state")); !strings.Contains(said, "unknown") {
		t.Error(said)
	}
	if got := s.asked(); got != "ada@bakery.com" {
		t.Errorf("asked %s", got)
	}
}

// TestBalance: what is left is said by plan, doctor, run and try, beside the budget and before the first call, and a
// wrong path names the line of the entry. A run without calls does not ask.
func TestBalance(t *testing.T) {
	t.Parallel()
	for _, f := range []struct {
		name, entry, left        string
		max                      string
		plan, doctor, run, tried string
		doctorCode               int
	}{
		{"enough", "credits: data.left", `{"data": {"left": 500}}`, "100", "balance stub: 500 credits, enough", "credits of stub ok 500", "", "balance: 500 credits", cli.ExitDone},
		{"less than the budget", "credits: data.left", `{"data": {"left": "5.5"}}`, "100", "balance stub: 5 credits, enough", "credits of stub ok 5, less than max_credits 100", "the balance is less than the budget, or than one answer costs: the run may stop before it; buy credits\" resolver=stub left=5 max_credits=100", "balance: 5 credits", cli.ExitDone},
		{"too few", "credits: data.left", `{"data": {"left": 1}}`, "100", "balance stub: 1 credit, up to 3 too few: the run may stop", "credits of stub ok 1, less than", "resolver=stub left=1", "balance: 1 credits", cli.ExitDone},
		{"none", "credits: data.left", `{"data": {"left": 0}}`, "100", "balance stub: 0 credits, up to 4 too few", "credits of stub failed", "resolver=stub left=0", "balance: 0 credits", cli.ExitBudget},
		{"another unit", "credits: data.left, counts: searches", `{"data": {"left": 1}}`, "100", "balance stub: 1 searches, not compared: credits are counted otherwise", "credits of stub ok 1 searches, not compared", "", "balance: 1 searches", cli.ExitDone},
		{"a wrong path", "credits: data.lft", `{"data": {"left": 9}}`, "100", `the balance of stub (`, "credits of stub -", `credits: data.lft: data has no lft; did you mean \"left\"?`, `balance not known: the balance of stub (`, cli.ExitDone},
		{"a wrong key", "credits: data.left", `{"data": {"left": -1}}`, "100", "is no number from 0; some providers say so that the key is wrong", "credits of stub -", "is no number from 0", "is no number from 0", cli.ExitDone},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			x := newOrder(t, "email\nada@bakery.com\neva@bakery.com\n")
			s := newStub(t, httptest.NewServer)
			s.left = f.left
			entry := fmt.Sprintf(stubEntry, s.server.URL) + "  balance: {ask: \"GET /v1/account\", " + f.entry + "}\n"
			x.job, x.resolvers = "operation: email_to_hem\n", []string{"stub: {key_file: ./key, max_credits: " + f.max + "}"}
			x.write("providers.yaml", entry)
			says := func(said, want string) {
				t.Helper()
				if flat := strings.Join(strings.Fields(said), " "); !strings.Contains(flat, want) {
					t.Errorf("does not say %s:\n%s", want, said)
				}
			}
			says(x.executes(cli.ExitDone, x.args("plan")...), f.plan)
			says(x.executes(f.doctorCode, x.args("doctor")...), f.doctor)
			said := x.run(cli.ExitDone)
			says(said, f.run)
			if f.run == "" && strings.Contains(said, "the balance is less") {
				t.Error(said)
			}
			s.left = "{}"
			if said := x.run(cli.ExitDone, "--overwrite"); strings.Contains(said, "a balance is not known") {
				t.Errorf("a run of stored answers asks:\n%s", said)
			}
			s.left = f.left
			says(x.executes(cli.ExitDone, "provider", "try", "stub", "--providers", x.path("providers.yaml"), "--in", x.path("in.csv"), "--key-file", x.path("key"), "--state", x.path("state")), f.tried)
			if got, want := s.asked(), "ada@bakery.com eva@bakery.com"; got != want && got != "eva@bakery.com ada@bakery.com" {
				t.Errorf("asked %s, want %s", got, want)
			}
		})
	}
}

// TestTryShapes: batches, answers that come later and verifiers are tried as others, and what is saved of them is
// read as it says.
func TestTryShapes(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*badservice.ProviderOptions){
		"one":      func(*badservice.ProviderOptions) {},
		"batch":    func(o *badservice.ProviderOptions) { o.Batch = 4 },
		"by ref":   func(o *badservice.ProviderOptions) { o.Batch, o.By = 4, badservice.ByRef },
		"by name":  func(o *badservice.ProviderOptions) { o.Batch, o.By = 4, badservice.ByName },
		"later":    func(o *badservice.ProviderOptions) { o.Polls = 1 },
		"tasks":    func(o *badservice.ProviderOptions) { o.Polls, o.Batch = 1, 4 },
		"verifier": func(o *badservice.ProviderOptions) { o.Checks = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := badservice.DefaultProvider("acme")
			o.Matched = 0.5
			change(&o)
			list := profiles(4)
			if o.Checks {
				list = "email\na@x.example\nb@x.example\nc@x.example\n"
			}
			x := newOrder(t, list)
			acme := x.starts(o)
			args := []string{"provider", "try", "acme", "--providers", x.path("providers.yaml"), "--in", x.path("in.csv"), "--key-file", x.path("key"), "--state", x.path("state"), "--network-hosts", "network.example", "--save", x.path("tried")}
			said := x.executes(cli.ExitDone, args...)
			saves := func(folder, said string) {
				t.Helper()
				checked := x.executes(cli.ExitDone, "provider", "check", x.path(folder+"/providers.yaml"))
				saved, err := os.ReadFile(x.path(folder + "/acme.answers.yaml"))
				if err != nil || !strings.Contains(checked, "all read as they say") || strings.Contains(string(saved), "person-1") {
					t.Errorf("%v\n%s\n%s\n%s", err, said, checked, saved)
				}
			}
			saves("tried", said)
			again := x.executes(cli.ExitDone, append(args[:len(args)-1], x.path("again"))...)
			if n := len(acme.Ledger()); n != 3 || !strings.Contains(again, "not asked again") {
				t.Errorf("%d are billed\n%s", n, again)
			}
			saves("again", again)
		})
	}
}
