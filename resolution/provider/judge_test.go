package provider

import (
	"net/http"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
)

// TestCost: the figure of an answer times the unit, rounded up; a price if it says none.
func TestCost(t *testing.T) {
	for _, f := range []struct {
		cost, unit, header, body string
		want                     int64
	}{
		{"header X-Cost", "1", "2", `{"data":1}`, 2}, {"header X-Cost", "1", "0", `{"data":1}`, 0}, {"header X-Cost", "3", "0.1", `{"data":1}`, 1}, {"header X-Cost", "10", "0.3", `{"data":1}`, 3},
		{"header X-Cost", "0.5", "3", `{"data":1}`, 2}, {"header X-Cost", "1", "", `{"data":1}`, 7}, {"header X-Cost", "1", "-1", `{"data":1}`, 7}, {"header X-Cost", "1", "1e3", `{"data":1}`, 7},
		{"header X-Cost", "1", "99999999999", `{"data":1}`, 7}, {"header X-Cost", "10", "999999999", `{"data":1}`, 7}, {"body c.0", "1", "", `{"data":1,"c":["4"]}`, 4}, {"body c.0", "1", "", `{"data":1,"c":[4.2]}`, 5}, {"body c.0", "1", "", `{"data":1,"c":[]}`, 7},
	} {
		e := parsed(t, strings.Replace(plain, "  answers:", "  price: {match: 7}\n  cost: "+f.cost+"\n  unit: "+f.unit+"\n  answers:", 1))
		r, _ := e.Request(resolution.Email)
		v := r.Judge(exchange.NewAsked(nil), Response{Status: 200, Header: http.Header{"X-Cost": {f.header}}, Body: []byte(f.body)}, "a@x.example")[0]
		if v.Credits == nil || *v.Credits != f.want {
			t.Errorf("%+v: %+v", f, v)
		}
	}
	e := parsed(t, strings.Replace(batchOf(byPosition), "header X-Spent", "body c", 1))
	r, _ := e.Request(resolution.Email)
	all := r.Judge(exchange.NewAsked(nil), Response{Status: 200, Body: []byte(`{"out":[{"email":"a@x.example","c":5},{"email":null,"c":0},{"email":null}]}`)}, "a@x.example", "b@x.example", "c@x.example")
	if *all[0].Credits != 5 || *all[1].Credits != 0 || *all[2].Credits != 1 {
		t.Errorf("elements that say what they cost: %d %d %d", *all[0].Credits, *all[1].Credits, *all[2].Credits)
	}
}

// TestRulePrice: a rule may say what its answers cost. A figure of the answer wins, and is paid by
// those that are not free.
func TestRulePrice(t *testing.T) {
	text := strings.Replace(batchOf(byPosition), "    - match: 200 email", "    - {match: 200 email again, price: 0}\n    - {match: 200 email~gold., price: 9}\n    - {bad_row: 200 wrong, price: 3}\n    - match: 200 email", 1)
	e := parsed(t, text)
	if e.Price.Max() != 9 {
		t.Errorf("%d is held, want the highest price of a rule", e.Price.Max())
	}
	r, _ := e.Request(resolution.Email)
	for _, f := range []struct {
		spent string
		want  [4]int64
	}{{"", [4]int64{0, 9, 2, 3}}, {"5", [4]int64{0, 3, 2, 0}}} {
		h := http.Header{}
		if f.spent != "" {
			h.Set("X-Spent", f.spent)
		}
		all := r.Judge(exchange.NewAsked(nil), Response{Status: 200, Header: h, Body: []byte(`{"out":[{"email":"a@x.example","again":true},{"email":"b@gold.example"},{"email":"c@x.example"},{"wrong":1}]}`)},
			"a@x.example", "b@gold.example", "c@x.example", "d@x.example")
		for i, v := range all {
			if v.Credits == nil || *v.Credits != f.want[i] {
				t.Errorf("spent %q: key %d: %+v, want %d", f.spent, i, v, f.want[i])
			}
		}
	}
	if cheap := parsed(t, strings.Replace(text, "price: 9", "price: 1", 1)); cheap.Digest() == e.Digest() {
		t.Error("another price is no other entry")
	}
}

// TestRules: an answer by the rules of the entry and by those of a poll.
func TestRules(t *testing.T) {
	e := parsed(t, laterBy(`"GET /tasks/{task.id}"`, "", `, answers: [{later: 200 wait}, {match: 200 data}]`))
	r, _ := e.Request(resolution.Email)
	for _, f := range []struct {
		answer  Response
		outcome Outcome
		rule    int
	}{
		{Response{Status: 200, Body: []byte(`{"data":1}`)}, Match, 1}, {Response{Status: 404}, NoMatch, 2}, {Response{Status: 500}, Unknown, 0}, {Response{Status: 200, Body: []byte("\ufeff{\"data\":1}")}, Match, 1},
		{Response{Status: 200, Body: []byte(`{"data":1}`), Polled: true}, Match, 2}, {Response{Status: 200, Body: []byte(`{"wait":1}`), Polled: true}, Later, 1},
		{Response{Status: 500, Polled: true}, Later, 0}, {Response{Status: 410, Polled: true}, Unknown, 0}, {Response{Status: 404, Polled: true}, Unknown, 0},
	} {
		if v := r.Judge(exchange.NewAsked(nil), f.answer, "a@x.example")[0]; v.Outcome != f.outcome || v.Rule != f.rule {
			t.Errorf("%+v: %+v, want %s by %d", f.answer, v, f.outcome, f.rule)
		}
	}
}
