package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
)

// crowd answers searches about numbered people: of "crowd 250" there are 250,
// the first one of page n + 1 also at the end of page n when the words say so
// ("crowd 250 overlapping").
type crowd struct {
	// before, if any, is called for each page and count.
	before func(resolution.KeywordSearch, resolution.SearchPage) error

	mu    sync.Mutex
	asked []string // "crowd 250 2": of which search, and which page
}

func (c *crowd) Edition() string { return "1" }

func (c *crowd) Search(_ context.Context, s resolution.KeywordSearch, p resolution.SearchPage) (r resolution.SearchResult, err error) {
	if err := c.note(s, p); err != nil {
		return r, err
	}
	n, overlapping := size(s)
	r.Leads, r.Total = resolution.NewAnswers(), int64(n)
	to := min(p.Number*p.Limit, n)
	if overlapping {
		to = min(to+1, n)
	}
	for i := (p.Number - 1) * p.Limit; i < to; i++ {
		r.Leads.AddFound(&resolution.FoundLead{
			LeadID: fmt.Sprintf("lead_%032x", i), LeadType: "b2b", MatchedKeywords: s.Keywords, SearchedAt: s.End,
			Lead: resolution.Lead{Contact: resolution.Contact{JobTitle: fmt.Sprintf("Number %d", i)}},
		})
	}
	return r, nil
}

func (c *crowd) Count(_ context.Context, s resolution.KeywordSearch, hems int) (resolution.SearchCount, error) {
	n, _ := size(s)
	return resolution.SearchCount{Leads: int64(n), HashedEmails: int64(n * hems)}, c.note(s, resolution.SearchPage{})
}

func (c *crowd) note(s resolution.KeywordSearch, p resolution.SearchPage) error {
	c.mu.Lock()
	c.asked = append(c.asked, fmt.Sprintf("%s %d", s.Keywords[0], p.Number))
	c.mu.Unlock()
	if c.before != nil {
		return c.before(s, p)
	}
	return nil
}

// questions are the pages asked for, in order of their names.
func (c *crowd) questions() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.asked))
}

func size(s resolution.KeywordSearch) (n int, overlapping bool) {
	words := strings.Fields(s.Keywords[0])
	if len(words) > 1 {
		n, _ = strconv.Atoi(words[1])
	}
	return n, slices.Contains(words, "overlapping")
}

// desk is a service that makes the pages of a crowd: it charges when a page is
// done, honours idempotency keys, and may be made to fail.
type desk struct {
	crowd
	// looks is how often a page is unfinished when it is asked for.
	looks int
	// most is how many pages are made at a time, 0 is any number.
	most int
	// balance, if not 0, is what there is to spend; what a page can cost is
	// held back of it while the page is made.
	balance int64
	// start and poll, if any, may fail a call: what they return is returned
	// after the call has had its effect when lost, else before.
	start, poll func(call int) (err error, lost bool)
	// paged, if any, makes the page of a number in place of that of the crowd.
	paged func(number int) map[string]any
	// over ends the pages of a search without a result.
	over func(resolution.KeywordSearch) bool

	mu            sync.Mutex
	starts, polls int
	refusals      int
	pages         map[string]*deskPage // by resolution id
	keys          map[string]string    // resolution ids by idempotency key
	made          map[string]int       // how often each page was begun
	spent, held   int64
	active        int
	maxActive     int
}

type deskPage struct {
	id    string
	call  resolution.SearchCall
	looks int
	done  bool
}

func (d *desk) Do(context.Context, resolution.Call) (resolution.Reply, error) {
	panic("a search is not one record")
}

func failure(op resolution.Operation, class resolution.Class, status int, sent bool) *resolution.CallError {
	return &resolution.CallError{Operation: op, Class: class, Status: status, Sent: sent, Unbilled: status == http.StatusServiceUnavailable}
}

func (d *desk) Start(_ context.Context, call resolution.SearchCall) (resolution.Reply, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.starts++
	var err error
	if d.start != nil {
		var lost bool
		if err, lost = d.start(d.starts); err != nil && !lost {
			return resolution.Reply{}, err
		}
	}
	if d.pages == nil {
		d.pages, d.keys, d.made = map[string]*deskPage{}, map[string]string{}, map[string]int{}
	}
	id, again := d.keys[call.IdempotencyKey]
	if !again {
		if d.most > 0 && d.active >= d.most {
			d.refusals++
			e := failure(call.Operation, resolution.Limited, 429, true)
			e.Code, e.Pace.RetryAfter = "too_many_active_resolutions", 50*time.Millisecond
			return resolution.Reply{}, e
		}
		reserve := int64(call.Limit)
		if d.balance > 0 && d.spent+d.held+reserve > d.balance {
			return resolution.Reply{}, failure(call.Operation, resolution.NoCredits, 402, true)
		}
		d.held += reserve
		id = fmt.Sprintf("res_%032x", len(d.pages))
		d.pages[id], d.keys[call.IdempotencyKey] = &deskPage{id: id, call: call, looks: d.looks}, id
		d.made[fmt.Sprintf("%s %s %d", call.Keywords[0], call.Start.Format(time.DateOnly), call.Number)]++
		d.active++
		d.maxActive = max(d.maxActive, d.active)
	}
	if err != nil {
		return resolution.Reply{}, err
	}
	return d.reply(call.Operation, map[string]any{"success": true, "resolution": map[string]any{"id": id, "status": "processing"}})
}

func (d *desk) reply(op resolution.Operation, body map[string]any) (resolution.Reply, error) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return client.Read(op, 200, text, nil)
}

func (d *desk) Poll(ctx context.Context, op resolution.Operation, id, _ string) (resolution.Reply, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.polls++
	if d.poll != nil {
		if err, _ := d.poll(d.polls); err != nil {
			return resolution.Reply{}, err
		}
	}
	p := d.pages[id]
	switch {
	case p == nil:
		return resolution.Reply{}, failure(op, resolution.Invalid, 404, true)
	case p.looks > 0:
		p.looks--
		return d.reply(op, map[string]any{"success": true, "resolution": map[string]any{"id": id, "status": "processing"}})
	}
	first := !p.done
	if p.done = true; first {
		d.active--
		d.held -= int64(p.call.Limit)
	}
	if d.over != nil && d.over(p.call.KeywordSearch) {
		return d.reply(op, map[string]any{"success": false, "resolution": map[string]any{"id": id, "status": "failed"}, "error": "internal_error"})
	}
	return d.result(ctx, op, p, first)
}

// finished reports whether a page of the search for word is done. The caller
// holds mu, as start and poll do.
func (d *desk) finished(word string) bool {
	for _, p := range d.pages {
		if p.call.Keywords[0] == word && p.done {
			return true
		}
	}
	return false
}

// hurry makes all pages at once from here on.
func (d *desk) hurry() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks = 0
	for _, p := range d.pages {
		p.looks = 0
	}
}

// result is a finished page or count.
func (d *desk) result(ctx context.Context, op resolution.Operation, p *deskPage, charge bool) (resolution.Reply, error) {
	body := map[string]any{"success": true, "resolution": map[string]any{"id": p.id, "status": "completed"}}
	cost := int64(1)
	if op == resolution.KeywordToLeadCount {
		count, err := d.Count(ctx, p.call.KeywordSearch, p.call.HEMs)
		if err != nil {
			return resolution.Reply{}, err
		}
		body["lead"] = map[string]any{"count": count.Leads, "hashed_email_count": count.HashedEmails}
	} else {
		r, err := d.Search(ctx, p.call.KeywordSearch, p.call.SearchPage)
		if err != nil {
			return resolution.Reply{}, err
		}
		unit := int64(1)
		if p.call.Deanonymize {
			unit++
		}
		cost = unit * int64(r.Leads.Len())
		body["lead"] = map[string]any{"leads": append([]resolution.FoundLead{}, resolutiontest.Found(r.Leads)...), "pagination": map[string]any{
			"page": p.call.Number, "total": r.Total, "has_more": int64(p.call.Number*p.call.Limit) < r.Total,
		}}
	}
	if d.paged != nil {
		body["lead"] = d.paged(p.call.Number)
	}
	body["credits"] = map[string]any{"spent": cost}
	if charge {
		d.spent += cost
	}
	return d.reply(op, body)
}

// begun are the pages that were begun, and how often.
func (d *desk) begun() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.made
}
