package provider

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution"
)

// laterBy is an entry whose answers come later: tasks for one key, a batch of emails, or the same again.
func laterBy(ask, batch, polls string) string {
	text := strings.Replace(everyOutcome, `{ask: "GET /tasks/{task.id}"}`, "{ask: "+ask+polls+"}", 1)
	if batch != "" {
		text = strings.Replace(text, "  ask:\n    email: \"GET /v1/find?email={email}\"\n", `  batch: {size: 4, ask: "POST /bulk", in: list, `+batch+"}\n", 1)
	}
	return text
}

// TestPoll: what the answer to a poll means; it makes no call unknown that may still be answered.
func TestPoll(t *testing.T) {
	const own = `, answers: [{later: 200 wait=true}, {match: 200 data}, {no_match: 404 none=true}, {refused: 403}]`
	for _, f := range []struct {
		name, polls string
		status      int
		body, want  string
	}{
		{"not ready", own, 200, `{"wait":true}`, "pending"}, {"a match", own, 200, `{"data":{"email":"a@x.example"}}`, "match a@x.example 3"},
		{"no match by a rule of its own", own, 404, `{"none":true}`, "no_match 1"}, {"gone", own, 410, "", "protocol general=false unbilled=false billed=true after=0s"},
		{"404 that no rule knows", own, 404, "", "protocol general=false unbilled=false billed=true after=0s"}, {"an outage", own, 500, "", "pending"},
		{"half of an answer", own, 200, `{"data":`, "pending"}, {"refused", own, 403, "", "denied general=true unbilled=false billed=false after=0s"},
		{"by the rules of the entry", "", 200, `{"data":{"email":"a@x.example"}}`, "match a@x.example 3"}, {"404 there is no match", "", 404, "", "protocol general=false unbilled=false billed=true after=0s"},
		{"no match", "", 200, `{"data":null}`, "no_match 1"}, {"too fast", "", 429, "", "limited general=false unbilled=false billed=false after=0s"}, {"later", "", 202, `{"task":{"id":"t/1"}}`, "pending"},
	} {
		t.Run(f.name, func(t *testing.T) {
			var lines []string
			c := clientOf(t, laterBy(`"GET /tasks/{task.id}?of={email}"`, "", f.polls), "", func(w http.ResponseWriter, r *http.Request) {
				lines = append(lines, r.Method+" "+r.RequestURI)
				if len(lines) == 1 {
					w.WriteHeader(http.StatusAccepted)
					_, _ = io.WriteString(w, `{"task":{"id":"t/1"}}`)
					return
				}
				w.WriteHeader(f.status)
				_, _ = io.WriteString(w, f.body)
			})
			reply, err := c.Do(t.Context(), emailCall("a@x.example"))
			if err != nil || !reply.Pending || len(reply.ID) > 200 {
				t.Fatalf("%+v, %v", reply, err)
			}
			id := reply.ID
			reply, err = c.Poll(t.Context(), resolution.EmailToHEM, id, "")
			if got := shownResult(resolution.Result{Reply: reply, Err: err}); got != f.want || lines[1] != "GET /tasks/t%2F1?of=a%40x.example" {
				t.Errorf("%s by %s, want %s", got, lines[1], f.want)
			}
			if reply.Pending && reply.ID != id {
				t.Errorf("the id %s has become %s", id, reply.ID)
			}
		})
	}
}

// TestSame: an answer that comes later by asking again.
func TestSame(t *testing.T) {
	asked := 0
	c := clientOf(t, laterBy("same", "", ""), "", func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked < 3 {
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"task":{"id":1}}`)
			return
		}
		fmt.Fprintf(w, `{"data":{"email":%q}}`, r.URL.Query().Get("email"))
	})
	reply, err := c.Do(t.Context(), emailCall("a@x.example"))
	for range 2 {
		reply, err = c.Poll(t.Context(), resolution.EmailToHEM, reply.ID, "")
	}
	if got := shownResult(resolution.Result{Reply: reply, Err: err}); got != "match a@x.example 3" {
		t.Error(got)
	}
}

// TestSameOfBatch: a batch whose answer comes later is asked about each key alone.
func TestSameOfBatch(t *testing.T) {
	for _, id := range []string{"", `, id: {send: e, back: e}`, `, id: {send: r, back: r}`} {
		asked := 0
		c := clientOf(t, laterBy("same", `each: {e: "{email}", r: "{ref}"}, answers: out`+id, ""), "", func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked == 1 {
				w.WriteHeader(http.StatusAccepted)
				_, _ = io.WriteString(w, `{"task":{"id":1}}`)
				return
			}
			body, _ := io.ReadAll(r.Body)
			if want := `{"list":[{"e":"b@x.example","r":"1"}]}`; string(body) != want {
				t.Errorf("%s, want %s", body, want)
			}
			_, _ = io.WriteString(w, `{"out":[{"data":{"email":"b@x.example"},"e":"b@x.example","r":1}]}`)
		})
		results := c.DoBatch(t.Context(), []resolution.Call{emailCall("a@x.example"), emailCall("b@x.example")})
		reply, err := c.Poll(t.Context(), resolution.EmailToHEM, results[1].Reply.ID, "")
		if got := shownResult(resolution.Result{Reply: reply, Err: err}); got != "match b@x.example 3" {
			t.Errorf("%s: %s", id, got)
		}
	}
}

// TestPollBatch: one poll a task gives each key its own element, and what comes later is asked for
// with the tickets that are left.
func TestPollBatch(t *testing.T) {
	const element = `{"data":{"email":"%[1]s@x.example"},"e":"%[1]s@x.example","r":"%[2]d"}`
	for name, batch := range map[string]string{
		"position": `each: {e: "{email}"}, answers: out`,
		"ref":      `each: {e: "{email}", r: "{ref}"}, answers: out, id: {send: r, back: r}`,
		"key":      `each: {e: "{email}"}, answers: out, id: {send: e, back: e}`,
	} {
		t.Run(name, func(t *testing.T) {
			polls := 0
			c := clientOf(t, laterBy(`"GET /tasks/{task.id}"`, batch, ""), "", func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodPost:
					w.WriteHeader(http.StatusAccepted)
					_, _ = io.WriteString(w, `{"task":{"id":7}}`)
				case r.RequestURI != "/tasks/7":
					t.Errorf("%s", r.RequestURI)
				default:
					if polls++; polls == 1 {
						_, _ = io.WriteString(w, `{"data":{"email":"a@x.example"}}`) // no list: not yet
						return
					}
					fmt.Fprintf(w, `{"out":[%s,%s,{"data":null,"e":"c@x.example","r":"3"}]}`, fmt.Sprintf(element, "a", 1), fmt.Sprintf(element, "b", 2))
				}
			})
			var ids []string
			calls := []resolution.Call{emailCall("a@x.example"), emailCall("b@x.example"), emailCall("c@x.example")}
			for _, r := range c.DoBatch(t.Context(), calls) {
				if ids = append(ids, r.Reply.ID); !r.Reply.Pending || c.Task(ids[0]) != c.Task(r.Reply.ID) {
					t.Fatalf("%+v", r)
				}
			}
			want := []string{"match a@x.example 3", "match b@x.example 3", "no_match 1"}
			for i, r := range c.PollBatch(t.Context(), calls, ids) {
				if got := shownResult(r); got != "pending" || r.Reply.ID != ids[i] {
					t.Errorf("key %d without a list: %s", i, got)
				}
			}
			for i, r := range c.PollBatch(t.Context(), calls, ids) {
				if got := shownResult(r); got != want[i] {
					t.Errorf("key %d: %s, want %s", i, got, want[i])
				}
			}
			if name == "position" { // which an answer with another order does not have
				for i, r := range c.PollBatch(t.Context(), []resolution.Call{calls[1], calls[0], calls[2]}, ids) {
					if got := shownResult(r); got != "pending" {
						t.Errorf("key %d in another order: %s", i, got)
					}
				}
				polls--
			}
			reply, err := c.Poll(t.Context(), resolution.EmailToHEM, ids[1], "")
			if got := shownResult(resolution.Result{Reply: reply, Err: err}); got != want[1] || polls != 3 {
				t.Errorf("alone: %s after %d polls", got, polls)
			}
		})
	}
}

// TestNoTicket: an id that cannot be read, and ids of two tasks, are no poll and make nothing unknown.
func TestNoTicket(t *testing.T) {
	c := clientOf(t, everyOutcome, "", func(http.ResponseWriter, *http.Request) { t.Error("a request") })
	r, _ := c.entry.Request(resolution.Email)
	q := r.asked(c.options.Asked, []string{"a"})
	one := r.ticket(q, &Message{Method: "GET", Target: "/tasks/1"}, 0)
	two := r.ticket(q, &Message{Method: "GET", Target: "/tasks/2"}, 0)
	for _, ids := range [][]string{{"x"}, {""}, {one, two}, {one, "e30"}} {
		for _, result := range c.PollBatch(t.Context(), make([]resolution.Call, len(ids)), ids) {
			if got := shownResult(result); got != "unavailable general=false unbilled=false billed=false after=0s" {
				t.Errorf("%q: %s", ids, got)
			}
		}
	}
}

// TestEndOfATask: a task that ends otherwise than in success gives what is there, and its other keys
// are what the rules of its polls say. A poll that fails tells nothing about its task.
func TestEndOfATask(t *testing.T) {
	const again, gone = "unavailable billed=false over=true", "protocol billed=true gone=true"
	const a, both = `{"e":"a@x.example","r":"1","data":{"email":"a@x.example"}}`, `{"e":"a@x.example","r":"1","data":{"email":"a@x.example"}},{"e":"b@x.example","r":"2","data":null}`
	for _, f := range []struct {
		name, id string
		status   int
		body     string
		want     string // of the keys a and b
	}{
		{"in success", byRef, 200, `{"state":"FINISHED","out":[` + both + `]}`, "match a@x.example 3|no_match 1"},
		{"in success, without one of its keys", byRef, 200, `{"state":"FINISHED","out":[` + a + `]}`, "match a@x.example 3|" + gone},
		{"in success, without a list", byRef, 200, `{"state":"FINISHED"}`, gone + "|" + gone},
		{"not yet, with a part", byRef, 200, `{"state":"IN_PROGRESS","out":[` + a + `]}`, "pending|pending"},
		{"in a way that no rule knows, with a part", byRef, 200, `{"state":"HM","out":[` + a + `]}`, "match a@x.example 3|pending"},
		{"no credits, with a part", byRef, 200, `{"state":"CREDITS_INSUFFICIENT","out":[` + a + `]}`, "match a@x.example 3|no_credits billed=false over=true"},
		{"no credits, with a miss in a list of its own", byLists, 200, `{"state":"CREDITS_INSUFFICIENT","matched":[],"not_matched":["1"]}`, "no_match 1|no_credits billed=false over=true"},
		{"no credits, with nothing", byRef, 200, `{"state":"CREDITS_INSUFFICIENT","out":[]}`, "no_credits billed=false over=true|no_credits billed=false over=true"},
		{"no credits, without a list", byRef, 200, `{"state":"CREDITS_INSUFFICIENT"}`, "no_credits billed=false over=true|no_credits billed=false over=true"},
		{"no credits, by position", byPosition, 200, `{"state":"CREDITS_INSUFFICIENT","out":[` + a + `]}`, gone + "|" + gone},
		{"not billed", byRef, 200, `{"state":"FAILED"}`, again + "|" + again},
		{"cancelled, which may be billed", byRef, 200, `{"state":"CANCELED","out":[` + a + `]}`, "match a@x.example 3|" + gone},
		{"a bad row", byRef, 200, `{"state":"BAD"}`, again + " alone|" + again + " alone"},
		{"the poll finds no credits", byRef, 402, `{}`, "no_credits billed=false over=false|no_credits billed=false over=false"},
		{"the poll fails", byRef, 503, `{}`, "unavailable billed=false over=false|unavailable billed=false over=false"},
		{"the poll is refused", byRef, 401, `{}`, "denied billed=false over=false|denied billed=false over=false"},
		{"gone", byRef, 410, `{}`, "protocol billed=true gone=false|protocol billed=true gone=false"},
	} {
		text := laterBy(`"GET /tasks/{task.id}"`, f.id, `, answers: [{later: 200 state=IN_PROGRESS}, {match: 200 state=FINISHED},
    {no_credits: 200 state=CREDITS_INSUFFICIENT | 402}, {not_billed: 200 state=FAILED | 503}, {unknown: 200 state=CANCELED}, {bad_row: 200 state=BAD}, {refused: 401}]`)
		c := clientOf(t, text, "", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusAccepted)
				_, _ = io.WriteString(w, `{"task":{"id":7}}`)
				return
			}
			w.WriteHeader(f.status)
			_, _ = io.WriteString(w, f.body)
		})
		calls := []resolution.Call{emailCall("a@x.example"), emailCall("b@x.example")}
		var ids, got []string
		for _, r := range c.DoBatch(t.Context(), calls) {
			ids = append(ids, r.Reply.ID)
		}
		for _, r := range c.PollBatch(t.Context(), calls, ids) {
			failed, is := errors.AsType[*resolution.CallError](r.Err)
			switch {
			case !is:
				got = append(got, shownResult(r))
				continue
			case failed.Class == resolution.Protocol:
				got = append(got, fmt.Sprintf("%s billed=%t gone=%t", failed.Class, failed.Billed(), failed.Gone))
			default:
				got = append(got, fmt.Sprintf("%s billed=%t over=%t", failed.Class, failed.Billed(), failed.Over))
			}
			if errors.Is(r.Err, resolution.ErrAskAlone) {
				got[len(got)-1] += " alone"
			}
		}
		if got := strings.Join(got, "|"); got != f.want {
			t.Errorf("%s:\n%s, want\n%s", f.name, got, f.want)
		}
	}
}
