//go:build unix

package resolvers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
)

// asked is a key of a request to a stub.
type asked struct{ Ref, U string }

// name is that of a person in the address of a key.
func (a asked) name() string { return a.U[strings.LastIndex(a.U, "/")+1:] }

// stub starts a provider that answers with what says returns, which has the keys of a batch, or none and
// the task of a poll.
func stub(t *testing.T, says func(keys []asked, task string) any) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Keys []asked }
		_ = json.NewDecoder(r.Body).Decode(&body) // a poll has none
		_ = json.NewEncoder(w).Encode(says(body.Keys, strings.TrimPrefix(r.URL.Path, "/tasks/")))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// counts are the rows of the last run by their outcome and reason, in a line of the command head.
func (x *order) counts() string {
	x.Helper()
	found := map[string]int{}
	out := x.executes(cli.ExitDone, "head", x.path("out"), "-n", "100", "--select", "outcome,reason")
	for _, line := range strings.Split(out, "\n")[1:] {
		if words := strings.Fields(line); len(words) > 0 && len(words) < 3 {
			found[strings.Join(words, " ")]++
		}
	}
	return fmt.Sprint(found)
}

// TestListsOfMisses: misses and bad rows that an answer lists beside its matches go to the next
// resolver. An id in none of the lists is an unknown call.
func TestListsOfMisses(t *testing.T) {
	t.Parallel()
	x := newOrder(t, profiles(6))
	url := stub(t, func(keys []asked, _ string) any {
		matched, misses, bad := []any{}, []string{}, []string{}
		for _, k := range keys {
			switch k.name() {
			case "person-0", "person-1":
				matched = append(matched, map[string]any{"identifier": k.Ref, "person": map[string]string{"email": k.name() + "@x.example"}})
			case "person-2", "person-3":
				misses = append(misses, k.Ref)
			case "person-4":
				bad = append(bad, k.Ref)
			}
		}
		return map[string]any{"matched": matched, "not_matched": misses, "invalid_datapoints": bad}
	})
	x.write("providers.yaml", `a:
  base: "`+url+`"
  key: header X-Key
  batch: {size: 10, ask: "POST /bulk", each: {ref: "{ref}", u: "{network_url_https}"}, in: keys, answers: matched,
    no_match: not_matched, bad_row: invalid_datapoints, id: {send: ref, back: identifier}}
  price: {match: 1}
  answers: [{match: 200 person.email}, {no_match: 404}, {slow_down: 429}]
  fields: {email: person.email}
`)
	x.job = "operation: enrichment\nnetwork_hosts: [network.example]\n"
	x.resolvers = []string{"a"}
	said := x.run(cli.ExitRejects)
	if got := x.counts(); got != "map[failed refused:1 failed unknown_call:1 matched:2 no_match no_match:2]" {
		t.Errorf("%s after\n%s", got, said)
	}
}

// TestTaskWithoutCredits: a task that ends without credits gives what it has. The rest is not billed and
// waits for credits, and nothing stays parked.
func TestTaskWithoutCredits(t *testing.T) {
	t.Parallel()
	x := newOrder(t, profiles(6))
	credits, tasks := 2, map[string][]asked{}
	url := stub(t, func(keys []asked, task string) any {
		if keys != nil {
			id := fmt.Sprint("t", len(tasks))
			tasks[id] = keys
			return map[string]string{"task": id}
		}
		done := []any{}
		for _, k := range tasks[task] {
			if credits == 0 {
				return map[string]any{"state": "CREDITS_INSUFFICIENT", "results": done}
			}
			credits--
			done = append(done, map[string]string{"ref": k.Ref, "email": k.name() + "@x.example"})
		}
		return map[string]any{"state": "FINISHED", "results": done}
	})
	x.write("providers.yaml", `a:
  base: "`+url+`"
  key: header X-Key
  batch: {size: 10, ask: "POST /bulk", each: {ref: "{ref}", u: "{network_url_https}"}, in: keys, answers: results,
    id: {send: ref, back: ref}, rules: [{match: 200 email}]}
  later: {ask: "GET /tasks/{task}", every: 1s, wait: 1m, answers: [{match: 200 state=FINISHED}, {no_credits: 200 state=CREDITS_INSUFFICIENT}]}
  price: {match: 1}
  answers: [{later: 200 task}]
  fields: {email: email}
`)
	x.job = "operation: enrichment\nnetwork_hosts: [network.example]\n"
	x.resolvers = []string{"a"}
	x.run(cli.ExitBudget)
	if open := x.executes(cli.ExitDone, "answers", "list", "--unknown", "--state", x.path("state")); strings.Contains(open, "network.example") {
		t.Errorf("open calls are left:\n%s", open)
	}
	credits = 4
	said := x.run(cli.ExitDone)
	if got := x.counts(); got != "map[matched:6]" || credits != 0 || len(tasks) != 2 {
		t.Errorf("%s, %d credits are left after %d tasks\n%s", got, credits, len(tasks), said)
	}
}
