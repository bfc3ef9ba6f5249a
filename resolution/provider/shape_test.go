package provider

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution/values"
)

// TestShape: what the schema refuses is told with its line, in words that say what to write.
func TestShape(t *testing.T) {
	for _, f := range []struct{ old, new, want string }{
		{"key: bearer", "key:", `:3: "key" has no value: it is one of: none, bearer`},
		{"key: bearer", "key: null", `:3: "key" has no value: it is one of: none, bearer`},
		{"key: bearer", "key: ~", `:3: "key" has no value: it is one of: none, bearer`},
		{"key: bearer", "key: {tokn: x}", `:3: "tokn" is no key of "key"; did you mean "token"?`},
		{"key: bearer", "key: {token: {form: {a: b}}}", `:3: "token" has no send`},
		{"key: bearer", "key: {}", `:3: "key" has no token`},
		{`"https://api.example"`, `""`, `:2: "base" has no value: it is an address such as`},
		{"key: bearer", "key: [bearer]", `:3: "key" is one of: none, bearer`},
		{"  key", "  price: 2\n  key", `:3: "price" is credits: {match: 2, no_match: 0, bad_row: 0, later: 2}`},
		{"  key", "  price: {match: 1000001}\n  key", `:3: "match" is a whole number from 0 to 1000000`},
		{"  key", "  price: {match: -1}\n  key", `:3: "match" is a whole number from 0 to 1000000`},
		{"  key", "  price: {match: 99999999999999999999}\n  key", `:3: "match" is a whole number from 0 to 1000000`},
		{"  key", "  retry: no\n  key", `:3: "retry" is true or false`},
		{"  key", "  unit: 0.000\n  key", `:3: "unit" is a number above 0, such as 10`},
		{"  key", "  unit: 0\n  key", `:3: "unit" is a number above 0, such as 10`},
		{"  key", "  balance: {ask: \"GET /a\"}\n  key", `:3: "balance" has no credits`},
		{"  key", "  balance: {ask: \"GET /a?x={email}\", credits: a}\n  key", `:3: {email} is no placeholder here`},
		{"  key", "  balance: {ask: \"GET /a\", credits: a, count: x}\n  key", `:3: "count" is no key of "balance"; did you mean "counts"?`},
		{"  key", "  check: emial\n  key", `:3: "check" is what a verifier checks; did you mean "email"?`},
		{"  key", "  limit: X\n  key", ":3: \"limit\" is `header NAME`"},
		{"  key", "  headers: x\n  key", `:3: "headers" is headers of the form {name: value}, with letters, digits`},
		{"  key", "  headers: {a b: x}\n  key", `:3: "a b" is no key of "headers", which is headers of the form {name: value}, with letters`},
		{"  key", "  headers: {a: \"{email}\"}\n  key", `:3: "a" is text of printable ASCII characters, without placeholders`},
		{"  key", "  rate:\n    - 5/s\n    - 0/s\n  key", `:5: this value is a rate such as 100/min, 15/s or 1000 keys/hour`},
		{"  key", "  helper: [a-b]\n  key", `:3: this value is a name of lower-case letters, digits and _`},
		{"  key", "  later: {every: 5s}\n  key", `:3: "later" has no ask`},
		{"  key", "  later: {ask: same, every: 0s}\n  key", `:3: "every" is a time from 1s to 1h0m0s`},
		{"email: data.email", "email: [data]", `:10: "email" is text`},
		{"email: data.email", "emails: {email: a}", `:10: "emails" has no each`},
		{"email: data.email", "phones: {each: a, email: b}", `:10: "email" is no key of "phones"`},
		{"- no_match: 404", "- 404", ":8: a rule is written `- match: 200 data`"},
		{"  answers:\n    - match: 200 data\n    - no_match: 404", "  answers: []", ":6: \"answers\" is a list of 1 to 64 rules such as `- match: 200 data`"},
		{`"GET /v1/find?email={email}"`, "{sent: \"POST /\"}", `:5: "email" is text such as "GET /v1/person?email={email}", or {send: `},
		{`"GET /v1/find?email={email}"`, "{send: \"POST /\", jsn: 1}", `:5: "jsn" is no key of "email"; did you mean "json"?`},
		{`"GET /v1/find?email={email}"`, "{send: \"POST /\", form: 1}", `:5: "form" is of the form {name: value}`},
		{"email: \"GET", "phone: \"GET", `:5: "phone" is no key of "ask"; it is one of network_url, email, ip`},
		{"p:\n", "P:\n", `:1: "P" is no name of a provider`},
	} {
		_, err := Parse("p.yaml", []byte(strings.Replace(plain, f.old, f.new, 1)))
		if err == nil || !strings.Contains(err.Error(), "p.yaml"+f.want) {
			t.Errorf("%s for %s: %v\nwant %s", f.new, f.old, err, f.want)
		}
	}
	_, err := ParseDocumented("a.yaml", []byte("a:\n  email: x\n  status: 99\n  outcome: [match, mach]\nb:\n  status: 200\n  outcome: match\n"))
	if want := `a.yaml:3: "status" is a whole number from 100 to 599
a.yaml:4: this value is what an answer means; did you mean "match"?
a.yaml:4: "outcome" has 2 values for 1 keys
a.yaml:5: "b" is a documented answer: what was asked about (email, network_url, ip, phone or person), its status, outcome and more`; err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// TestPage: docs/reference/entries.md has every member of the schema, and the schema every list among the columns.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/entries.md")
	var schema struct {
		Defs map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err == nil {
		err = json.Unmarshal(Schema, &schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{"entry", "batch", "later", "documented"} {
		for name := range schema.Defs[of].Properties {
			if !strings.Contains(string(page), "`"+name+"`") && !strings.Contains(string(page), name+": ") {
				t.Errorf("the page does not say what %s of %s is", name, of)
			}
		}
	}
	var lists []string
	for name, v := range values.ByName {
		if v.IsList() && slices.Contains(fillable(), name) {
			lists = append(lists, name)
		}
	}
	slices.Sort(lists)
	if got := slices.Sorted(maps.Keys(schema.Defs["fields"].Properties)); !slices.Equal(got, lists) {
		t.Errorf("lists %s, want %s", got, lists)
	}
}
