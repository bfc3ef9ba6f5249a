package resolutiontest

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/leadetl/leadetl/resolution"
)

// RunSearch checks s, which searches the sample directory, against the facts
// and against the contract of resolution.Searcher. Every search asked has
// keywords and both days, as the interface wants them. A Searcher that cannot
// tell editions apart, because it asks one that does, gives "" as its own.
func RunSearch(t *testing.T, s resolution.Searcher) {
	t.Run("facts", func(t *testing.T) {
		for _, f := range searchFacts {
			t.Run(f.name, func(t *testing.T) { f.check(t, s) })
		}
	})
	t.Run("leads", func(t *testing.T) {
		for _, f := range leadFacts {
			t.Run(f.name, func(t *testing.T) { f.check(t, s) })
		}
	})
	t.Run("matched keywords", func(t *testing.T) { matchedKeywords(t, s) })
	t.Run("pages", func(t *testing.T) { pages(t, s) })
	t.Run("counts", func(t *testing.T) { counts(t, s) })
	t.Run("names come only if asked for", func(t *testing.T) { unnamed(t, s) })
	t.Run("a long keyword", func(t *testing.T) { longKeyword(t, s) })
	t.Run("editions", func(t *testing.T) { editions(t, s) })
	t.Run("from many goroutines", func(t *testing.T) { concurrentSearches(t, s) })
	t.Run("a cancelled context", func(t *testing.T) { cancelledSearch(t, s) })
	t.Run("an invalid page", func(t *testing.T) { invalidPage(t, s) })
}

// onAllDays fills the days in that a fact leaves open.
func onAllDays(k resolution.KeywordSearch) resolution.KeywordSearch {
	if k.Start.IsZero() {
		k.Start, k.End = day(1), day(13)
	}
	return k
}

// allLeads is a page that holds every lead of the sample.
func allLeads(hems int) resolution.SearchPage {
	return resolution.SearchPage{Number: 1, Limit: 100, HEMs: hems}
}

func search(t *testing.T, s resolution.Searcher, ask resolution.KeywordSearch, p resolution.SearchPage) resolution.SearchResult {
	t.Helper()
	r, err := s.Search(t.Context(), onAllDays(ask), p)
	if err != nil {
		t.Fatalf("%+v: %v", ask, err)
	}
	return r
}

// moments names leads as facts do.
func moments(leads []resolution.FoundLead) string {
	var all []string
	for _, l := range leads {
		all = append(all, l.SearchedAt.UTC().Format("02T15:04"))
	}
	return strings.Join(all, " ")
}

func (f searchFact) check(t *testing.T, s resolution.Searcher) {
	r := search(t, s, f.ask, allLeads(20))
	if got := moments(Found(r.Leads)); got != f.want {
		t.Errorf("%+v:\n got %s\nwant %s", f.ask, got, f.want)
	}
	if want := int64(len(strings.Fields(f.want))); r.Total != want {
		t.Errorf("%+v: total %d, want %d", f.ask, r.Total, want)
	}
	for _, l := range Found(r.Leads) {
		if l.MatchedKeywords == nil || !isSubsequence(l.MatchedKeywords, f.ask.Keywords) {
			t.Errorf("%+v: matched %q", f.ask, l.MatchedKeywords)
		}
	}
}

func isSubsequence(part, whole []string) bool {
	for _, w := range whole {
		if len(part) > 0 && part[0] == w {
			part = part[1:]
		}
	}
	return len(part) == 0
}

func (f leadFact) check(t *testing.T, s resolution.Searcher) {
	p := f.page
	p.Number, p.Limit = 1, 1
	r := search(t, s, f.ask, p)
	if r.Leads.Len() != 1 || !reflect.DeepEqual(r.Leads.Found(0), f.want) {
		t.Fatalf("%+v:\n got %s\nwant %s", f.ask, leadsText(Found(r.Leads)), leadsText([]resolution.FoundLead{f.want}))
	}
}

func leadsText(leads []resolution.FoundLead) string {
	b, err := json.MarshalIndent(leads, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// matchedKeywords are of all the lead's searches within the filters, as they
// were asked for.
func matchedKeywords(t *testing.T, s resolution.Searcher) {
	ask := keywords("Tax Software", "software", "robots", "tax  software", "CRM")
	want := map[string][]string{ // by the last search
		"13T05:57": {"Tax Software", "software", "tax  software", "CRM"}, // nia: tax on the 4th, crm on the 13th
		"10T12:44": {"Tax Software", "software", "tax  software", "CRM"}, // cal: tax on the 2nd, crm on the 10th
		"07T04:28": {"software", "CRM"},                                  // kim
		"10T07:43": {"robots"},                                           // vic, whose chair was not asked for
	}
	for _, l := range Found(search(t, s, ask, allLeads(1)).Leads) {
		at := moments([]resolution.FoundLead{l})
		if w, ok := want[at]; ok && !slices.Equal(l.MatchedKeywords, w) {
			t.Errorf("%s: matched %q, want %q", at, l.MatchedKeywords, w)
		}
		delete(want, at)
	}
	if len(want) > 0 {
		t.Errorf("not found: %q", want)
	}
	ask.Start, ask.End = day(10), day(13)
	for _, l := range Found(search(t, s, ask, allLeads(1)).Leads) {
		if at := moments([]resolution.FoundLead{l}); at == "13T05:57" && !slices.Equal(l.MatchedKeywords, []string{"software", "CRM"}) {
			t.Errorf("%s, of its last days: matched %q", at, l.MatchedKeywords)
		}
	}
}

// distinctLeads of the sample: 60 searches by 45.
const distinctLeads = 45

// pages of any size are the one list, cut: nothing twice, nothing missing.
func pages(t *testing.T, s resolution.Searcher) {
	ask := keywords(subjects...)
	whole := search(t, s, ask, allLeads(20))
	leads := Found(whole.Leads)
	if whole.Total != distinctLeads || len(leads) != distinctLeads {
		t.Fatalf("%d leads of %d, want %d", len(leads), whole.Total, distinctLeads)
	}
	if !slices.IsSortedFunc(leads, func(a, b resolution.FoundLead) int {
		if c := b.SearchedAt.Compare(a.SearchedAt); c != 0 {
			return c
		}
		return strings.Compare(a.LeadID, b.LeadID)
	}) {
		t.Errorf("not in order: %s", moments(leads))
	}
	for _, limit := range []int{1, 7, 44, 45, 46} {
		var all []resolution.FoundLead
		for number := 1; ; number++ {
			r := search(t, s, ask, resolution.SearchPage{Number: number, Limit: limit, HEMs: 20})
			if r.Total != distinctLeads || r.Leads.Len() > limit {
				t.Fatalf("page %d of %d: %d leads, total %d", number, limit, r.Leads.Len(), r.Total)
			}
			if r.Leads.Len() == 0 {
				break
			}
			all = append(all, Found(r.Leads)...)
		}
		if !reflect.DeepEqual(all, leads) {
			t.Errorf("pages of %d are %s, want %s", limit, moments(all), moments(leads))
		}
	}
	if r := search(t, s, ask, resolution.SearchPage{Number: 100, Limit: 1000, HEMs: 20}); r.Leads.Len() != 0 || r.Total != distinctLeads {
		t.Errorf("a page far behind the last: %d leads, total %d", r.Leads.Len(), r.Total)
	}
}

// counts are what the pages have.
func counts(t *testing.T, s resolution.Searcher) {
	for _, f := range searchFacts {
		for _, hems := range []int{1, 3, 4, 20} {
			r := search(t, s, f.ask, allLeads(hems))
			want := resolution.SearchCount{Leads: r.Total}
			for _, l := range Found(r.Leads) {
				want.HashedEmails += int64(len(l.HashedEmails))
			}
			if got, err := s.Count(t.Context(), onAllDays(f.ask), hems); err != nil || got != want {
				t.Errorf("%s, %d: %+v, %v; want %+v", f.name, hems, got, err, want)
			}
		}
	}
}

// unnamed looks through everything that is delivered of a lead that was not asked to
// deanonymize, for what deanonymizing adds.
func unnamed(t *testing.T, s resolution.Searcher) {
	for _, super := range []bool{false, true} {
		p := allLeads(20)
		p.SuperEnrichment = super
		hidden := search(t, s, keywords(subjects...), p)
		p.Deanonymize = true
		named := search(t, s, keywords(subjects...), p)
		for i, l := range Found(hidden.Leads) {
			n := named.Leads.Found(i)
			if n.LeadID != l.LeadID {
				t.Fatalf("lead %d is another when it is named", i)
			}
			text := leadsText([]resolution.FoundLead{l})
			secrets := []string{"@", "/in/", `"first_name"`, `"last_name"`, `"full_name"`, `"headline"`, `"email":`, `"emails"`, `"phone"`, `"phones"`,
				`"last_seen_at"`, n.FullName, n.Headline, n.Email, n.Phone, n.NetworkURL, n.Address.Street}
			for _, h := range l.HashedEmails { // whose field is called email
				text = strings.ReplaceAll(text, `"email": "`+h.Email+`"`, "")
			}
			for _, secret := range secrets {
				if secret != "" && secret != n.JobTitle && strings.Contains(text, secret) {
					t.Errorf("super enrichment %v: %q is in %s", super, secret, text)
				}
			}
		}
	}
}

func longKeyword(t *testing.T, s resolution.Searcher) {
	long := strings.Repeat("tea ", 49) + "tea!"
	if r := search(t, s, keywords(long, strings.Repeat("x", 200), strings.Repeat("🍵", 200)), allLeads(20)); r.Total != 0 {
		t.Errorf("total %d", r.Total)
	}
}

func editions(t *testing.T, s resolution.Searcher) {
	ask := keywords("software")
	ask.Edition = s.Edition()
	if ask.Edition == "" {
		t.Skip("the searcher leaves editions to another")
	}
	if got := moments(Found(search(t, s, ask, allLeads(20)).Leads)); got != software {
		t.Errorf("in the present edition %s, want %s", got, software)
	}
	ask.Edition = "an edition of the past"
	if _, err := s.Search(t.Context(), onAllDays(ask), allLeads(20)); !errors.Is(err, resolution.ErrNoEdition) {
		t.Errorf("search: %v, want ErrNoEdition", err)
	}
	if _, err := s.Count(t.Context(), onAllDays(ask), 20); !errors.Is(err, resolution.ErrNoEdition) {
		t.Errorf("count: %v, want ErrNoEdition", err)
	}
}

func concurrentSearches(t *testing.T, s resolution.Searcher) {
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range searchFacts {
				f := searchFacts[(i+g*5)%len(searchFacts)]
				r, err := s.Search(t.Context(), onAllDays(f.ask), allLeads(20))
				if got := moments(Found(r.Leads)); err != nil || got != f.want {
					t.Errorf("%s: %s, %v; want %s", f.name, got, err, f.want)
				}
			}
		})
	}
	wg.Wait()
}

func cancelledSearch(t *testing.T, s resolution.Searcher) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ask := onAllDays(keywords("tea"))
	if _, err := s.Search(ctx, ask, allLeads(20)); !errors.Is(err, context.Canceled) {
		t.Errorf("search: %v, want context.Canceled", err)
	}
	if _, err := s.Count(ctx, ask, 20); !errors.Is(err, context.Canceled) {
		t.Errorf("count: %v, want context.Canceled", err)
	}
}

func invalidPage(t *testing.T, s resolution.Searcher) {
	const secret = "secretword"
	for _, p := range []resolution.SearchPage{{Number: 0, Limit: 10, HEMs: 1}, {Number: 1, Limit: 0, HEMs: 1}, {Number: 1, Limit: 10, HEMs: -1}} {
		_, err := s.Search(t.Context(), onAllDays(keywords(secret)), p)
		if !errors.Is(err, resolution.ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", p, err)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("%+v: the error repeats what was searched for", p)
		}
	}
}
