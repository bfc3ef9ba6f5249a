package provider

import (
	"net/http"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution"
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
		v := r.Judge(Answer{Status: 200, Header: http.Header{"X-Cost": {f.header}}, Body: []byte(f.body)}, "a@x.example")[0]
		if v.Credits == nil || *v.Credits != f.want {
			t.Errorf("%+v: %+v", f, v)
		}
	}
	e := parsed(t, strings.Replace(batchOf(byPosition), "header X-Spent", "body c", 1))
	r, _ := e.Request(resolution.Email)
	all := r.Judge(Answer{Status: 200, Body: []byte(`{"out":[{"email":"a@x.example","c":5},{"email":null,"c":0},{"email":null}]}`)}, "a@x.example", "b@x.example", "c@x.example")
	if *all[0].Credits != 5 || *all[1].Credits != 0 || *all[2].Credits != 1 {
		t.Errorf("elements that say what they cost: %d %d %d", *all[0].Credits, *all[1].Credits, *all[2].Credits)
	}
}

// TestRules: an answer by the rules of the entry and by those of a poll.
func TestRules(t *testing.T) {
	e := parsed(t, laterBy(`"GET /tasks/{task.id}"`, "", `, answers: [{later: 200 wait}, {match: 200 data}]`))
	r, _ := e.Request(resolution.Email)
	for _, f := range []struct {
		answer  Answer
		outcome Outcome
		rule    int
	}{
		{Answer{Status: 200, Body: []byte(`{"data":1}`)}, Match, 1}, {Answer{Status: 404}, NoMatch, 2}, {Answer{Status: 500}, Unknown, 0}, {Answer{Status: 200, Body: []byte("\ufeff{\"data\":1}")}, Match, 1},
		{Answer{Status: 200, Body: []byte(`{"data":1}`), Polled: true}, Match, 2}, {Answer{Status: 200, Body: []byte(`{"wait":1}`), Polled: true}, Later, 1},
		{Answer{Status: 500, Polled: true}, Later, 0}, {Answer{Status: 410, Polled: true}, Unknown, 0}, {Answer{Status: 404, Polled: true}, Unknown, 0},
	} {
		if v := r.Judge(f.answer, "a@x.example")[0]; v.Outcome != f.outcome || v.Rule != f.rule {
			t.Errorf("%+v: %+v, want %s by %d", f.answer, v, f.outcome, f.rule)
		}
	}
}
