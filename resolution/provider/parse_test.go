package provider

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
)

// plain is an entry that tests change.
const plain = `p:
  base: "https://api.example"
  key: bearer
  ask:
    email: "GET /v1/find?email={email}"
  answers:
    - match: 200 data
    - no_match: 404
  fields:
    email: data.email
`

func parsed(t *testing.T, text string) *Entry {
	t.Helper()
	all, err := Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return all[all.Names()[0]]
}

func TestEntry(t *testing.T) {
	e := parsed(t, `p:
  documented: 2026-11-26
  base: "https://api.example/v2/"
  key: header Authorization Token
  headers: {accept-version: v2.0}
  ask:
    email: {send: "POST /find?md5={email_md5}", json: {a: ["{email}", 7, "7", true, no], "b.c": "{{x"}}
    network_url: {send: "POST /find/{handle}", form: {url: "{network_url_https}", "x[]": 1}}
  batch: {size: 3, ask: "POST /bulk", each: {ip: "{ip}", ref: "{ref}"}, in: a.list, with: {a: {b: 1}, z: y}, answers: data, id: {send: ref, back: id}}
  later: {ask: same, every: 5s}
  price: {match: 2, bad_row: 1}
  rate: [15/s, 1000 keys/hour]
  limit: header X-Credits-Left
  retry: false
  helper: [email_status]
  answers:
    - match: 200
    - later: 202
  fields:
    email_status: s
    email: e
    phones: {each: list, phone: n}
`)
	if e.Documented != "2026-11-26" || e.Price != (Price{2, 0, 1, 2, 0}) || e.Price.Max() != 2 || !e.RetryBills || *e.Later != (Polling{5 * time.Second, 30 * time.Minute}) ||
		!slices.Equal(e.Rate, []Rate{{15, time.Second, false}, {1000, time.Hour, true}}) || !slices.Equal(e.HelperNames(), []string{"email_status"}) ||
		!slices.Equal(e.Kinds(), []resolution.Identifier{"email", "ip", "network_url"}) || e.BatchSize("ip") != 3 || e.BatchSize("email") != 1 || e.BatchSize("phone") != 0 {
		t.Errorf("%+v", e)
	}
	if got := strings.Join(e.Columns(), " "); got != "email hashed_emails hem_md5 hem_sha1 hem_sha256 phone phone_raw phone_region phone_type phone_valid phones" {
		t.Errorf("columns %s", got)
	}
	if got := strings.Join(e.Warnings(), "\n"); got != "p.yaml:13: limit says how many requests are left in a window; if X-Credits-Left counts credits, leave it out: calls would slow down as these end\n"+
		"p.yaml:17: match for every 200: name a member that shows it, such as 200 data" {
		t.Errorf("warnings\n%s", got)
	}
	for _, f := range []struct {
		kind resolution.Identifier
		keys []string
		want string // "" if it is not askable
	}{
		{"email", []string{"a\"b@x.example"}, `POST /find?md5=c04d4bd9b3bc0b0f5ab6d2f0c4e9ea1f {"a":["a\"b@x.example",7,"7",true,"no"],"b.c":"{x"}`},
		{"email", []string{strings.Repeat("0", 32)}, ""},
		{"network_url", []string{"linkedin.com/in/zoë-d"}, "POST /find/zo%C3%AB-d url=https%3A%2F%2Flinkedin.com%2Fin%2Fzo%C3%AB-d&x%5B%5D=1"},
		{"network_url", []string{"linkedin.com/in/.."}, ""}, {"network_url", []string{"x.example/people/1"}, ""},
		{"ip", []string{"192.0.2.1", "2001:db8::1"}, `POST /bulk {"a":{"b":1,"list":[{"ip":"192.0.2.1","ref":"1"},{"ip":"2001:db8::1","ref":"2"}]},"z":"y"}`},
	} {
		r, _ := e.Request(f.kind)
		_, askable := r.Question(f.keys[0])
		m, is := r.Message(f.keys...)
		got := strings.TrimSpace(m.Method + " " + m.Target + " " + m.Body)
		if want := strings.Replace(f.want, "c04d4bd9b3bc0b0f5ab6d2f0c4e9ea1f", emailForm("email_md5", f.keys[0]), 1); is != (f.want != "") || askable != is || is && got != want {
			t.Errorf("%s: %s, %v, want %s", f.keys, got, is, f.want)
		}
	}
}

// TestQuestion: the name of a request and the digest of an entry follow what is meant.
func TestQuestion(t *testing.T) {
	e := parsed(t, plain)
	name := func(e *Entry) string {
		r, _ := e.Request("email")
		return r.Name()
	}
	if n := name(e); !strings.HasPrefix(n, "email:") || len(n) != len("email:")+16 {
		t.Errorf("the name is %s", n)
	}
	const batch = "  batch: {size: 2, ask: \"POST /b\", each: \"{email}\", in: \".\", answers: \".\", same_answer: %v}\n"
	for _, f := range []struct {
		old, new           string
		sameName, sameMean bool
	}{
		{"  key: bearer", "  # said\n  key: 'bearer' # twice", true, true},
		{"  key: bearer", "  rate: 5/s\n  documented: today\n  limit: header X\n  key: bearer", true, true},
		{`email: "GET /v1/find?email={email}"`, `email: {send: "GET /v1/find?email={email}"}`, true, true},
		{"404", "404 | 410", true, false}, {"data.email", "data.mail", true, false}, {"bearer", "basic", true, false}, {"api.example", "api2.example", true, false},
		{"v1", "v2", false, false}, {"{email}", "{email_md5}", false, false}, {"  key", "  headers: {version: 2}\n  key", false, false},
		{"  key", "  price: {match: 2}\n  key", true, false}, {"  key", fmt.Sprintf(batch, false) + "  key", false, false}, {"  key", fmt.Sprintf(batch, true) + "  key", true, false},
	} {
		other := parsed(t, strings.Replace(plain, f.old, f.new, 1))
		if (name(other) == name(e)) != f.sameName || (other.Digest() == e.Digest()) != f.sameMean {
			t.Errorf("%s for %s: %s and %s, %x and %x", f.new, f.old, name(other), name(e), other.Digest(), e.Digest())
		}
	}
	if a, b := parsed(t, batchOf(byPosition)), parsed(t, batchOf(byEcho)); name(a) != name(b) || a.Digest() == b.Digest() {
		t.Error("an echo is another question, or means nothing")
	}
}

func TestRefused(t *testing.T) {
	for _, f := range []struct{ old, new, want string }{
		{"bearer", "bearr", `:3: "key" is one of: none, bearer, basic, header NAME, header NAME PREFIX, query NAME, body PATH, {token: …}; did you mean "bearer"?`},
		{"key: bearer", "kee: bearer", `:3: "kee" is no key of "p"; did you mean "key"?`},
		{"key: bearer", "key: header", `:3: "key" is one of: none, bearer,`},
		{"key: bearer", "key: body api.key", ":3: the key is sent in the body"},
		{"p:", "directory:", `:1: "directory" is no name of a provider`},
		{"https://api.example", "http://api.example", ":2: base begins with https://; http:// is for this machine alone"},
		{"https://api.example", "https://u:p@api.example", ":2: base has neither a user"},
		{"https://api.example", "ftp://api.example", ":2: base begins with https://"},
		{`"GET /v1/find?email={email}"`, "GET /v1/find?email={email}", ":5: text with placeholders is written in quotes"},
		{`"GET /v1/find?email={email}"`, "{email}", `:5: "email" is text; quote the placeholder: "{email}"`},
		{"?email={email}", "", ":5: the request does not name its key: write {email}"},
		{"{email}", "{emial}", `:5: {emial} is no placeholder here; did you mean "email"?`},
		{"{email}", "{ip}", ":5: {ip} is no placeholder here"},
		{"{email}", "{email", ":5: a { without a placeholder"},
		{"GET", "PUT", ":5: a request has the form"}, {"/v1/find", "/v1/fi nd", ":5: a path or query has a character"},
		{`"GET /v1/find?email={email}"`, `{send: "GET /v1", json: {a: "{email}"}}`, ":5: a GET has no body"},
		{`"GET /v1/find?email={email}"`, `{send: "POST /v1", json: {a: {email}}}`, `:5: "email" has no value; write null, or quote a placeholder`},
		{"- no_match", "- not_found", `:8: "not_found" is no key of a rule; it is one of bad_row, later, match,`},
		{"match: 200 data", "no_match: 200 data", `:1: "p" has no rule for a match`},
		{"no_match: 404", "later: 404", ":8: a rule says later, and nothing says how to ask later"},
		{"email: data.email", "mail: data.email", `:10: "mail" is no key of "fields"; did you mean "email"?`},
		{"email: data.email", "phone_type: data.email", `:10: "phone_type" is no key of "fields"`},
		{"email: data.email", "score: data.email", `:10: "score" is no key of "fields"; list it under helper if it serves accept alone`},
		{"email: data.email", "email: data..email", ":10: \"data..email\" is no path"},
		{"  answers:", "  check: email\n  answers:", ":10: email is a column: a verifier has helpers alone"},
		{"  answers:", "  helper: [email]\n  answers:", ":6: email is a column; helpers have other names"},
		{"  answers:", "  helper: [x]\n  answers:", ":6: no field fills the helper x"},
		{"  answers:", "  cost: balance\n  answers:", ":6: \"cost\" is `header NAME` or `body PATH`"},
		{"  answers:", "  price: {match: 1.5}\n  answers:", `:6: "match" is a whole number`},
		{"    - match: 200 data\n", "    - {match: 200 data, price: x}\n", `:7: "price" is a whole number`},
		{"    - match: 200 data\n", "    - {match: 200 data, prize: 0}\n", `:7: "prize" is no key of a rule; did you mean "price"?`},
		{"    - match: 200 data\n", "    - {match: 200 data, no_match: 404, price: 0}\n", ":7: a rule is written `- match: 200 data`, or with a price beside match, no_match or bad_row"},
		{"    - match: 200 data\n", "    - {price: 0}\n", ":7: a rule is written `- match: 200 data`, or with a price beside match, no_match or bad_row"},
		{"    - match: 200 data\n", "    - match: 200 data\n    - {slow_down: 429, price: 0}\n", ":8: a rule is written `- match: 200 data`, or with a price beside match, no_match or bad_row"},
		{"  answers:", "  rate: 5/week\n  answers:", `:6: "rate" is a rate such as 100/min`},
		{"  answers:", "  headers: {Host: x}\n  answers:", ":6: the header Host is not for an entry to set"},
		{"  answers:", "  later: {ask: same}\n  answers:", ":6: no rule in answers says later"},
		{"  answers:", "  batch: {size: 2, ask: \"POST /b\", each: \"{email}\", in: \".\"}\n  answers:", `:6: "batch" has no answers`},
		{"  answers:", "  batch: {size: 2, ask: \"POST /b\", each: \"x\", in: \".\", answers: \".\"}\n  answers:", ":6: each does not name its key"},
		{"  answers:", "  batch: {size: 2, ask: \"POST /b\", each: [\"{email}\", \"{ip}\"], in: \".\", answers: \".\"}\n  answers:", ":6: {ip} is of another kind"},
		{"  answers:", "  batch: {size: 2, ask: \"POST /b\", each: {a: \"{email}\"}, in: x, answers: \".\", id: {send: b}}\n  answers:", ":6: send does not lead to a text"},
		{"  answers:", "  batch: {size: 2, ask: \"POST /b\", each: \"{email}\", in: x, answers: \".\", no_match: m}\n  answers:", ":6: no_match is a list of ids"},
		{"  answers:", "  echo: a..b\n  answers:", `:6: "a..b" is no path`},
		{"ask:\n    email: \"GET /v1/find?email={email}\"", "ask: {}", `:4: "ask" is a request for each kind of identifier, such as {email: `},
		{"key: bearer", "key: !!str bearer", ":3: a tag"}, {"key: bearer", "key: bearer\n  key: none", ":4: key is given twice; leave one of them out"},
	} {
		_, err := Parse("p.yaml", []byte(strings.Replace(plain, f.old, f.new, 1)))
		if err == nil || !strings.Contains(err.Error(), "p.yaml"+f.want) {
			t.Errorf("%s for %s: %v\nwant %s", f.new, f.old, err, f.want)
		}
	}
	_, err := Parse("p.yaml", []byte("a:\n  base: x\n  kee: y\nb: c\n"))
	if err == nil || len(strings.Split(err.Error(), "\n")) < 6 || !strings.HasPrefix(err.Error(), "p.yaml:1: ") {
		t.Errorf("not all problems are told: %v", err)
	}
}

// hostile are files that are made to take time and memory.
func hostile() map[string]string {
	long := strings.Repeat("x", 4000)
	return map[string]string{
		"unknown keys":   "p:\n" + lines("  %[1]d"+strings.Repeat("y", 300)+": x\n", 120),
		"entries":        lines("p%d: {base: x, key: y, ask: z, answers: a, fields: b}\n", 128),
		"rules":          strings.Replace(plain, "    - match: 200 data\n", strings.Repeat("    - match: 200"+strings.Repeat(" a | 200", 60)+"\n", 65), 1),
		"valid rules":    strings.Replace(plain, "    - match: 200 data\n", strings.Repeat("    - match: 200"+strings.Repeat(" a | 200", 60)+"\n", 63), 1),
		"valid paths":    strings.Replace(plain, "email: data.email", "email: "+strings.Repeat("a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a | ", 15)+"a", 1) + lines("q%d: {base: x, key: y, ask: z, answers: a, fields: {email: \""+strings.Repeat("a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a | ", 15)+"a\"}}\n", 100),
		"conditions":     strings.Replace(plain, "200 data", "200"+strings.Repeat(" a", 1900), 1),
		"paths":          strings.Replace(plain, "data.email", strings.Repeat("a | ", 1000)+"a", 1),
		"steps":          strings.Replace(plain, "data.email", strings.Repeat("a.", 2000)+"a", 1),
		"a long name":    strings.Replace(plain, "email: data", long+": data", 1),
		"a long outcome": strings.Replace(plain, "match: 404", long+": 404", 1),
		"placeholders":   strings.Replace(plain, "{email}", strings.Repeat("{x}", 1300), 1),
		"a deep tree":    strings.Replace(plain, `"GET /v1/find?email={email}"`, `{send: "POST /", json: `+strings.Repeat("[", 14), 1),
	}
}

// TestHashedQuestion: an address and its hash are one question where nothing but the hash is sent, and
// keys of other forms have no question.
func TestHashedQuestion(t *testing.T) {
	const address, md5 = "ann@x.example", "b41b6e6ae2c3b7b7c2f5a9a2ba45b1b9"
	hash := emailForm("email_md5", address)
	for _, f := range []struct{ ask, more, address, md5 string }{
		{`ask: {email: "GET /p?u={email}"}`, "", address, ""},
		{`ask: {email: "GET /p?u={email_md5}"}`, "", hash, md5},
		{`ask: {email: "GET /{email_md5}?u={email_md5}"}`, "", hash, md5},
		{`ask: {email: "GET /p?u={email_md5}&e={email}"}`, "", address, ""},
		{`ask: {email: "GET /p?u={email_md5}&s={email_sha256}"}`, "", address, ""},
		{`batch: {size: 2, ask: "POST /b", each: {h: "{email_md5}", r: "{ref}"}, in: l, answers: l, id: {send: r, back: r}}`, "", hash, md5},
		{`ask: {email: "GET /p?u={email}"}` + "\n" + `  batch: {size: 2, ask: "POST /b", each: "{email_md5}", in: ".", answers: "."}`, "", hash, md5},
		{`ask: {email: "GET /p?u={email}"}` + "\n" + `  batch: {size: 2, ask: "POST /b", each: "{email_md5}", in: ".", answers: ".", same_answer: true}`, "", address, md5},
		{`ask: {email: "GET /p?u={email_md5}"}`, "  later: {ask: \"GET /l/{id}?e={email}\", every: 1s, wait: 1m}\n", address, md5},
		{`ask: {email: "GET /p?u={email_md5}"}`, "  later: {ask: \"GET /l/{email_md5}/{id}\", every: 1s, wait: 1m}\n", hash, md5},
	} {
		text := strings.Replace(plain, "ask:\n    email: \"GET /v1/find?email={email}\"", f.ask+"\n"+f.more, 1)
		if f.more != "" {
			text = strings.Replace(text, "answers:", "answers:\n    - later: 202", 1)
		}
		e, err := Parse("p.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", f.ask, err)
			continue
		}
		r, _ := e["p"].Request("email")
		for key, want := range map[string]string{address: f.address, md5: f.md5} {
			if got, is := r.Question(key); is != (want != "") || is && got != want {
				t.Errorf("%s, %s: %s %v, want %s", f.ask, key, got, is, want)
			}
		}
	}
}

// TestHostile: an entry that is made to take memory is refused in less than four megabytes.
func TestHostile(t *testing.T) {
	for name, text := range hostile() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse("p.yaml", []byte(text))
		runtime.ReadMemStats(&after)
		if bytes := after.TotalAlloc - before.TotalAlloc; err == nil || bytes > 4<<20 {
			t.Errorf("%s: %d bytes, %v", name, bytes, err)
		}
	}
}

// BenchmarkHostile: each is refused in some milliseconds.
func BenchmarkHostile(b *testing.B) {
	for name, text := range hostile() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse("p.yaml", []byte(text)); err == nil {
					b.Fatal("it is taken")
				}
			}
		})
	}
}

func lines(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// FuzzParse: no file makes it fail, and the request about any key is one line with the path of
// the entry.
func FuzzParse(f *testing.F) {
	f.Add(plain, "a@x.example")
	f.Add(strings.Replace(plain, `"GET /v1/find?email={email}"`, `{send: "POST /{email}/x", json: {a: "{email}"}}`, 1), "a/../b?#@x.example")
	f.Fuzz(func(t *testing.T, text, key string) {
		all, err := Parse("p.yaml", []byte(text))
		if err != nil {
			return
		}
		for _, e := range all {
			for _, kind := range e.Kinds() {
				r, _ := e.Request(kind)
				m, is := r.Message(key)
				if _, askable := r.Question(key); is != askable || is && (strings.ContainsAny(m.Target, " \r\n#") || m.Target[0] != '/') {
					t.Errorf("%q, %v, but askable %v", m, is, askable)
				}
			}
		}
	})
}
