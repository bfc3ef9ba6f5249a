package order

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
)

// lettered is a resolver that says a letter about each key, by its place: m a match, . none, u an
// unknown call, b that its budget is used up, o that it is out, r that the row is bad, c that an
// answer does not come in time, d that it refuses the key. A capital M or N is stored, and R is
// a bad row that it has refused before, and p none that costs 2 credits.
type lettered struct {
	scripted
	says  string
	mu    *sync.Mutex
	asked *[]int
}

func (l *lettered) letter(key string) (place int, words string) {
	_, _ = fmt.Sscanf(key, "key%d", &place)
	return place, map[byte]string{
		'm': "email=1 credits=1", 'M': "email=1 credits=1 stored", '.': "none", 'N': "none stored", 'u': "unknown", 'b': "budget", 'o': "outage", 'r': "refused", 'c': "parked", 'd': "denied", 'R': "refused before", 'p': "none credits=2",
	}[l.says[place]]
}

func (l *lettered) look(_ context.Context, keys []string, says func(int, *purchase.Looked), _ func(func())) error {
	for i, key := range keys {
		_, words := l.letter(key)
		looked := purchase.Looked{Decision: purchase.Ask}
		switch has := strings.Contains(words, "stored"); {
		case strings.Contains(words, "before"): // it is asked again
			looked.Stored = true
		case has:
			looked = purchase.Looked{Result: l.answer(strings.Fields(words), key), Decision: purchase.UseStored, Stored: true}
		case l.offline:
			looked = purchase.Looked{Result: purchase.Result{Outcome: 5, Reason: "not_stored"}, Decision: purchase.Skip}
		}
		says(i, &looked)
	}
	return nil
}

func (l *lettered) ask(_ context.Context, keys []string, says func(int, purchase.Result)) error {
	for i, key := range keys {
		place, words := l.letter(key)
		l.mu.Lock()
		*l.asked = append(*l.asked, place)
		l.mu.Unlock()
		says(i, l.answer(strings.Fields(words), key))
	}
	return nil
}

// TestGates: a resolver with a min_match is judged by its first four keys in the order of the input,
// whatever others wait for, and is asked about no key behind one that waits until then.
func TestGates(t *testing.T) {
	for _, c := range []struct {
		name, settings string
		a, b           string // what the resolver before, and the judged one, say about each key
		asked          string // the places that the judged one is asked about
		judged         string
		waits          string // the rows that wait, and what for
	}{
		{"too few matches close it", "", "........", "m.......", "0 1 2 3", "b closed", ""},
		{"enough keep it open", "", "........", "m.m.....", "0 1 2 3 4 5 6 7", "b open", ""},
		{"a key that does not need it does not count", "", "mm......", "......m.", "2 3 4 5", "b closed", ""},
		{"a key that waits before it holds it up", "", "..b.....", "mm......", "0 1", "", "2-7 budget:a"},
		{"stored answers count up to that key", "", "..b.....", "mmmMMMMM", "0 1", "", "2 budget:a"},
		{"so do those of the one before", "", ".Nb.NNNN", "mm......", "0 1", "", "2-7 budget:a"},
		{"an outage is the same", "", "..oNNNNN", "mm......", "0 1", "", "2-7 unavailable:a"},
		{"the first key waits", "", "bNNNNNNN", "mmmmmmmm", "", "", "0-7 budget:a"},
		{"it waits itself", "", "........", "m..b....", "0 1 2 3", "", "3-7 budget:b"},
		{"whoever is behind the verdict may wait", "", "....b...", "m.......", "0 1 2 3", "b closed", "4 budget:a"},
		{"a row that failed before it holds up nobody", "", "u.......", "m.......", "1 2 3 4", "b closed", ""},
		{"nor one whose answer is late", "", "c.......", "m.......", "1 2 3 4", "b closed", ""},
		{"nor one that is refused before", "", "d.......", "m.......", "1 2 3 4", "b closed", ""},
		{"a bad row before it comes to it", "", "r.......", "m.......", "0 1 2 3", "b closed", ""},
		{"an unknown call of it is no match", "", "........", "mu......", "0 1 2 3", "b closed", ""},
		{"so are a bad row and a late answer", "", "........", "mrc.....", "0 1 2 3", "b closed", ""},
		{"what else passes comes to it", "a", "o.......", "m.......", "0 1 2 3", "b closed", ""},
		{"what passes it in an outage does not count", "b", "........", "om......", "0 1 2 3 4", "b closed", ""},
		{"an unknown call that is passed does", "b", "........", "um......", "0 1 2 3", "b closed", ""},
		{"a key behind one that waits does not pass", "b", "..oNNNNN", "mm......", "0 1", "", "2-7 unavailable:a"},
		{"a key that went past one, and waits behind it, does not hold it up", "verified", "o.......", "m.......", "0 1 2 3", "b closed", "0 budget:v"},
		{"what it has refused before counts, where a later one has answered since", "later", "NNNNNNNN", "RRRR....", "", "b closed", ""},
		{"what it was not asked does not", "later", "NNNNNNNN", "RRR.....", "", "", ""},
		{"whom it is too dear for does not count", "dear", "p.p.....", "mmm.....", "1 3 4 5", "b closed", ""},
		{"without calls, what is not stored is no match, and no verdict is kept", "offline", "NNNNNNNN", "M.......", "", "", "1-3 not_stored:b"},
		{"with all stored it is", "offline", "NNNNNNNN", "MNNN....", "", "b closed", ""},
	} {
		o := &Order{Counters: &stats.CallCounters{}, Steps: []*Step{
			{Name: "a", Remote: &purchase.Remote{}, ElseNext: c.settings == "a" || c.settings == "verified"}, {Name: "b", Remote: &purchase.Remote{}, MinMatch: 0.5, ElseNext: c.settings == "b"}, {Name: "c", Remote: &purchase.Remote{}},
		}}
		all := "NNNNNNNN" // of the last
		if c.settings == "later" {
			all = "MMMMMMMM"
		}
		says := []string{c.a, c.b, all}
		if c.settings == "dear" {
			o.PerKey, o.Steps[1].Remote.Price.Match = 2, 1
		}
		if c.settings == "verified" {
			o.Want = []string{"email"}
			o.Steps = slices.Insert(o.Steps, 2, &Step{Name: "v", Remote: &purchase.Remote{}, Verifies: "email", Accept: map[string][]string{"email_status": {"valid"}}})
			says = slices.Insert(says, 2, "b")
		}
		if err := o.Check(resolution.Enrichment); err != nil {
			t.Fatal(err)
		}
		for batch := 1; batch <= len(c.a); batch++ {
			var asked, ignored []int
			var mu sync.Mutex
			kept := map[string]bool{}
			chain := &Chain{order: o, run: "run", gates: newGates(o, Options{Judge: 4, KeepJudged: func(judged map[string]bool) error { maps.Copy(kept, judged); return nil }})}
			for i, says := range says {
				to := &ignored
				if i == 1 {
					to = &asked
				}
				chain.askers = append(chain.askers, &lettered{scripted{order: o, step: o.Steps[i], offline: c.settings == "offline"}, says, &mu, to})
			}
			waits := map[string][]int{}
			for from := 0; from < len(c.a); from += batch {
				var keys []string
				for i := from; i < min(from+batch, len(c.a)); i++ {
					keys = append(keys, fmt.Sprint("key", i))
				}
				w, err := chain.walk(t.Context(), chain.Turn(), keys, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				for i := range keys {
					if got, reason := w.results[i].outcome(o, &w.keys[i]); got.String() == "skipped" {
						waits[reason] = append(waits[reason], from+i)
					}
				}
			}
			slices.Sort(asked)
			judged := ""
			for name, open := range chain.Judged() {
				judged = name + map[bool]string{true: " open", false: " closed"}[open]
			}
			var text []string
			for _, reason := range slices.Sorted(maps.Keys(waits)) {
				text = append(text, spans(waits[reason])+" "+reason)
			}
			if got := strings.Trim(fmt.Sprint(asked), "[]"); got != c.asked || judged != c.judged || strings.Join(text, "; ") != c.waits || !maps.Equal(kept, chain.Judged()) && len(kept)+len(chain.Judged()) > 0 {
				t.Errorf("%s, in batches of %d: asked %q, %q, waits %q, kept %v; want %q, %q, %q", c.name, batch, got, judged, text, kept, c.asked, c.judged, c.waits)
			}
		}
	}
}

// TestGateCountsKeysOnce: a key that comes again, in the batch or a later one, is no other key for a
// min_match.
func TestGateCountsKeysOnce(t *testing.T) {
	o := &Order{Counters: &stats.CallCounters{}, Steps: []*Step{{Name: "a", Remote: &purchase.Remote{}, MinMatch: 0.5}}}
	if err := o.Check(resolution.Enrichment); err != nil {
		t.Fatal(err)
	}
	for batch := 1; batch <= 3; batch++ {
		var mu sync.Mutex
		chain := &Chain{order: o, run: "run", gates: newGates(o, Options{Judge: 4})}
		chain.askers = []asker{&lettered{scripted{order: o, step: o.Steps[0]}, "m...", &mu, new([]int)}}
		for some := range slices.Chunk([]string{"key0", "key1", "key2", "key0", "key0", "key3"}, batch) {
			if _, err := chain.walk(t.Context(), chain.Turn(), some, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		if open, judged := chain.Judged()["a"]; open || !judged {
			t.Errorf("in batches of %d: one of four keys matches; judged %v, open %v", batch, judged, open)
		}
	}
}

// spans writes places in ascending order, as 2 4-7.
func spans(places []int) string {
	var all []string
	for i := 0; i < len(places); {
		j := i
		for j+1 < len(places) && places[j+1] == places[j]+1 {
			j++
		}
		if i == j {
			all = append(all, fmt.Sprint(places[i]))
		} else {
			all = append(all, fmt.Sprintf("%d-%d", places[i], places[j]))
		}
		i = j + 1
	}
	return strings.Join(all, " ")
}
