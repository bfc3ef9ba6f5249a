package world

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// all is more than there are of anything.
const all = 1 << 20

// check compares what is stored with what was given and promised, at a moment without calls.
func (h *history) check(ctx context.Context, s *sqlite.Store) {
	if h.world.Alive() != nil {
		return
	}
	charges := map[string]*charges{} // by resolution
	for _, o := range h.plan.organizations {
		entries, err := s.Ledger(ctx, o.id, 0, all)
		h.unexpected("read the ledger", err)
		balance, read := s.Balance(ctx, o.id)
		h.unexpected("read the balance", read)
		keys, listed := s.Keys(ctx, state.KeyChoice{Organization: o.id})
		h.unexpected("list keys", listed)
		spent, summed := s.Spent(ctx, o.id)
		h.unexpected("sum what is spent", summed)
		if err != nil || read != nil || listed != nil || summed != nil {
			return
		}
		h.mu.Lock()
		h.checkLedger(o, entries, balance, keys, spent)
		sumCharges(entries, charges)
		h.mu.Unlock()
	}
	deliveries, err := s.Deliveries(ctx, 0, "", "", all)
	h.unexpected("list callbacks", err)
	if err != nil {
		return
	}
	h.checkWaits(ctx, deliveries)
	h.unexpected("find no damage", s.FindDamage(ctx))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checkCharges(charges)
	h.checkCallbacks(deliveries)
}

// charges are the ledger's entries of one resolution.
type charges struct {
	captures                     int
	captured, reserved, released int64
	key                          string
}

func sumCharges(entries []state.Entry, into map[string]*charges) {
	for _, e := range entries {
		if e.Kind == state.Grant || e.Kind == state.Adjust {
			continue
		}
		id := request.FormatID(e.Resolution)
		c := into[id]
		if c == nil {
			c = &charges{}
			into[id] = c
		}
		c.key = e.Key
		switch e.Kind {
		case state.Capture:
			c.captures++
			c.captured += e.Credits
		case state.Reserve:
			c.reserved += e.Credits
		case state.Release:
			c.released += e.Credits
		}
	}
}

// checkLedger checks the sums of one organization: at no entry of its ledger is less than
// nothing left, or a key above its limit. The caller holds the lock.
func (h *history) checkLedger(o *organization, entries []state.Entry, b state.Balance, keys []state.Key, spent []state.Usage) {
	var sum state.Balance
	var captured int64
	of := map[string]int64{}
	granted := map[string]int{}
	for _, e := range entries {
		sum.Available += e.Available
		sum.Reserved += e.Reserved
		if sum.Available < 0 || sum.Reserved < 0 {
			h.note(fmt.Sprintf("entry %d leaves %+v", e.Seq, sum))
		}
		switch e.Kind {
		case state.Grant:
			granted[e.Note]++
			continue
		case state.Capture:
			captured += e.Credits
		}
		of[e.Key] -= e.Available
		for _, k := range h.plan.keys {
			if k.public == e.Key && k.limit > 0 && of[e.Key] > k.limit {
				h.note(fmt.Sprintf("entry %d brings a key to %d of %d credits", e.Seq, of[e.Key], k.limit))
			}
		}
	}
	if sum != b {
		h.note(fmt.Sprintf("the balance is %+v, and the ledger says %+v", b, sum))
	}
	for _, k := range keys {
		if k.Spent != of[k.Public] {
			h.note(fmt.Sprintf("a key has spent %d, and the ledger says %d", k.Spent, of[k.Public]))
		}
	}
	for _, u := range spent {
		captured -= u.Credits
	}
	if captured != 0 {
		h.note(fmt.Sprintf("the usage lacks %d credits", captured))
	}
	for _, g := range slices.Concat(h.plan.grants, h.plan.gifts) {
		known := h.of(g.name())
		if n := granted[g.name()]; g.of == o && (n > 1+known.stray || n == 0 && known.body != nil || n == 1 && known.body == nil && known.doubtful == 0) {
			h.note(fmt.Sprintf("grant %d is in the ledger %d times", g.number, n))
		}
	}
}

// checkCharges checks that what was answered is charged as often, and that what was not
// answered may be charged at most as often as nobody knows what became of it. The caller holds
// the lock.
func (h *history) checkCharges(charged map[string]*charges) {
	unexplained := maps.Clone(charged)
	for _, c := range h.plan.calls {
		for _, id := range h.of(c.name()).ids {
			h.checkCharge(c, id, charged[id])
			delete(unexplained, id)
		}
	}
	may := map[string]int{}
	for _, c := range h.plan.calls {
		switch g := h.of(c.name()); {
		case c.loose:
			may[c.key.public] += g.doubtful
		case g.forgotten:
			may[c.key.public] += g.stray
		case g.body == nil && g.doubtful > 0:
			may[c.key.public]++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(unexplained)) {
		of := unexplained[id]
		if may[of.key]--; may[of.key] < 0 {
			h.note(fmt.Sprintf("the ledger has %+v of a call that was not answered, or that was answered otherwise", *of))
		}
	}
}

func (h *history) checkCharge(c *call, id string, of *charges) {
	cost := h.cost(c)
	if of == nil {
		of = &charges{key: c.key.public}
	}
	switch {
	case of.key != c.key.public:
		h.note(fmt.Sprintf("call %d is charged to another key", c.number))
	case c.operation != resolution.KeywordToLead:
		if of.captured != cost || of.captures > 1 || of.reserved != 0 {
			h.note(fmt.Sprintf("call %d costs %d, and the ledger has %+v", c.number, cost, *of))
		}
	case of.reserved != leadsAsked*prices[c.operation]:
		h.note(fmt.Sprintf("search %d reserves %d", c.number, of.reserved))
	case of.captured+of.released == 0 && h.of(c.name()).result == nil && !h.of(c.name()).unfound:
	case of.captured == 0 && of.released == of.reserved && h.of(c.name()).mayBe && h.of(c.name()).result == nil:
	case of.captured != cost || of.captures > 1 || of.captured+of.released != of.reserved || h.of(c.name()).unfound:
		h.note(fmt.Sprintf("search %d costs %d, and the ledger has %+v", c.number, cost, *of))
	}
}

// checkCallbacks checks that each call that was answered has its callback, and no other one
// has, neither in the outbox nor at a receiver. The caller holds the lock.
func (h *history) checkCallbacks(deliveries []state.Delivery) {
	posted := map[string]int{} // by resolution
	for _, d := range deliveries {
		posted[request.FormatID(d.Resolution)]++
	}
	for _, c := range h.plan.calls {
		g := h.of(c.name())
		if g.body == nil {
			continue
		}
		n, least := posted[g.ids[0]], 1
		if c.operation == resolution.KeywordToLead && g.result == nil {
			least = 0
		}
		if c.callback && (n < least || n > 1) || !c.callback && n > 0 {
			h.note(fmt.Sprintf("call %d has %d callbacks in the outbox", c.number, n))
		}
	}
	for _, p := range h.posts {
		c := h.plan.calls[p.number]
		g := h.of(c.name())
		switch {
		case !c.callback, g.body == nil && g.doubtful == 0:
			h.note(fmt.Sprintf("call %d has a callback that was not promised", c.number))
		case g.forgotten:
		case slices.ContainsFunc(h.posts, func(other post) bool { return other.number == p.number && other.id != p.id }):
			h.note(fmt.Sprintf("the callback of call %d has two ids", c.number))
		case g.body != nil && p.of != g.ids[0]:
			h.note(fmt.Sprintf("call %d has the callback of another", c.number))
		case g.body != nil && c.operation != resolution.KeywordToLead && !bytes.HasPrefix(p.body, g.body[:len(g.body)-1]):
			h.note(fmt.Sprintf("the callback of call %d is not its answer", c.number))
		}
	}
}

// unsettled returns what is not settled: what is not answered although it could be paid, and
// what was promised and did not come.
func (h *history) unsettled(ctx context.Context, s *sqlite.Store) (all []string) {
	for _, o := range h.plan.organizations {
		balance, err := s.Balance(ctx, o.id)
		h.unexpected("read the balance", err)
		keys, err := s.Keys(ctx, state.KeyChoice{Organization: o.id})
		h.unexpected("list keys", err)
		if balance.Reserved != 0 {
			all = append(all, fmt.Sprintf("%d credits are reserved for ever", balance.Reserved))
		}
		for _, k := range keys {
			left := balance.Available
			if k.Limit > 0 {
				left = min(left, k.Limit-k.Spent)
			}
			all = append(all, h.unsettledOf(k.Public, left)...)
		}
	}
	for _, g := range h.plan.grants {
		if known := h.of(g.name()); known.body == nil && !known.forgotten {
			all = append(all, fmt.Sprintf("grant %d is never confirmed", g.number))
		}
	}
	return all
}

// unsettledOf is unsettled for the calls of a key with some credits left.
func (h *history) unsettledOf(key string, left int64) (all []string) {
	for _, c := range h.plan.calls {
		price := prices[c.operation]
		if c.operation == resolution.KeywordToLead {
			price *= leadsAsked
		}
		g := h.of(c.name())
		switch {
		case c.key.public != key, g.forgotten && g.body == nil, g.body == nil && c.key.expired(h.clock.Now().Add(certain)):
		case g.body == nil && (left >= price || !g.broke):
			all = append(all, fmt.Sprintf("call %d is never answered, and %d credits are left", c.number, left))
		case g.body != nil && c.callback && !slices.ContainsFunc(h.posts, func(p post) bool { return p.number == c.number && p.accepted }):
			all = append(all, fmt.Sprintf("the callback of call %d never arrives", c.number))
		}
	}
	return all
}
