package badservice

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ProviderFaults are independent probabilities of faults, from 0 to 1.
type ProviderFaults struct {
	// Before a request is billed: Limited is one of the ways to say that it came too fast,
	// Unavailable a 503 that says it is not billed, and ResetBefore a broken connection.
	Limited, Unavailable, ResetBefore float64
	// After it was billed: Failed is a 500 that no rule knows, ResetAfter a broken connection,
	// Truncated a body that ends too early. Doubled sends the answer twice.
	Failed, ResetAfter, Truncated, Doubled float64
	// Of a batch: Shuffled has another order, Short one element less, Foreign one of a key that
	// was not asked about.
	Shuffled, Short, Foreign float64
	// Of each key of a batch: Twice has its element twice, Missing not at all, and Waits says that
	// it came too fast and is not billed.
	Twice, Missing, Waits float64
	// Of an answer that comes later: Lost is gone, and Stumbles are polls that fail.
	Lost, Stumbles float64
}

// ProviderStorm has faults of every kind: about every tenth request fails.
func ProviderStorm() ProviderFaults {
	return ProviderFaults{
		Limited: 0.01, Unavailable: 0.02, ResetBefore: 0.01, Failed: 0.01, ResetAfter: 0.01, Truncated: 0.01, Doubled: 0.01,
		Shuffled: 0.05, Short: 0.01, Foreign: 0.01, Twice: 0.005, Missing: 0.01, Waits: 0.01, Lost: 0.01, Stumbles: 0.1,
	}
}

// Fates of keys that a Service does not have.
const (
	Shuffled Fate = "shuffled"
	Short    Fate = "short"
	Foreign  Fate = "foreign"
	Twice    Fate = "twice"
	Missing  Fate = "missing"
	Waits    Fate = "waits"
	Lost     Fate = "lost"
)

// chance is true with a probability, and the same for a key that was asked so often.
func (p *Provider) chance(kind Fate, of float64, key string, times int) bool {
	return isShare(hashOf("fault", fmt.Sprint(p.options.Seed), p.options.Name, string(kind), key, fmt.Sprint(times)), of)
}

// judge decides how a request ends, and bills its keys.
func (p *Provider) judge(r *http.Request, body []byte) *fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys, poll := p.keys(r, body)
	switch {
	case poll != "":
		return p.poll(poll)
	case len(keys) == 0 || keys[0] == "":
		return p.unbilled(keys, &fate{Refused, newReply(http.StatusBadRequest, map[string]any{"error": "bad_request"})})
	}
	p.requests++
	times := p.asked[keys[0]]
	for _, key := range keys {
		p.asked[key]++
	}
	whole := func(kind Fate, of float64) bool { return p.chance(kind, of, keys[0], times) }
	switch f := p.faults; {
	case p.denied || p.options.Key != "" && r.Header.Get("X-Api-Key") != p.options.Key:
		return p.unbilled(keys, &fate{Denied, newReply(http.StatusUnauthorized, map[string]any{"error": "invalid_key"})})
	case whole(Limited, f.Limited):
		return p.unbilled(keys, &fate{Limited, tooFast(int(hashOf("way", keys[0], fmt.Sprint(times))[0]) % 6)})
	case whole(Unavailable, f.Unavailable):
		return p.unbilled(keys, &fate{Unavailable, newReply(http.StatusServiceUnavailable, map[string]any{"error": "busy"})})
	case whole(ResetBefore, f.ResetBefore):
		if p.options.BillsRetries {
			for _, key := range keys {
				p.note(Asked{key, true, p.options.Match, ResetBefore})
			}
			return &fate{kind: ResetBefore}
		}
		return p.unbilled(keys, &fate{kind: ResetBefore})
	}
	return p.answer(keys, times, whole)
}

// unbilled ends a request about keys that costs nothing.
func (p *Provider) unbilled(keys []string, f *fate) *fate {
	for _, key := range keys {
		p.note(Asked{Key: key, Fate: f.kind})
	}
	return f
}

// tooFast is an answer to a request that came too fast, in one of six ways.
func tooFast(way int) *reply {
	r := newReply(http.StatusTooManyRequests, map[string]any{"error": "too_many_requests"})
	switch way {
	case 0:
		r.header.Set("Retry-After", "1")
	case 1:
		r.header.Set("X-RateLimit-Remaining", "0")
		r.header.Set("X-RateLimit-Reset", "1")
	case 2:
		r.header.Set("Retry-After", time.Now().Add(time.Second).UTC().Format(http.TimeFormat))
	case 3:
		r.status = http.StatusForbidden
	case 4:
		r.status, r.body = http.StatusOK, []byte(`{"state":"throttle_triggered"}`)
	case 5: // no header
	}
	return r
}

// element is what an answer says about a key.
type element struct {
	Asked
	status int
	body   map[string]any
}

// answer bills keys and makes the answer, perhaps with a fault.
func (p *Provider) answer(keys []string, times int, whole func(Fate, float64) bool) *fate {
	all := make([]element, len(keys))
	left := p.options.Credits + p.granted - p.spent
	limited := p.options.Credits >= 0
	for i, key := range keys {
		all[i] = p.elementOf(key)
		e, again := &all[i], p.asked[key]-1
		switch {
		case p.options.Batch > 0 && p.chance(Waits, p.faults.Waits, key, again):
			*e = element{Asked{Key: key, Fate: Waits}, http.StatusTooManyRequests, map[string]any{"error": "too_many_requests"}}
		case limited && left < max(p.options.Match, p.options.NoMatch):
			*e = element{Asked{Key: key, Fate: NoCredits}, http.StatusPaymentRequired, map[string]any{"error": "no_credits"}}
		case p.options.Batch > 0 && p.chance(Missing, p.faults.Missing, key, again):
			e.Fate = Missing
		case p.options.Batch > 0 && p.chance(Twice, p.faults.Twice, key, again):
			e.Fate = Twice
		}
		left -= e.Credits
	}
	f := p.deliver(all, keys, times, whole)
	for _, e := range all {
		if f.kind != Answered && e.Billed && e.Fate == Answered {
			e.Fate = f.kind
		}
		p.note(e.Asked)
	}
	return f
}

// deliver says how an answer is sent: at once or later, or not at all.
func (p *Provider) deliver(all []element, keys []string, times int, whole func(Fate, float64) bool) *fate {
	kind, answered := p.render(all, whole)
	faults := p.faults
	switch {
	case whole(Failed, faults.Failed):
		return &fate{Failed, newReply(http.StatusInternalServerError, map[string]any{"error": "internal"})}
	case whole(ResetAfter, faults.ResetAfter):
		return &fate{kind: ResetAfter}
	case p.options.Polls > 0 && answered.status == http.StatusOK:
		id := hex(hashOf("task", p.options.Name, strings.Join(keys, " "), strconv.Itoa(times))[:8])
		p.tasks[id] = &task{keys, answered}
		if whole(Lost, faults.Lost) {
			delete(p.tasks, id)
			kind = Lost
		}
		return &fate{kind, newReply(http.StatusAccepted, map[string]any{"task": id})}
	case whole(Truncated, faults.Truncated):
		cut := answered.clone()
		cut.body, cut.breaksOff = cut.body[:len(cut.body)/2], times%2 == 1
		return &fate{Truncated, cut}
	case answered.status == http.StatusOK && whole(Doubled, faults.Doubled):
		return &fate{[]Fate{Doubled, DoubledLate}[hashOf("late", keys[0])[0]%2], answered}
	}
	return &fate{kind, answered}
}

// render writes an answer; kind says how a batch differs from what was asked.
func (p *Provider) render(all []element, whole func(Fate, float64) bool) (kind Fate, r *reply) {
	kind = Answered
	var credits int64
	for i := range all {
		e := &all[i]
		credits += e.Credits
		if p.options.Costs == "body" {
			e.body["spent"] = e.Credits
		}
	}
	if p.options.Batch == 0 {
		r = newReply(all[0].status, all[0].body)
		kind = all[0].Fate
	} else {
		kind, r = p.renderBatch(all, whole)
	}
	if p.options.Costs == "header" {
		r.header.Set("X-Credits-Spent", strconv.FormatInt(credits, 10))
	}
	r.header.Set("X-Request-Id", "req_"+hex(hashOf("request", all[0].Key)[:8]))
	return kind, r
}

// renderBatch writes the answer to a batch, whose elements have a status each. If elements go by
// position and one is missing, no other comes twice: then nobody could tell whose they are.
func (p *Provider) renderBatch(all []element, whole func(Fate, float64) bool) (kind Fate, r *reply) {
	kind = Answered
	var list []any
	named := map[string]any{}
	add := func(ref int, key string, e *element) {
		e.body["status"] = e.status
		if p.options.By == ByRef {
			e.body["ref"] = strconv.Itoa(ref)
		}
		list, named[key] = append(list, e.body), e.body
	}
	isShort := len(all) > 1 && whole(Short, p.faults.Short)
	lacks := isShort || slices.ContainsFunc(all, func(e element) bool { return e.Fate == Missing })
	for i := range all {
		e := &all[i]
		if e.Fate != Missing {
			add(i+1, e.Key, e)
		}
		if e.Fate == Twice && !(lacks && p.options.By == ByPosition) {
			add(i+1, e.Key, e)
		}
	}
	if whole(Foreign, p.faults.Foreign) {
		stranger := p.elementOf("network.example/in/stranger")
		stranger.status, stranger.body["person"] = http.StatusOK, p.options.person(stranger.Key, func(string, float64) bool { return true })
		add(len(all)+1, stranger.Key, &stranger)
		kind = Foreign
	}
	if isShort && len(list) > 1 {
		kind, list = Short, list[1:]
		delete(named, all[0].Key)
	}
	if n := len(list); n > 1 && whole(Shuffled, p.faults.Shuffled) {
		kind = Shuffled
		list[0], list[n-1] = list[n-1], list[0]
	}
	switch p.options.By {
	case ByPosition:
		return kind, newReply(http.StatusOK, list)
	case ByName:
		return kind, newReply(http.StatusOK, map[string]any{"answers": named})
	}
	return kind, newReply(http.StatusOK, map[string]any{"answers": list})
}

// poll answers a request for an answer that comes later. It costs nothing.
func (p *Provider) poll(id string) *fate {
	times := p.polled[id]
	p.polled[id]++
	t := p.tasks[id]
	switch {
	case t == nil:
		return &fate{Lost, newReply(http.StatusGone, map[string]any{"error": "gone"})}
	case p.chance("stumbles", p.faults.Stumbles, id, times):
		return []*fate{
			{Failed, newReply(http.StatusInternalServerError, map[string]any{"error": "internal"})},
			{Truncated, &reply{status: http.StatusOK, header: http.Header{}, body: t.reply.body[:len(t.reply.body)/2]}},
			{kind: ResetAfter},
			{Limited, tooFast(5)},
		}[hashOf("stumble", id, fmt.Sprint(times))[0]%4]
	case times < p.options.Polls:
		return &fate{Later, newReply(http.StatusAccepted, map[string]any{"task": id})}
	}
	return &fate{Answered, t.reply}
}

// elementOf is what the provider says about a key.
func (p *Provider) elementOf(key string) element {
	o := &p.options
	share := func(kind string, of float64) bool { return isShare(hashOf("person", o.Name, kind, key), of) }
	e := element{Asked{key, true, o.NoMatch, Answered}, http.StatusOK, map[string]any{}}
	switch {
	case !o.Checks && share("bad row", o.BadRow):
		e = element{Asked{Key: key, Fate: Refused}, http.StatusBadRequest, map[string]any{"error": "bad_row"}}
	case o.Checks:
		e.body["status"] = "invalid"
		if e.Credits = o.Match; share("valid", o.Matched) {
			e.body["status"] = "valid"
		}
	case share("matched", o.Matched):
		e.Credits, e.body["person"] = o.Match, o.person(key, share)
	case share("a 404", 0.5):
		e.status = http.StatusNotFound
	default:
		e.body["person"] = nil
	}
	return e
}

// Says is what the provider says about a profile: the values are "" without one.
func (p *Provider) Says(key string) (email, phone string, matched bool) {
	person, matched := p.elementOf(key).body["person"].(map[string]any)
	if !matched {
		return "", "", false
	}
	if phones := person["phones"].([]string); len(phones) > 0 {
		phone = phones[0]
	}
	return person["email"].(string), phone, true
}

// IsValid is what a verifier says about an address.
func (p *Provider) IsValid(email string) bool { return p.elementOf(email).body["status"] == "valid" }

// person is what a provider knows, other than what others know.
func (o *ProviderOptions) person(key string, share func(string, float64) bool) map[string]any {
	h := hashOf("person", o.Name, key)
	n := int(h[0])<<16 | int(h[1])<<8 | int(h[2])
	first, last := firstNames[int(h[3])%len(firstNames)], lastNames[int(h[4])%len(lastNames)]
	person := map[string]any{
		"profile": key, "name": first + " " + last, "title": titles[int(h[5])%len(titles)], "email": "", "phones": []string{},
		"employer": map[string]any{"name": last + " " + o.Name},
	}
	if share("email", o.Email) {
		person["email"] = fmt.Sprintf("person%d@%s.example", n, o.Name)
	}
	if share("phone", o.Phone) {
		person["phones"] = []string{fmt.Sprintf("+1202555%04d", n%10_000)}
	}
	return person
}
