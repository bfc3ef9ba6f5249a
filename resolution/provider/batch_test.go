package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
)

// batchOf is an entry with a batch of up to 4 emails.
func batchOf(more string) string {
	return `p:
  base: "https://api.example"
  key: bearer
  batch: {size: 4, ask: "POST /bulk", in: list, ` + more + `}
  price: {match: 2, no_match: 1}
  cost: header X-Spent
  answers:
    - match: 200 email | 200 person.email
    - no_match: 404 | 200 !email | 200 !person
    - slow_down: 429
    - no_credits: 402
    - not_billed: 503
    - refused: 401
    - bad_row: 400
  fields:
    email: email | person.email
`
}

const (
	byPosition = `each: {e: "{email}"}, answers: out`
	byEcho     = `each: {e: "{email}"}, answers: out, echo: me`
	byRef      = `each: {e: "{email}", r: "{ref}"}, answers: out, id: {send: r, back: r}`
	byLists    = `each: {e: "{email}", r: "{ref}"}, answers: matched, no_match: not_matched, bad_row: invalid, id: {send: r, back: r}`
	byName     = `each: "{email}", answers: out, id: {send: "."}`
	byStatus   = `each: {e: "{email}"}, answers: out, status: s`
	byEmails   = `each: "{email}", answers: matched, no_match: not_matched, bad_row: invalid, id: {send: ".", back: me}`
	asPerson   = `each: {e: "{email}"}, answers: out, as: person`
)

// TestBatch: what an answer to a batch means for each of the keys a, b and c.
func TestBatch(t *testing.T) {
	const unknown = "protocol general=false unbilled=false billed=true after=0s"
	hit := func(who, more string) string { return fmt.Sprintf(`{"email":"%s@x.example"%s}`, who, more) }
	for _, f := range []struct {
		name, batch string
		status      int
		header      string
		out         string // the body; a list is put under out
		want        string // for each key
	}{
		{"in order", byPosition, 200, "", "[" + hit("a", "") + `,{"email":null},` + hit("c", "") + "]", "match a@x.example 2|no_match 1|match c@x.example 2"},
		{"one that fits no rule", byPosition, 200, "", "[" + hit("a", "") + `,{"error":1},` + hit("c", "") + "]", "match a@x.example 2|" + unknown + "|match c@x.example 2"},
		{"one fewer", byPosition, 200, "", "[" + hit("a", "") + "," + hit("b", "") + "]", unknown + "|" + unknown + "|" + unknown},
		{"one more", byPosition, 200, "", "[" + hit("a", "") + "," + hit("b", "") + "," + hit("c", "") + "," + hit("d", "") + "]", unknown + "|" + unknown + "|" + unknown},
		{"in another order", byPosition, 200, "", "[" + hit("a", "") + "," + hit("c", "") + "," + hit("b", "") + "]", unknown + "|" + unknown + "|" + unknown},
		{"one that names two keys", byPosition, 200, "", "[" + hit("a", `,"colleague":"b@x.example"`) + "," + hit("b", "") + "," + hit("c", "") + "]", "match a@x.example 2|match b@x.example 2|match c@x.example 2"},
		{"in order, each with its key", byEcho, 200, "", "[" + hit("d", `,"me":"A@x.example "`) + `,{"email":null},` + hit("c", `,"me":"c@x.example"`) + "]", "match d@x.example 2|no_match 1|match c@x.example 2"},
		{"one missing, and one of nobody", byEcho, 200, "", "[" + hit("a", `,"me":"a@x.example"`) + `,{"email":null},` + hit("d", `,"me":"d@x.example"`) + "]", unknown + "|" + unknown + "|" + unknown},
		{"one with the key of another", byEcho, 200, "", "[" + hit("a", `,"me":"a@x.example"`) + `,{"email":null},` + hit("c", `,"me":"b@x.example"`) + "]", unknown + "|" + unknown + "|" + unknown},
		{"matches without a key", byEcho, 200, "", "[" + hit("a", "") + `,{"email":null},` + hit("b", "") + "]", "match a@x.example 2|no_match 1|match b@x.example 2"},
		{"207 without a place for the status", byPosition, 207, "", "[" + hit("a", "") + "," + hit("b", "") + "," + hit("c", "") + "]", unknown + "|" + unknown + "|" + unknown},
		{"by ref, in another order", byRef, 200, "", "[" + hit("c", `,"r":3`) + "," + hit("a", `,"r":"1"`) + `,{"email":"","r":"2"}]`, "match a@x.example 2|no_match 1|match c@x.example 2"},
		{"by ref, one missing", byRef, 200, "", "[" + hit("c", `,"r":"3"`) + "," + hit("a", `,"r":"1"`) + "]", "match a@x.example 2|" + unknown + "|match c@x.example 2"},
		{"by ref, one twice", byRef, 200, "", "[" + hit("c", `,"r":"3"`) + "," + hit("a", `,"r":"1"`) + "," + hit("b", `,"r":"1"`) + "]", unknown + "|" + unknown + "|match c@x.example 2"},
		{"by ref, a foreign one", byRef, 200, "", "[" + hit("a", `,"r":"1"`) + "," + hit("x", `,"r":"9"`) + "]", unknown + "|" + unknown + "|" + unknown},
		{"by ref, one without", byRef, 200, "", "[" + hit("a", `,"r":"1"`) + "," + hit("b", "") + "," + hit("c", `,"r":"3"`) + "]", "match a@x.example 2|" + unknown + "|match c@x.example 2"},
		{"by name", byName, 200, "", `{"c@x.example":` + hit("c", "") + `,"a@x.example":` + hit("a", "") + `,"b@x.example":{"email":""}}`, "match a@x.example 2|no_match 1|match c@x.example 2"},
		{"by name, one twice", byName, 200, "", `{"a@x.example":` + hit("a", "") + `,"b@x.example":{"email":""},"a@x.example":` + hit("c", "") + "}", unknown + "|no_match 1|" + unknown},
		{"by name, a foreign one", byName, 200, "", `{"a@x.example":` + hit("a", "") + `,"d@x.example":` + hit("d", "") + "}", unknown + "|" + unknown + "|" + unknown},
		{"misses in a list of their own", byLists, 200, "", `{"matched":[` + hit("c", `,"r":3`) + `],"not_matched":["1",2],"invalid":[]}`, "no_match 1|no_match 1|match c@x.example 2"},
		{"misses that are objects", byLists, 200, "", `{"matched":[],"not_matched":[{"r":"1"},{"r":2}],"invalid":[{"r":3,"why":"x"}]}`, "no_match 1|no_match 1|invalid general=false unbilled=false billed=false after=0s"},
		{"misses without a list of matches", byLists, 200, "", `{"not_matched":["1","2","3"]}`, "no_match 1|no_match 1|no_match 1"},
		{"an id in no list", byLists, 200, "", `{"matched":[` + hit("c", `,"r":3`) + `],"not_matched":["1"]}`, "no_match 1|" + unknown + "|match c@x.example 2"},
		{"an id in two lists", byLists, 200, "", `{"matched":[` + hit("a", `,"r":1`) + `],"not_matched":["1","2"],"invalid":["3"]}`, unknown + "|no_match 1|invalid general=false unbilled=false billed=false after=0s"},
		{"a foreign id among misses", byLists, 200, "", `{"matched":[` + hit("a", `,"r":1`) + `],"not_matched":["2","9"]}`, unknown + "|" + unknown + "|" + unknown},
		{"misses by a name in another spelling", byEmails, 200, "", `{"matched":[` + hit("c", `,"me":"c@x.example"`) + `],"not_matched":["A@X.example"],"invalid":{"b@x.example":{"why":1}}}`, "no_match 1|invalid general=false unbilled=false billed=false after=0s|match c@x.example 2"},
		{"none of the lists", byLists, 200, "", `{"matched":null}`, unknown + "|" + unknown + "|" + unknown},
		{"no credits for the rest", byLists, 402, "", `{"matched":[],"not_matched":["2"]}`, "no_credits general=false unbilled=false billed=false after=0s|no_match 1|no_credits general=false unbilled=false billed=false after=0s"},
		{"a status each", byStatus, 207, "", "[" + hit("a", `,"s":200`) + `,{"s":404},{"s":429}]`, "match a@x.example 2|no_match 1|limited general=false unbilled=false billed=false after=0s"},
		{"one without a status", byStatus, 207, "", "[" + hit("a", "") + `,{"s":"404"},{"s":402}]`, unknown + "|no_match 1|no_credits general=false unbilled=false billed=false after=0s"},
		{"elements under a name", asPerson, 200, "", "[" + hit("a", "") + `,null,` + hit("c", "") + "]", "match a@x.example 2|no_match 1|match c@x.example 2"},
		{"a total, shared by matches", byPosition, 200, "X-Spent: 5", "[" + hit("a", "") + `,{"email":null},` + hit("c", "") + "]", "match a@x.example 3|no_match 0|match c@x.example 2"},
		{"a total that leaves a rest", byPosition, 200, "X-Spent: 8", "[" + hit("a", "") + "," + hit("b", "") + "," + hit("c", "") + "]", "match a@x.example 3|match b@x.example 3|match c@x.example 2"},
		{"a total without a match", byPosition, 200, "X-Spent: 4", `[{"email":null},{"email":null},{"email":null}]`, "no_match 2|no_match 1|no_match 1"},
		{"as a whole: too fast", byPosition, 429, "Retry-After: 8", `{"error":1}`, strings.Repeat("|limited general=false unbilled=false billed=false after=8s", 3)[1:]},
		{"as a whole: no credits", byName, 402, "", `{"error":1}`, strings.Repeat("|no_credits general=false unbilled=false billed=false after=0s", 3)[1:]},
		{"as a whole: not billed", byPosition, 503, "", ``, strings.Repeat("|unavailable general=false unbilled=true billed=false after=0s", 3)[1:]},
		{"as a whole: refused", byPosition, 401, "", ``, strings.Repeat("|denied general=true unbilled=false billed=false after=0s", 3)[1:]},
		{"as a whole: a bad row", byPosition, 400, "", `{}`, strings.Repeat("|unavailable general=false unbilled=true billed=false after=0s alone", 3)[1:]},
		{"as a whole: no match is none", byPosition, 404, "", `{}`, unknown + "|" + unknown + "|" + unknown},
		{"as a whole: a match is none", byPosition, 200, "", `{"email":"a@x.example"}`, unknown + "|" + unknown + "|" + unknown},
		{"cut off", byPosition, 200, "", `{"out":[`, unknown + "|" + unknown + "|" + unknown},
	} {
		t.Run(f.name, func(t *testing.T) {
			body := f.out
			if strings.HasPrefix(body, "[") || strings.HasPrefix(body, `{"a@`) || strings.HasPrefix(body, `{"c@`) {
				body = `{"out":` + body + "}"
			}
			var asked atomic.Int32
			c := clientOf(t, batchOf(f.batch), "k", func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				if name, value, is := strings.Cut(f.header, ": "); is {
					w.Header().Set(name, value)
				}
				w.WriteHeader(f.status)
				_, _ = io.WriteString(w, body)
			})
			var got []string
			for _, r := range c.DoBatch(t.Context(), []resolution.Call{emailCall("a@x.example"), emailCall("b@x.example"), emailCall("c@x.example")}) {
				text := shownResult(r)
				if errors.Is(r.Err, resolution.ErrAskAlone) {
					text += " alone"
				}
				got = append(got, text)
				if failed, is := errors.AsType[*resolution.CallError](r.Err); is && body != "" && string(failed.Body) == body {
					t.Error("the whole answer is kept for each key")
				}
				if r.Reply.Found.Matched() {
					again, err := readOf(c.entry).Read(resolution.EmailToHEM, r.Reply.Status, r.Reply.Body, nil)
					if err != nil || again.Found.Lead().Email != r.Reply.Found.Lead().Email || !json.Valid(r.Reply.Body) {
						t.Errorf("%s is read as %v, %v", r.Reply.Body, again.Found.Lead(), err)
					}
				}
			}
			if got := strings.Join(got, "|"); got != f.want || asked.Load() != 1 {
				t.Errorf("after %d requests\n%s, want\n%s", asked.Load(), got, f.want)
			}
		})
	}
}

// TestBatchOfOne: one key is asked about alone, and a bad row is its own then.
func TestBatchOfOne(t *testing.T) {
	c := clientOf(t, batchOf(byPosition), "k", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) })
	reply, err := c.Do(t.Context(), emailCall("a@x.example"))
	if got := shownResult(resolution.Result{Reply: reply, Err: err}); errors.Is(err, resolution.ErrAskAlone) || got != "invalid general=false unbilled=false billed=false after=0s" {
		t.Errorf("%s", got)
	}
	c = clientOf(t, batchOf(byName), "k", func(http.ResponseWriter, *http.Request) { t.Error("a request") })
	for _, r := range c.DoBatch(t.Context(), []resolution.Call{emailCall("a@x.example"), emailCall("a@x.example")}) {
		if r.Err == nil {
			t.Error("the same key twice is asked about")
		}
	}
}

// TestEveryOrder: whatever the order, and whatever is missing, double or foreign, no key gets the
// answer of another.
func TestEveryOrder(t *testing.T) {
	keys := []string{"a@x.example", "b@x.example", "c@x.example"}
	for _, form := range []string{byPosition, byEcho, byRef, byName} {
		e := parsed(t, batchOf(form))
		r, _ := e.Request(resolution.Email)
		for n := range 4 * 4 * 4 * 4 { // each element is that of a, b, c or a foreign key
			var elements []string
			for i, left := 0, n; i < n%5; i, left = i+1, left/4 {
				who := string(rune('a' + left%4))
				element := fmt.Sprintf(`{"email":"%[1]s@x.example","me":"%[1]s@x.example","r":"%[2]d"}`, who, left%4+1)
				if form == byName {
					element = fmt.Sprintf(`"%s@x.example":%s`, who, element)
				}
				elements = append(elements, element)
			}
			body := "[" + strings.Join(elements, ",") + "]"
			if form == byName {
				body = "{" + strings.Join(elements, ",") + "}"
			}
			for i, v := range r.Judge(exchange.NewAsked(nil), Response{Status: 200, Body: []byte(`{"out":` + body + "}")}, keys...) {
				if v.Outcome != Match {
					continue
				}
				if reply, _ := readOf(e).Read(resolution.EmailToHEM, 200, v.Body, nil); reply.Found.Lead().Email != keys[i] && (form != byPosition || reply.Found.Lead().Email != "d@x.example") {
					t.Errorf("%s, %s: %s gets %s", form, body, keys[i], v.Body)
				}
			}
		}
	}
}

// FuzzJudge: no answer makes it fail, and a match has a body that reads as one.
func FuzzJudge(f *testing.F) {
	var entries []*Entry
	for _, text := range []string{
		batchOf(byPosition), batchOf(byEcho), batchOf(byRef), batchOf(byName), batchOf(byStatus), batchOf(asPerson), everyOutcome,
		laterBy(`"GET /{task.id}"`, byRef, `, answers: [{later: 200 wait}]`),
	} {
		all, err := Parse("p.yaml", []byte(text))
		if err != nil {
			f.Fatal(err)
		}
		entries = append(entries, all["p"])
	}
	f.Add(200, "X-Spent: 3", `{"out":[{"email":"a@x.example","r":1,"s":200},null]}`, false)
	f.Add(207, "", `{"out":{"a@x.example":{"s":404},"b@x.example":7}}`, true)
	f.Add(202, "", `{"task":{"id":"x"}}`, false)
	f.Fuzz(func(t *testing.T, status int, header, body string, polled bool) {
		h := http.Header{}
		if name, value, is := strings.Cut(header, ": "); is {
			h[name] = []string{value}
		}
		for _, e := range entries {
			r, _ := e.Request(resolution.Email)
			keys := []string{"a@x.example", "b@x.example"}[:min(2, e.BatchSize(resolution.Email))]
			verdicts := r.Judge(exchange.NewAsked(nil), Response{status, h, []byte(body), polled}, keys...)
			if len(verdicts) != len(keys) {
				t.Fatalf("%d verdicts", len(verdicts))
			}
			for _, v := range verdicts {
				switch {
				case v.Outcome == Match && (v.Credits == nil || *v.Credits < 0 || !json.Valid(v.Body) && strings.ToValidUTF8(body, "") == body && !strings.Contains(strings.ToLower(body), "n")):
					t.Errorf("%+v of %q", v, body)
				case v.Outcome == Later && !polled && v.Next == nil:
					t.Errorf("nothing to ask later: %+v of %q", v, body)
				}
				if reply, err := readOf(e).Read(resolution.EmailToHEM, v.Status, v.Body, nil); v.Outcome == Match && (err != nil || !reply.Found.Matched()) {
					t.Errorf("%q is read as %+v, %v", v.Body, reply, err)
				}
			}
		}
	})
}

// TestForeign: after an answer to another request, none of the connections is used again.
func TestForeign(t *testing.T) {
	var from []string
	c := clientOf(t, batchOf(byRef), "k", func(w http.ResponseWriter, r *http.Request) {
		from = append(from, r.RemoteAddr)
		ref := 1
		if len(from) == 2 {
			ref = 99
		}
		fmt.Fprintf(w, `{"out":[{"email":"a@x.example","r":%d}]}`, ref)
	})
	for n := range 3 {
		_, err := c.Do(t.Context(), emailCall("a@x.example"))
		failed, _ := errors.AsType[*resolution.CallError](err)
		if (failed != nil) != (n == 1) || failed != nil && !failed.Swapped {
			t.Errorf("call %d: %v", n, err)
		}
	}
	if from[0] != from[1] || from[1] == from[2] {
		t.Errorf("the connections were %q", from)
	}
}

// TestOneQuestion: two keys whose answers could not be told apart are asked about alone.
func TestOneQuestion(t *testing.T) {
	c := clientOf(t, batchOf(byName), "k", func(http.ResponseWriter, *http.Request) { t.Error("a request") })
	for _, r := range c.DoBatch(t.Context(), []resolution.Call{emailCall("a@x.example"), emailCall("a@x.example")}) {
		if got := shownResult(r); !errors.Is(r.Err, resolution.ErrAskAlone) || got != "unavailable general=false unbilled=true billed=false after=0s" {
			t.Errorf("%s", got)
		}
	}
}

// TestHashedEcho: an element says whose it is by the address or by the hash that was sent.
func TestHashedEcho(t *testing.T) {
	r, _ := parsed(t, batchOf(`each: {h: "{email_md5}"}, answers: out, echo: me`)).Request("email")
	ann, bob := emailForm("email_md5", "ann@x.example"), emailForm("email_md5", "bob@x.example")
	for _, f := range []struct{ first, second, want string }{
		{"ann@x.example", bob, "match match"}, {ann, "Bob@X.example", "match match"}, {bob, "ann@x.example", " "}, {ann, "cy@x.example", " "},
	} {
		body := fmt.Sprintf(`{"out":[{"email":"a","me":%q},{"email":"b","me":%q}]}`, f.first, f.second)
		all := r.Judge(exchange.NewAsked(nil), Response{Status: 200, Body: []byte(body)}, "ann@x.example", bob)
		if got := string(all[0].Outcome + " " + all[1].Outcome); got != f.want {
			t.Errorf("%s: %q, want %q", body, got, f.want)
		}
	}
}
