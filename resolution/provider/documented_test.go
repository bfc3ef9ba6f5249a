package provider

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/jsontree"
)

// TestShipped: the entries of the program read the documented answers of their providers right,
// and each rule of them is the one for some answer.
func TestShipped(t *testing.T) {
	if names := Shipped().Names(); len(names) != 14 || !slices.Equal(names, ShippedNames()) {
		t.Errorf("the entries %v of the files %v, want one of 14 providers each", names, ShippedNames())
	}
	total := 0
	for _, name := range Shipped().Names() {
		t.Run(name, func(t *testing.T) {
			e := Shipped()[name]
			file := "shipped/testdata/" + name + ".yaml"
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			answers, err := ParseDocumented(file, content)
			if err != nil {
				t.Fatal(err)
			}
			if len(e.Warnings()) > 0 || len(e.Documented) != len("2026-11-26") {
				t.Errorf("documented %q, with warnings %q", e.Documented, e.Warnings())
			}
			total += len(answers)
			used, filled := map[[2]int]bool{}, map[string]bool{}
			var isPage, isCut, isNobody bool
			for _, d := range answers {
				for _, difference := range e.Differences(d) {
					t.Error(difference)
				}
				used = e.usedBy(d, used)
				for _, w := range d.want {
					for column, value := range w.columns {
						filled[column] = filled[column] || len(value) > 0
					}
				}
				isNobody = isNobody || slices.ContainsFunc(d.want, func(w wanted) bool { return w.outcome == NoMatch })
				if e.Check == "" {
					e.checkStub(t, d)
				}
				isPage = isPage || d.answer.Status == 502 && strings.HasPrefix(string(d.answer.Body), "<")
				isCut = isCut || d.answer.Status == 200 && !isJSON(d.answer.Body) && d.want[0].outcome == Unknown
			}
			if len(answers) < 10 || !isPage || !isCut || !isNobody {
				t.Errorf("%d answers, a page of an outage: %t, an answer cut off: %t, one of nobody: %t", len(answers), isPage, isCut, isNobody)
			}
			if difference := e.NoCost(answers); difference != "" {
				t.Error(difference)
			}
			e.checkUsed(t, used)
			for _, column := range e.named() {
				if !filled[column] {
					t.Errorf("no documented answer has a value for %s", column)
				}
			}
		})
	}
	if total < 120 {
		t.Errorf("%d answers, want at least 120", total)
	}
}

// checkStub checks that an answer is no match if it has the shape of one and no values.
func (e *Entry) checkStub(t *testing.T, d Documented) {
	var body any
	if !slices.ContainsFunc(d.want, func(w wanted) bool { return w.outcome == Match }) || json.Unmarshal(d.answer.Body, &body) != nil {
		return
	}
	stub := d
	stub.answer.Body, _ = json.Marshal(withoutValues("", body)) // of JSON
	r, _ := e.Request(d.kind)
	for _, v := range stub.judged(r) {
		if v.Outcome == Match {
			t.Errorf("%s: without its values it is a match by rule %d: %s", d.Name, v.Rule, stub.answer.Body)
		}
	}
}

// withoutValues is a value of JSON without texts and numbers, but those that say how a request went and
// whose an element is.
func withoutValues(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = withoutValues(name, member)
		}
	case []any:
		for i, item := range v {
			v[i] = withoutValues("", item)
		}
	case string, float64:
		if !slices.Contains([]string{"status", "ref", "ip"}, name) {
			return ""
		}
	}
	return v
}

// The lists of rules of an entry.
const (
	rulesOfEntry = iota
	rulesOfElements
	rulesOfPoll
)

// usedBy adds the rules that say what an answer is.
func (e *Entry) usedBy(d Documented, used map[[2]int]bool) map[[2]int]bool {
	r, _ := e.Request(d.kind)
	for _, v := range d.judged(r) {
		list := rulesOfEntry
		switch {
		case v.IsElement && &r.batch.rules[0] != &e.rules[0]:
			list = rulesOfElements
		case !v.IsElement && d.answer.Polled && e.later.rules != nil:
			list = rulesOfPoll
		}
		used[[2]int{list, v.Rule}] = true
	}
	return used
}

func (e *Entry) checkUsed(t *testing.T, used map[[2]int]bool) {
	lists := map[int][]rule{rulesOfEntry: e.rules}
	for _, r := range e.requests {
		if r.batch != nil && &r.batch.rules[0] != &e.rules[0] {
			lists[rulesOfElements] = r.batch.rules
		}
	}
	if e.later != nil && e.later.rules != nil {
		lists[rulesOfPoll] = e.later.rules
	}
	for list, rules := range lists {
		for i, r := range rules {
			if !used[[2]int{list, i + 1}] {
				t.Errorf("line %d: no documented answer is %s by this rule", r.line, r.outcome)
			}
		}
	}
}

// named are the columns and helpers that fields name.
func (e *Entry) named() []string {
	all := slices.Concat(slices.Collect(maps.Keys(e.fields.one)), slices.Collect(maps.Keys(e.fields.many)))
	if e.later != nil && e.later.fields != nil {
		all = slices.Concat(all, slices.Collect(maps.Keys(e.later.fields.one)))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func isJSON(body []byte) (is bool) {
	reading(body, func(v jsontree.Value) { is = len(v) > 0 })
	return is
}
