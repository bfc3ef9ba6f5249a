package order

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/internal/testkit/rapidtest"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
)

// remembering is a resolver whose answers are stored when they are bought.
type remembering struct {
	scripted
	knows  map[string]string // words by key, or value
	stored map[string]string
	out    map[string]bool // keys that it does not answer now
	mu     *sync.Mutex
}

func (r *remembering) look(_ context.Context, keys []string, says func(int, *purchase.Looked), _ func(func())) error {
	for i, key := range keys {
		r.mu.Lock()
		words, stored := r.stored[key], true
		r.mu.Unlock()
		if r.step.Remote == nil {
			words = r.knows[key]
		} else if words == "" {
			stored = false
		}
		l := purchase.Looked{Decision: purchase.Ask}
		if stored {
			l = purchase.Looked{Result: r.answer(strings.Fields(words), key), Decision: purchase.UseStored, Stored: true}
		}
		says(i, &l)
	}
	return nil
}

func (r *remembering) ask(_ context.Context, keys []string, says func(int, purchase.Result)) error {
	for i, key := range keys {
		says(i, r.buy(key))
	}
	return nil
}

// buy asks once about a key.
func (r *remembering) buy(key string) purchase.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out[key] {
		return r.answer([]string{"outage"}, key)
	}
	if r.stored[key] == "" {
		*r.calls = append(*r.calls, r.step.Name+" "+key)
		r.stored[key] = r.knows[key] + " stored mine"
	}
	return r.answer(strings.Fields(r.stored[key]), key)
}

// job is an order with what its resolvers know and what is stored of it.
type job struct {
	order  *Order
	keys   []string
	knows  map[string]map[string]string // by resolver
	stored map[string]map[string]string
	out    map[string]map[string]bool
	made   map[string]result // by key
}

// rows makes the rows of batches of keys, by key, and says what was asked.
func (j *job) rows(t *rapid.T, batches ...[]string) (rows map[string]string, calls []string) {
	c, mu := &Chain{order: j.order, run: "run"}, sync.Mutex{}
	for _, s := range j.order.Steps {
		c.askers = append(c.askers, &remembering{scripted{order: j.order, step: s, calls: &calls}, j.knows[s.Name], j.stored[s.Name], j.out[s.Name], &mu})
	}
	rows, j.made = map[string]string{}, map[string]result{}
	for _, keys := range batches {
		w := newBatchWalk(c, keys, nil)
		if err := w.advance(context.Background(), places(0, len(keys))); err != nil {
			t.Fatal(err)
		}
		for i, key := range keys {
			rows[key], j.made[key] = rowText(j.order, &w.keys[i], &w.results[i]), w.results[i]
		}
	}
	return rows, calls
}

// drawJob draws an order, and what its resolvers know. Without verifiers and for, unless it is whole.
func drawJob(t *rapid.T, whole bool) *job {
	j := &job{knows: map[string]map[string]string{}, stored: map[string]map[string]string{}}
	j.order = &Order{Counters: &stats.CallCounters{}, Want: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"email", "phone", "job_title", "company_name", "company_domain"}), 0, 3, rapid.ID).Draw(t, "want")}
	want := j.order.Want
	for i := range rapid.IntRange(1, 3).Draw(t, "keys") {
		j.keys = append(j.keys, fmt.Sprint("key", i))
	}
	word := func(column string, values ...string) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			if rapid.IntRange(0, 2).Draw(t, column) == 0 {
				return ""
			}
			return column + "=" + rapid.SampledFrom(values).Draw(t, "value")
		})
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "resolvers") {
		s := &Step{Name: string("abcd"[i]), Remote: &purchase.Remote{}}
		switch {
		case whole && slices.Contains(want, "email") && rapid.IntRange(0, 3).Draw(t, "verifies") == 0:
			s.Verifies, s.Accept = "email", map[string][]string{"email_status": {"valid"}}
		case rapid.IntRange(0, 4).Draw(t, "reference data") == 0:
			s.Name, s.Remote = "dir"+s.Name, nil
		}
		s.ElseNext = s.Remote != nil && rapid.IntRange(0, 2).Draw(t, "else next") == 0
		if len(want) > 0 && s.Verifies == "" {
			if whole && rapid.Bool().Draw(t, "for some") {
				s.For = rapid.SliceOfNDistinct(rapid.SampledFrom(want), 1, len(want), rapid.ID).Draw(t, "for")
			}
			if rapid.IntRange(0, 3).Draw(t, "accepts") == 0 {
				s.Accept = map[string][]string{"email_status": {"valid"}, "job_title": {"cook"}}
			}
		}
		j.order.Steps = append(j.order.Steps, s)
		knows := map[string]string{}
		for _, key := range append(slices.Clone(j.keys), "1", "2") {
			switch n := rapid.IntRange(0, 9).Draw(t, "knows"); {
			case s.Verifies != "":
				knows[key] = "credits=1 valid=" + rapid.SampledFrom([]string{"1", "2", "1,2", "0"}).Draw(t, "valid")
			case n < 3:
				knows[key] = "none credits=1"
			case n == 3 && s.Remote != nil:
				knows[key] = "refused"
			default:
				words := []string{"id=" + s.Name}
				for _, w := range []*rapid.Generator[string]{word("email", "1", "2"), word("phone", "1", "2"), word("title", "cook", "baker"), word("company", "Inn", "Mill"), word("domain", "i.example", "m.example"), word("status", "valid", "risky"), word("credits", "1", "2")} {
					words = append(words, w.Draw(t, "word"))
				}
				knows[key] = strings.Join(words, " ")
			}
		}
		j.knows[s.Name], j.stored[s.Name] = knows, map[string]string{}
	}
	if err := j.order.Check(resolution.Enrichment); err != nil {
		t.Fatal(err)
	}
	return j
}

// store stores some of what the resolvers know, as if other jobs had bought it.
func (j *job) store(t *rapid.T) {
	for _, s := range j.order.Steps {
		for _, key := range j.keys {
			if s.Remote != nil && s.Verifies == "" && rapid.IntRange(0, 2).Draw(t, "is stored") == 0 {
				j.stored[s.Name][key] = j.knows[s.Name][key] + " stored"
			}
		}
	}
}

// batches draws batches of the keys, in any order.
func (j *job) batches(t *rapid.T) (all [][]string) {
	keys := rapid.Permutation(j.keys).Draw(t, "arrive")
	at := rapid.IntRange(0, len(keys)).Draw(t, "second batch")
	return [][]string{keys[:at], keys[at:]}
}

// copied is the same job, with what is stored in maps of its own.
func (j *job) copied() *job {
	other := *j
	other.stored = map[string]map[string]string{}
	for name, stored := range j.stored {
		other.stored[name] = maps.Clone(stored)
	}
	return &other
}

// TestRowsFollowFromAnswers: whatever the order, and whatever is stored at first, rows do not depend
// on when their keys arrive, nor on outages once they are over, except by what these have bought. They
// are the same when they are made again, without a call, also by another run.
func TestRowsFollowFromAnswers(t *testing.T) {
	rapidtest.Checks(t, 2000)
	rapid.Check(t, func(t *rapid.T) {
		j := drawJob(t, true)
		j.store(t)
		whole, disturbed := j.copied(), j.copied()
		want, asked := whole.rows(t, whole.keys)
		if got, calls := j.rows(t, j.batches(t)...); !maps.Equal(got, want) || len(calls) != len(asked) {
			t.Fatalf("%s: keys arrive in another order\n%v %v, want\n%v %v", j.order.Identity(), got, calls, want, asked)
		}
		if got, calls := j.rows(t, j.keys); !maps.Equal(got, want) || len(calls) > 0 {
			t.Fatalf("%s: made again\n%v %v, want\n%v", j.order.Identity(), got, calls, want)
		}
		disturbed.out = map[string]map[string]bool{}
		for _, step := range j.order.Steps {
			out := map[string]bool{}
			for _, key := range slices.Sorted(maps.Keys(j.knows[step.Name])) {
				out[key] = rapid.IntRange(0, 2).Draw(t, "is out") == 0
			}
			disturbed.out[step.Name] = out
		}
		disturbed.rows(t, disturbed.batches(t)...)
		disturbed.out = nil
		got, _ := disturbed.rows(t, disturbed.batches(t)...)
		for _, key := range j.keys {
			if got[key] != want[key] && !disturbed.outageBought(whole, key) {
				t.Fatalf("%s: after an outage\n%v, want\n%v", j.order.Identity(), got, want)
			}
		}
		disturbed.forgetRun()
		if again, calls := disturbed.rows(t, j.keys); !maps.Equal(again, got) || len(calls) > 0 {
			t.Fatalf("%s: made by another run\n%v %v, want\n%v", j.order.Identity(), again, calls, got)
		}
	})
}

// outageBought reports whether the row of a key rests on what an outage has bought: an answer of a
// resolver that stored answers of later ones leave nothing to ask for, or one that leaves an earlier
// resolver, which did not pass on the key in an outage itself, nothing to ask for.
func (j *job) outageBought(undisturbed *job, key string) bool {
	got, want := j.made[key], undisturbed.made[key]
	mine := func(i int) bool { return strings.HasSuffix(j.stored[j.order.Steps[i].Name][key], " mine") }
	return slices.ContainsFunc(got.used, func(i int) bool { return mine(i) && slices.Contains(want.needless, i) }) ||
		slices.ContainsFunc(got.needless, func(i int) bool {
			return !j.order.Steps[i].ElseNext && slices.Contains(want.used, i) && slices.ContainsFunc(got.used, func(later int) bool { return later > i && mine(later) })
		})
}

// forgetRun lets another run have bought what is stored.
func (j *job) forgetRun() {
	for _, stored := range j.stored {
		for key, words := range stored {
			stored[key] = strings.TrimSuffix(words, " mine")
		}
	}
}

// TestReorderIsFree: a finished job whose paid resolvers change their places asks nobody. With for it
// may: an answer with more than its resolver is for now does not count.
func TestReorderIsFree(t *testing.T) {
	rapidtest.Checks(t, 2000)
	rapid.Check(t, func(t *rapid.T) {
		j := drawJob(t, false)
		slices.SortStableFunc(j.order.Steps, func(a, b *Step) int { return cmp.Compare(len(b.Name), len(a.Name)) }) // reference data comes first: it is not stored
		before := j.order.Identity()
		j.rows(t, j.keys)
		j.forgetRun()
		first := slices.IndexFunc(j.order.Steps, func(s *Step) bool { return s.Remote != nil })
		if first >= 0 {
			copy(j.order.Steps[first:], rapid.Permutation(slices.Clone(j.order.Steps[first:])).Draw(t, "again"))
		}
		if rows, calls := j.rows(t, j.keys); len(calls) > 0 {
			t.Fatalf("%s, then %s: %v was asked for\n%v", before, j.order.Identity(), calls, rows)
		}
	})
}
