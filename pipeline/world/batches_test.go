package world

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
)

// question is what the questions of a service with batches are stored under.
const question = "people"

// inBatches asks a service that answers in batches, and later when it is asked.
func (h *history) inBatches(r *purchase.Remote) {
	r.Service = batcher{r.Service.(caller)}
	r.Question, r.Judged, r.RetryBills = question, true, h.plan.billsRetries
	r.Later = purchase.Later{Every: h.plan.every, Wait: h.plan.patience}
	if r.RetryBills {
		r.Keys = purchase.NewKeyWindow(purchase.DefaultKeyWindow) // which the service does not know
	}
}

// batcher is a caller that is also a purchase.Batcher and a purchase.Poller.
type batcher struct{ caller }

// BatchSize is that of purchase.Batcher.
func (s batcher) BatchSize(resolution.Operation) int { return s.plan.batch }

// wholeFailures are the faults of a request that concern all its calls, and their weights.
var wholeFailures = []fault{unreachable, limited, unbilled, lost, lost, alone}

// alone asks for each call of a batch alone.
const alone fault = "to be asked alone"

// DoBatch is that of purchase.Batcher. Each call meets its own faults, and all may meet one.
func (s batcher) DoBatch(_ context.Context, calls []resolution.Call) []resolution.Result {
	w := s.world
	if err := s.machine.Alive(); err != nil {
		return all(calls, err)
	}
	records, faults, whole := s.meet(calls)
	first, request := records[0], records[0].requests
	unavailable := func() *resolution.CallError {
		return &resolution.CallError{Operation: s.plan.operation, Class: resolution.Unavailable, Sent: true}
	}
	if whole == unreachable {
		e := unavailable()
		e.Sent = false
		return all(calls, e)
	}
	time.Sleep(s.travel("there", first.number, request))
	if err := s.machine.Alive(); err != nil && w.Below(2, "on its way", first.number, request) == 0 {
		return all(calls, err)
	}
	whole, limit := s.admit(whole, records...)
	w.Note("batch of %d: %s", len(calls), whole)
	results := make([]resolution.Result, len(calls))
	switch {
	case whole == limited || whole == unbilled:
		_, err := s.arrive(first, whole, calls[0])
		if failure, is := errors.AsType[*resolution.CallError](err); is {
			limit.RetryAfter = failure.Pace.RetryAfter
			failure.Pace = limit
		}
		results = all(calls, err)
	case whole == alone && len(calls) > 1:
		results = all(calls, resolution.ErrAskAlone)
	default:
		for i, call := range calls {
			text, err := s.arrive(records[i], faults[i], call)
			if results[i].Err = err; err == nil {
				results[i].Reply, results[i].Err = s.read(s.plan.operation, 200, []byte(text), nil)
				results[i].Reply.Pace = limit
			}
			if cost := s.costs(records[i].number); s.plan.prices && !results[i].Reply.Pending {
				results[i].Reply.Spent = &cost
			}
		}
	}
	time.Sleep(s.travel("back", first.number, request))
	if err := s.machine.Awake(); err != nil {
		return all(calls, err)
	}
	if whole == lost {
		return all(calls, unavailable())
	}
	return results
}

// meet counts a request for each of its calls, and draws what happens to it.
func (s batcher) meet(calls []resolution.Call) (records []*record, faults []fault, whole fault) {
	for _, call := range calls {
		if s.before != nil {
			s.before(call.Key)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.records[calls[0].Key]
	s.departs(len(calls))
	for _, call := range calls {
		r := s.records[call.Key]
		if slices.Contains(records, r) {
			s.wrong = append(s.wrong, "a batch has a key twice")
		}
		if call.IdempotencyKey == "" {
			s.wrong = append(s.wrong, fmt.Sprintf("key %d is sent before its intent is stored", r.number))
		}
		r.requests++
		f := s.fault(r)
		if f == unreachable { // a request without one of its calls is none
			f = unbilled
		}
		r.disturbed = r.disturbed || f != none
		records, faults = append(records, r), append(faults, f)
	}
	whole = none
	if w := s.world; first.requests <= patient && w.Chance(s.plan.faulty/2, "whole", first.number, first.requests) {
		whole = wholeFailures[w.Below(len(wholeFailures), "which whole", first.number, first.requests)]
	}
	for _, r := range records {
		r.task = taskName(first)
		r.disturbed = r.disturbed || whole != none
		r.doubtful = r.doubtful || whole == lost
	}
	return records, faults, whole
}

// all is one error for all calls or looks.
func all[T any](of []T, err error) []resolution.Result {
	return slices.Repeat([]resolution.Result{{Err: err}}, len(of))
}

// taskName is the first part of the ids of answers that come later, of a batch by its first call.
func taskName(first *record) string { return fmt.Sprintf("task_%d_%d/", first.number, first.requests) }

// Task is that of purchase.Poller.
func (s batcher) Task(id string) string {
	task, _, _ := strings.Cut(id, "/")
	return task
}

// PollBatch is that of purchase.Poller. A look may fail for all, and an answer may lack one.
func (s batcher) PollBatch(_ context.Context, _ []resolution.Call, ids []string) []resolution.Result {
	w := s.world
	if err := s.machine.Awake(); err != nil {
		return all(ids, err)
	}
	s.mu.Lock()
	var looked []*delivery
	first := slices.Min(ids) // all calls of a task join it at one moment
	for _, id := range ids {
		d := s.pages[id]
		d.polls++
		looked = append(looked, d)
		if s.Task(id) != s.Task(ids[0]) {
			s.wrong = append(s.wrong, "a look is for two tasks")
		}
	}
	n := s.pages[first].polls
	s.mu.Unlock()
	time.Sleep(time.Duration(w.Draw("poll", first, n) % uint64(20*time.Millisecond)))
	if err := s.machine.Awake(); err != nil {
		return all(ids, err)
	}
	w.Note("poll %s for %d", first, len(ids))
	if n <= patient && w.Chance(s.plan.faulty/2, "poll fails", first, n) {
		e := &resolution.CallError{Operation: s.plan.operation, Class: resolution.Unavailable, Status: 500, Sent: true}
		if w.Below(2, "poll is limited", first, n) == 0 {
			e.Class, e.Status = resolution.Limited, 429
		}
		return all(ids, e)
	}
	results := make([]resolution.Result, len(ids))
	for i, d := range looked {
		if d.polls <= patient && w.Chance(s.plan.faulty/4, "element missing", d.ID, d.polls) {
			results[i].Err = &resolution.CallError{Operation: s.plan.operation, Class: resolution.Protocol, Status: 200, Sent: true}
			continue
		}
		results[i].Reply, results[i].Err = s.find(s.plan.operation, d)
	}
	return results
}
