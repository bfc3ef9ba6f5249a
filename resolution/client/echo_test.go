package client

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
)

// TestAnswersOfOthers: an answer that is that to another question is no answer.
func TestAnswersOfOthers(t *testing.T) {
	const ok, lead = `{"success":true,"resolution":{"id":"res_1","status":"completed"},`, `"lead":{"phone":"+12025550100"}`
	asks := func(op resolution.Operation, key, ref string) resolution.Call {
		return resolution.Call{Request: resolution.Request{Operation: op, Key: key}, ClientRef: ref}
	}
	const ada, bob, member = "linkedin.com/in/ada", "linkedin.com/in/bob", "linkedin.com/in/ACoAABc"
	hems := func(address string) string {
		d := sums(address)
		return fmt.Sprintf(`"lead":{"hashed_emails":[{"email":%q,"type":"md5"},{"email":%q,"type":"sha256"}]}`, d[0], d[2])
	}
	for _, f := range []struct {
		name           string
		call           resolution.Call
		body           string
		swapped, other bool
	}{
		{"no echo", asks("network_to_phone", ada, ""), ok + lead + `}`, false, false},
		{"the echo", asks("network_to_phone", ada, ""), ok + lead + `,"payload":{"network_url":"linkedin.com/in/ada"}}`, false, false},
		{"an echo of another field", asks("network_to_hem", ada, ""), ok + hems("a@b.example") + `,"payload":{"email":"bob@bakery.example"}}`, false, false},
		{"another", asks("network_to_phone", ada, ""), ok + lead + `,"payload":{"network_url":"linkedin.com/in/bob"}}`, true, false},
		{"another who was never asked about", asks("network_to_phone", ada, ""), ok + lead + `,"payload":{"network_url":"linkedin.com/in/eve"}}`, true, false},
		{"another's miss", asks("network_to_phone", ada, ""), `{"success":true,"data":false,"payload":{"network_url":"linkedin.com/in/bob"}}`, true, false},
		{"another's promise", asks("network_to_phone", ada, ""), `{"success":true,"resolution":{"id":"res_1","status":"processing"},"payload":{"network_url":"linkedin.com/in/bob"}}`, true, false},
		{"another's client reference", asks("network_to_phone", ada, "ref-ada"), ok + lead + `,"payload":{"metadata":{"client_ref":"ref-bob"}}}`, true, false},
		{"the hash of a question of an earlier process", asks("network_to_phone", ada, strings.Repeat("a1", 32)), ok + lead + `,"payload":{"metadata":{"client_ref":"` + strings.Repeat("b2", 32) + `"}}}`, true, false},
		{"an unknown client reference", asks("network_to_phone", ada, "ref-ada"), ok + lead + `,"payload":{"metadata":{"client_ref":"ref-eve"}}}`, false, false},
		{"another email", asks("email_to_hem", "ada@bakery.example", ""), ok + hems("ada@bakery.example") + `,"payload":{"email":"bob@bakery.example"}}`, true, false},
		{"another IP", asks("ip_to_company", "192.0.2.1", ""), `{"data":true,"lead":{"company":{"name":"X"}},"payload":{"ip":"192.0.2.2"}}`, true, false},

		{"data under the address", asks("enrichment", ada, ""), ok + `"lead":{"full_name":"A","network_url":"www.linkedin.com/in/ada/"}}`, false, false},
		{"data of another who was asked about", asks("enrichment", ada, ""), ok + `"lead":{"full_name":"B","network_url":"linkedin.com/in/bob"}}`, true, true},
		{"the same with the right echo", asks("enrichment", ada, ""), ok + `"lead":{"full_name":"B","network_url":"linkedin.com/in/bob"},"payload":{"network_url":"linkedin.com/in/ada"}}`, true, true},
		{"data under an unasked address", asks("enrichment", ada, ""), ok + `"lead":{"full_name":"A","network_url":"linkedin.com/in/ada-today"}}`, false, true},
		{"a member id under today's address", asks("enrichment", member, ""), ok + `"lead":{"full_name":"A","network_url":"linkedin.com/in/ada-today"}}`, false, true},
		{"a member id under today's address, which is asked about too", asks("enrichment", member, ""), ok + `"lead":{"full_name":"B","network_url":"linkedin.com/in/bob"},"payload":{"network_url":"` + member + `"}}`, false, true},
		{"the same without an echo", asks("enrichment", member, ""), ok + `"lead":{"full_name":"B","network_url":"linkedin.com/in/bob"}}`, true, true},
		{"digests of the email", asks("email_to_hem", "ada@bakery.example", ""), ok + hems("ada@bakery.example") + `}`, false, false},
		{"digests of an unasked email", asks("email_to_hem", "ada@bakery.example", ""), ok + hems("home@ada.example") + `}`, false, true},
		{"digests of another email", asks("email_to_hem", "ada@bakery.example", ""), ok + hems("bob@bakery.example") + `}`, true, true},
		{"digests of another digest", asks("email_to_hem", sums("eve@bakery.example")[0], ""), ok + hems("bob@bakery.example") + `}`, true, true},
		{"the profile of an email", asks("email_to_hem", "ada@bakery.example", ""), ok + hems("ada@bakery.example")[:len(hems("ada@bakery.example"))-1] + `,"network_url":"linkedin.com/in/bob"}}`, false, false},
	} {
		k := exchange.NewAsked([]string{"linkedin.com"})
		for _, other := range []resolution.Call{asks("enrichment", bob, "ref-bob"), asks("email_to_hem", "bob@bakery.example", "ref-b")} {
			questionOf(k, other).register()
		}
		questionOf(k, f.call).register()
		other, err := CheckerOf(k)(f.call, []byte(f.body))
		if (err != nil) != f.swapped || !f.swapped && other != f.other {
			t.Errorf("%s: another address %t, %v; want %t, swapped %t", f.name, other, err, f.other, f.swapped)
		}
		if err != nil && strings.Contains(err.Error(), "linkedin") {
			t.Errorf("%s: the error says %v", f.name, err)
		}
	}
}

// TestSearchesOfOthers: the same of searches.
func TestSearchesOfOthers(t *testing.T) {
	search := &searchBody{Keywords: []string{"rye  Bread", "crm"}, DateStart: "2026-11-01", Page: 2, Limit: 100}
	list, count := resolution.KeywordToLead, resolution.KeywordToLeadCount
	promise := func(payload string) string {
		return `{"success":true,"resolution":{"id":"res_1","status":"processing"},"payload":{` + payload + `}}`
	}
	for _, f := range []struct {
		name    string
		op      resolution.Operation
		id      string
		body    string
		swapped bool
	}{
		{"no echo", list, "", promise(""), false},
		{"the echo", list, "", promise(`"keywords":["rye  Bread","crm"],"page":2,"limit":100`), false},
		{"in another order", list, "", promise(`"keywords":["CRM","rye bread"],"date_start":"2026-11-01T00:00:00Z","limit":50`), false},
		{"other keywords", list, "", promise(`"keywords":["crm"],"page":2`), true},
		{"another page", list, "", promise(`"keywords":["rye bread","crm"],"page":1`), true},
		{"another day", list, "", promise(`"keywords":["rye bread","crm"],"date_start":"2026-11-02"`), true},
		{"a default that was not sent", list, "", promise(`"date_end":"2026-11-09","cities":["Oslo"]`), false},
		{"a count of others", count, "", `{"success":true,"resolution":{"id":"res_1","status":"queued"},"keywords":["crm"]}`, true},
		{"its result", list, "res_1", promise(`"resolution_id":"res_1"`), false},
		{"its result without the prefix", list, "res_1", `{"success":true,"resolution":{"id":"1","status":"processing"}}`, false},
		{"another result", list, "res_2", promise(""), true},
		{"another result by the payload", list, "res_1", promise(`"resolution_id":"res_2"`), true},
		{"a result with its search", list, "res_1", promise(`"keywords":["other"],"metadata":{"client_ref":"ref"}`), false},
		{"another's failure", list, "res_2", `{"success":false,"resolution":{"id":"res_1","status":"failed"}}`, true},
	} {
		known := exchange.NewAsked(nil)
		q := questionOf(known, resolution.Call{Request: resolution.Request{Operation: f.op}})
		q.id = f.id
		questionOf(known, resolution.Call{Request: resolution.Request{Operation: f.op}, ClientRef: "ref"}).register()
		if f.id == "" {
			q.search = search
		}
		_, err := response{operation: f.op, status: 200, header: http.Header{}, body: []byte(f.body), asked: q}.reply()
		if failed, is := err.(*resolution.CallError); (is && failed.Swapped) != f.swapped {
			t.Errorf("%s: %v, want swapped %t", f.name, err, f.swapped)
		}
	}
}

// sums are the digests of an address by the plain profile: MD5, SHA-1, SHA-256.
func sums(address string) []string { return exchange.NewAsked(nil).Names(resolution.Email, address) }

// TestNobodyElsesAnswer: of a service, or a proxy, that mixes up answers, nobody gets
// the data of somebody else.
func TestNobodyElsesAnswer(t *testing.T) {
	keys := map[resolution.Identifier]string{resolution.Email: "person%d@mail.example", resolution.NetworkURL: "network.example/in/person-%d", resolution.IP: "192.31.196.%d"}
	for _, f := range []struct {
		name    string
		faults  badservice.Faults
		unnamed bool
		ops     []resolution.Operation
	}{
		{"twice", badservice.Faults{Doubled: 1}, false, resolution.SingleRecord},
		{"now and then twice", badservice.Faults{Doubled: 0.2}, false, []resolution.Operation{resolution.NetworkToPhone}},
		{"twice without an echo", badservice.Faults{Doubled: 1}, true, []resolution.Operation{resolution.EmailToHEM, resolution.Enrichment}},
		{"mixed up", badservice.Faults{Mixed: 0.5}, false, []resolution.Operation{resolution.NetworkToPhone, resolution.IPToCompany}},
		{"mixed up without an echo", badservice.Faults{Mixed: 0.5}, true, []resolution.Operation{resolution.EmailToHEM, resolution.Enrichment}},
	} {
		for _, op := range f.ops {
			good := badservice.DefaultOptions()
			good.Matched = 1
			bad := good
			bad.Faults, bad.Unnamed = f.faults, f.unnamed
			ask := askAll(t, bad)
			wrong, none := 0, 0
			want := askAll(t, good)(op, keys[op.Identifier()])
			for i, got := range ask(op, keys[op.Identifier()]) {
				switch {
				case got == "":
					none++
				case got != want[i]:
					wrong++
				}
			}
			if wrong > 0 || none == 100 {
				t.Errorf("%s, %s: %d of 100 got the data of somebody else, %d got none", f.name, op, wrong, none)
			}
		}
	}
}

// askAll returns what asks 100 questions, some at a time, and returns their leads.
func askAll(t *testing.T, o badservice.Options) func(op resolution.Operation, key string) []string {
	s := badservice.New(o)
	url, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c := newClient(t, to(url))
	return func(op resolution.Operation, key string) []string {
		leads := make([]string, 100)
		var all sync.WaitGroup
		for from := range 4 {
			all.Go(func() {
				for i := from; i < len(leads); i += 4 {
					r, err := c.Do(t.Context(), resolution.Call{Request: resolution.Request{Operation: op, Key: fmt.Sprintf(key, i)}})
					failed, is := err.(*resolution.CallError)
					switch {
					case err == nil:
						leads[i] = fmt.Sprintf("%+v", lead(r))
					case !is || !failed.Swapped:
						t.Errorf("%s: %v", op, err)
					}
				}
			})
		}
		all.Wait()
		return leads
	}
}

// lead is the lead of a reply as text, without the addresses of its members.
func lead(r resolution.Reply) string {
	_, lead, _ := strings.Cut(string(r.Body), `"lead":`)
	lead, _, _ = strings.Cut(lead, `"payload":`)
	return lead
}
