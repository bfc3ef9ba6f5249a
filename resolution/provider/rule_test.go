package provider

import (
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/jsontree"
)

func TestRule(t *testing.T) {
	for _, f := range []struct {
		rule, body string
		status     int
		want       bool
	}{
		{"200", "{}", 200, true}, {"200", "{}", 201, false}, {"5xx", "", 503, true}, {"5xx", "", 404, false}, {"*", "oops", 418, true}, {"401 | 403", "", 403, true},
		// A body that is cut off, or has more than one value, fits nothing with a 2xx.
		{"200", `{"a":1`, 200, false}, {"200", `{}{}`, 200, false}, {"200", "", 200, false}, {"*", "", 202, false}, {"204", "", 204, true}, {"204", "x", 204, false},
		{"404", `{"a":1`, 404, true}, {"404 !a", "", 404, false}, {"404 a", "<p>", 404, false},
		// There, empty, absent.
		{"200 a", `{"a":0}`, 200, true}, {"200 a", `{"a":false}`, 200, true}, {"200 a", `{"a":""}`, 200, false}, {"200 a", `{"a":[]}`, 200, false}, {"200 a", `{"a":{}}`, 200, false},
		{"200 a", `{"a":null}`, 200, false}, {"200 a", `{}`, 200, false}, {"200 a.b", `{"a":{"b":"x"}}`, 200, true}, {"200 a.*", `{"a":["","x"]}`, 200, true},
		{"200 !a", `{"a":null}`, 200, true}, {"200 !a", `{"a":{}}`, 200, true}, {"200 !a", `{}`, 200, false}, {"200 !a", `[]`, 200, false}, {"200 !a", `{"a":0}`, 200, false},
		{"200 !a.b", `{"a":{}}`, 200, true}, {"200 !a.b", `{"a":[]}`, 200, true}, {"200 !a.b", `{"a":null}`, 200, false}, {"200 !a.b", `{}`, 200, false}, {"200 !a.b", `{"a":"x"}`, 200, false},
		{"200 !a.b", `{"a":{"b":"x"}}`, 200, false}, {"200 !a.0.b", `{"a":[{}]}`, 200, true}, {"200 !a.0.b", `{"a":[]}`, 200, false}, {"200 !.", `[]`, 200, true}, {"200 !.", `[1]`, 200, false},
		// Comparisons: text as it is, the rest as JSON writes it.
		{"200 a=x", `{"a":"x"}`, 200, true}, {"200 a=x", `{"a":"X"}`, 200, false}, {"200 a=1", `{"a":1}`, 200, true}, {"200 a=1", `{"a":1.0}`, 200, false}, {"200 a=1", `{"a":"1"}`, 200, true},
		{"200 a=true", `{"a":true}`, 200, true}, {`200 a="x y"`, `{"a":"x y"}`, 200, true}, {`200 a="x | y"`, `{"a":"x | y"}`, 200, true}, {`200 a=""`, `{"a":""}`, 200, true}, {`200 a=""`, `{"a":null}`, 200, false},
		{"200 a!=x", `{"a":"y"}`, 200, true}, {"200 a!=x", `{"a":"x"}`, 200, false}, {"200 a!=x", `{}`, 200, false}, {"200 a!=x", `{"a":null}`, 200, false}, {"200 a.*=x", `{"a":["y","x"]}`, 200, true},
		{"200 a.*!=x", `{"a":["y","x"]}`, 200, false}, {"200 a[k=v].n=1", `{"a":[{"k":"v","n":1}]}`, 200, true}, {"200 a[k=v].n!=1", `{"a":[{"k":"v","n":2}]}`, 200, true},
		// A part of a text.
		{`429 e~"daily limit"`, `{"e":"The daily limit is used."}`, 429, true}, {"429 e~daily", `{"e":"The Daily limit"}`, 429, false}, {"429 e~daily", `{"f":"daily"}`, 429, false}, {"429 e~daily", `{"e":null}`, 429, false},
		{"429 e.*.m~daily", `{"e":[{"m":"x"},{"m":"a daily one"}]}`, 429, true}, {"429 e.*.m~daily", `{"e":[{"m":"x"}]}`, 429, false}, {"429 e~daily e~used", `{"e":"daily, used"}`, 429, true},
		{"429 e!~daily", `{"e":"hourly"}`, 429, true}, {"429 e!~daily", `{"e":"daily"}`, 429, false}, {"429 e!~daily", `{}`, 429, false},
		{"429 c~42", `{"c":1429}`, 429, true}, {`429 .~"a ~ b"`, `"a ~ b."`, 429, true}, {`429 a\~b=1`, `{"a~b":1}`, 429, true}, {"429 e[k=a~b].m~x", `{"e":[{"k":"a~b","m":"xy"}]}`, 429, true}, {"429 e=a~b", `{"e":"a~b"}`, 429, true},
		{"200 a b=1 | 404 c", `{"a":1,"b":1}`, 200, true}, {"200 a b=1 | 404 c", `{"a":1,"b":2}`, 200, false}, {"200 a b=1 | 404 c", `{"c":1}`, 404, true},
		{"200 null", "null", 200, true}, {"200 null", "{}", 200, false}, {"200 null", "", 200, false},
	} {
		r, err := parseRule("match", f.rule)
		if err != nil {
			t.Errorf("%s: %v", f.rule, err)
			continue
		}
		var d jsontree.Decoder
		var v Verdict
		v.classify([]rule{r}, received{f.status, d.Decode([]byte(f.body)), f.body == ""})
		if got := v.Outcome == Match; got != f.want || got != (v.Rule == 1) {
			t.Errorf("%s, %d %s: %v", f.rule, f.status, f.body, got)
		}
	}
}

func TestNoRule(t *testing.T) {
	for _, f := range []struct{ outcome, text, want string }{
		{"match", "200 |", "nothing follows"}, {"match", "| 200", "nothing stands between"}, {"match", "200 | | 404", "nothing stands between"}, {"match", `200 a="x`, "double quote"}, {"match", `200 a="x"y`, "do not end it"},
		{"match", "200 a=", "is missing"}, {"match", "200 a~", "is missing"}, {"match", `200 a~""`, "an empty one"}, {"match", `200 a!~""`, "an empty one"}, {"match", "200 =x", "is missing"}, {"match", "200 a..b", "no path"}, {"match", "200" + strings.Repeat(" a", 17), "more than 16 conditions"}, {"match", "match", "no status"},
	} {
		if _, err := parseRule(f.outcome, f.text); err == nil || !strings.Contains(err.Error(), f.want) {
			t.Errorf("%s: %s: %v, want %s", f.outcome, f.text, err, f.want)
		}
	}
}

// FuzzRule: no rule and no body makes it fail, and a body that is not JSON fits no rule for a 2xx.
func FuzzRule(f *testing.F) {
	f.Add(`200 a=1 !b.c[d=e] | 5xx null | * x!="y z"`, `{"a":1,"b":{}}`, 200)
	f.Add("200 a.*.*", `{"a":[[1],2]}`, 204)
	f.Fuzz(func(t *testing.T, text, body string, status int) {
		r, err := parseRule("match", text)
		if err != nil {
			return
		}
		var d jsontree.Decoder
		v, verdict := d.Decode([]byte(body)), Verdict{}
		verdict.classify([]rule{r}, received{status, v, body == ""})
		if verdict.Outcome == Match && len(v) == 0 && status/100 == 2 && body != "" {
			t.Errorf("%q fits %d %q", text, status, body)
		}
	})
}
