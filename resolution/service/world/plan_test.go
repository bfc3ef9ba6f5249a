package world

import (
	"fmt"
	"time"

	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/resolution"
)

// plan is what a seed decides of a world before its first life.
type plan struct {
	organizations []*organization
	keys          []*key
	calls         []*call
	grants        []*grant
	gifts         []*grant // of administrators
	clients       int      // goroutines that call
	administered  bool     // another process changes the state meanwhile
	crashes       int      // lives that crash, unless they end before
	span          int      // steps of a life before its crash, at most
	hasty         float64
	ill           float64 // the share of posts that a receiver does not accept
	oneReceiver   bool    // of all callbacks
	failing       float64 // the share of searches that fail
	workers       int
	diskFails     float64
	diskSlow      time.Duration
	fullDisk      bool // for some time of some lives
	second        bool // process, which wants the same state
	wrongClock    bool // which is set, too
	damaged       bool // what was synced
}

// organization is one of the service, and what it begins with.
type organization struct {
	id      int64
	public  string
	credits int64
	// refused is since when no call of it was admitted, in this life; zero if the last one was.
	refused time.Time
}

// key is an API key.
type key struct {
	of     *organization
	limit  int64 // credits that it may spend; 0 is any number
	text   string
	public string
	// expires is when the key may be used no longer; zero for never.
	expires time.Time
}

// call is a question that a client asks until it is answered, and then sometimes again.
type call struct {
	number    int
	key       *key
	operation resolution.Operation
	callback  bool
	// loose calls have no idempotency key: each answer is paid.
	loose bool
}

// grant is credits that an operator gives until that is confirmed, or an administrator once.
type grant struct {
	number  int
	of      *organization
	credits int64
}

// prices of an answer, or of a lead of a search.
var prices = map[resolution.Operation]int64{resolution.Enrichment: 2, resolution.NetworkToPhone: 3, resolution.KeywordToLead: 1}

// leadsAsked is how many leads a search asks for. Their price is reserved.
const leadsAsked = 3

func newPlan(w *worldtest.World, l worldtest.Limits) plan {
	in := func(what string, from, to int) int { return from + w.Below(to-from+1, "plan", what) }
	often := func(what string, of int) bool { return w.Below(of, "plan", what) == 0 }
	p := plan{
		clients: in("clients", 1, 5), crashes: min(in("crashes", 0, 5), l.Crashes), span: []int{20, 60, 300, 1200}[in("span", 0, 3)], workers: in("workers", 1, 2),
	}
	for i := range in("organizations", 1, 2) {
		p.organizations = append(p.organizations, &organization{credits: int64(in(fmt.Sprint("credits", i), 1, 30))})
	}
	for i := range in("keys", 1, 4) {
		k := &key{of: p.organizations[i%len(p.organizations)]}
		if often(fmt.Sprint("limit", i), 2) {
			k.limit = int64(in(fmt.Sprint("credits of a key", i), 1, 12))
		}
		p.keys = append(p.keys, k)
	}
	for i := range min(in("calls", 1, 12), l.Keys) {
		of := func(what string) string { return fmt.Sprint(what, i) }
		p.calls = append(p.calls, &call{
			number: i, key: p.keys[in(of("key"), 0, len(p.keys)-1)], callback: often(of("callback"), 2),
			operation: []resolution.Operation{resolution.Enrichment, resolution.NetworkToPhone, resolution.KeywordToLead}[in(of("operation"), 0, 2)],
		})
		switch c := p.calls[i]; {
		case c.operation == resolution.NetworkToPhone:
			c.callback = true // it is required
		case c.operation == resolution.Enrichment && often(of("loose"), 3):
			c.loose, c.callback = true, false
		}
	}
	for i := range in("grants", 0, 2) {
		p.grants = append(p.grants, &grant{number: i, of: p.organizations[i%len(p.organizations)], credits: int64(in(fmt.Sprint("grant", i), 1, 20))})
	}
	p.oneReceiver = often("one receiver", 2)
	if often("failing", 3) {
		p.failing = float64(in("how failing", 1, 8)) / 10
	}
	p.administered = often("administered", 3)
	if often("hasty", 2) {
		p.hasty = float64(in("how hasty", 1, 4)) / 10
	}
	if often("ill", 2) {
		p.ill = float64(in("how ill", 1, 8)) / 10
	}
	if often("bad disk", 3) {
		p.diskFails = float64(in("disk fails", 1, 30)) / 1000
	}
	if often("slow disk", 2) {
		p.diskSlow = time.Duration(in("disk slow", 1, 20)) * time.Millisecond
	}
	p.fullDisk, p.second, p.wrongClock, p.damaged = often("full disk", 5), often("second process", 5), often("wrong clock", 5), often("damage", 5)
	return p
}

// leads is how many leads there are for the search of a number, and 0 or 1 for a record.
func (h *history) leads(c *call) int64 {
	if c.operation == resolution.KeywordToLead {
		return int64(h.world.Below(leadsAsked+1, "leads", c.number))
	}
	return int64(min(h.world.Below(4, "match", c.number), 1))
}

// cost is the price of the answer to a call.
func (h *history) cost(c *call) int64 { return h.leads(c) * prices[c.operation] }

func profile(number int) string { return fmt.Sprintf("network.example/in/person-%d", number) }

func phone(number int) string { return fmt.Sprintf("+1202555%04d", number) }
