package runs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
	persons "github.com/leadetl/leadetl/transforms/person"
)

const (
	price = 2 // credits of a match
	// patient is after how many requests for a key a service answers without a fault.
	patient = 4
	// finder is the service that is asked by name and company.
	finder = "finder"
)

// service answers questions about people and bills them. Its answer to a key is always the same.
type service struct {
	world *worldtest.World
	plan  plan
	name  string
	// faulty is the share of requests that it fails now.
	faulty float64
	batch  int // how many calls a request has at most, 0 of a service without batches

	mu      sync.Mutex
	records map[string]*record
	wrong   []string
}

// record is what a service knows of a key.
type record struct {
	requests, billed int
	allowed          int             // how often it may be billed: once, and once for each time that the user said so
	under            map[string]bool // idempotency keys
}

func newService(w *worldtest.World, p plan, name string, batch int) *service {
	return &service{world: w, plan: p, name: name, batch: batch, records: map[string]*record{}}
}

// of is what the service knows of a key, or of a person in any spelling. The caller holds the lock.
func (s *service) of(key string) *record {
	if s.name == finder {
		values := persons.Values(key)
		for name := range values {
			values[name] = persons.Canonical(name, values[name])
		}
		key = persons.Key(values)
	}
	if s.records[key] == nil {
		s.records[key] = &record{allowed: 1, under: map[string]bool{}}
	}
	return s.records[key]
}

// allow lets a key be billed once more.
func (s *service) allow(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(key).allowed++
}

// caller is the service as a machine reaches it, a purchase.Service.
type caller struct {
	*service
	machine *worldtest.World
}

// Do is that of purchase.Service.
func (c caller) Do(ctx context.Context, call resolution.Call) (resolution.Reply, error) {
	result := c.DoBatch(ctx, []resolution.Call{call})[0]
	return result.Reply, result.Err
}

// Poll is that of purchase.Service: no answer comes later.
func (c caller) Poll(context.Context, resolution.Operation, string, string) (resolution.Reply, error) {
	return resolution.Reply{}, errors.New("nothing was promised")
}

// BatchSize is that of purchase.Batcher.
func (c caller) BatchSize(resolution.Operation) int { return c.batch }

// fault is what happens to a request.
type fault int

const (
	none fault = iota
	unbilled
	lost // the answer
)

// DoBatch is that of purchase.Batcher. A request that is out when its machine dies may arrive.
func (c caller) DoBatch(_ context.Context, calls []resolution.Call) []resolution.Result {
	results := make([]resolution.Result, len(calls))
	fail := func(err error) []resolution.Result {
		for i := range results {
			results[i].Err = err
		}
		return results
	}
	if err := c.machine.Alive(); err != nil {
		return fail(err)
	}
	w, first := c.world, calls[0].Key
	c.mu.Lock()
	request := 0
	for _, call := range calls {
		r := c.of(call.Key)
		r.requests++
		request = max(request, r.requests)
	}
	c.mu.Unlock()
	f := none
	if request <= patient && w.Chance(c.faulty, "fault", c.name, first, request) {
		f = unbilled + fault(w.Below(2, "which", c.name, first, request))
	}
	travel := func(which string) {
		time.Sleep(time.Duration(1 + w.Draw(which, c.name, first, request)%uint64(20*time.Millisecond)))
	}
	travel("there")
	if err := c.machine.Alive(); err != nil && w.Below(2, "on its way", c.name, first, request) == 0 {
		return fail(err)
	}
	if f != unbilled {
		for i, call := range calls {
			results[i].Reply, results[i].Err = client.Read(c.plan.operation, 200, c.answer(call), nil)
		}
	}
	c.machine.Note("%s is asked about %s and %d more: %d", c.name, first, len(calls)-1, f)
	travel("back")
	switch err := c.machine.Alive(); {
	case err != nil:
		return fail(err)
	case f == lost:
		return fail(&resolution.CallError{Operation: c.plan.operation, Class: resolution.Unavailable, Sent: true})
	case f == unbilled:
		return fail(&resolution.CallError{Operation: c.plan.operation, Class: resolution.Unavailable, Status: 503, Sent: true, Unbilled: true})
	}
	return results
}

// answer answers a call and bills it, unless it was answered under its idempotency key.
func (s *service) answer(call resolution.Call) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.of(call.Key)
	if persons.IsKey(call.Key) != (s.name == finder) {
		s.wrong = append(s.wrong, s.name+" is asked about "+call.Key)
	}
	if call.IdempotencyKey == "" {
		s.wrong = append(s.wrong, call.Key+" is sent before its intent is stored")
	}
	if !s.plan.honours || !r.under[call.IdempotencyKey] {
		if r.billed++; r.billed > r.allowed {
			s.wrong = append(s.wrong, fmt.Sprintf("%s bills %s %d times", s.name, call.Key, r.billed))
		}
	}
	r.under[call.IdempotencyKey] = true
	return s.body(call.Key)
}

func (s *service) body(key string) []byte {
	person := key[strings.LastIndexByte(key, '/')+1:]
	if s.name == finder {
		person = strings.ReplaceAll(persons.Values(key)["full_name"], " ", "")
	}
	id := s.name + "_" + person
	if s.world.Below(3, "match", s.name, key) == 0 {
		return fmt.Appendf(nil, `{"success":true,"resolution":{"id":%q,"status":"completed"},"data":false,"lead":{}}`, id)
	}
	email, phone := person+"@"+s.name+".example", fmt.Sprintf("+1202555%04d", s.world.Below(10000, "phone", s.name, key))
	switch s.world.Below(3, "finds", s.name, key) {
	case 0:
		email = ""
	case 1:
		phone = ""
	}
	return fmt.Appendf(nil, `{"success":true,"resolution":{"id":%q,"status":"completed"},"lead":{"job_title":%q,"email":%q,"phone":%q}}`, id, "title of "+id, email, phone)
}

// remote is the service as a process asks it.
func (p *process) remote(s *service, stored purchase.Store) *purchase.Remote {
	o := pace.DefaultOptions()
	o.Concurrency = 2
	draws := 0
	o.Random = func() float64 {
		draws++
		return float64(p.world.Below(1000, "pace", s.name, p.lives, draws)) / 1000
	}
	r := &purchase.Remote{
		Service: caller{s, p.machine}, Read: client.Read, Name: "https://" + s.name + ".example", Answers: stored, Pace: pace.New(o), Concurrency: o.Concurrency,
		Plain404: purchase.Plain404Stop, RetryUnknown: p.retry, Price: purchase.Price{Match: price}, Budget: p.plan.budget(),
		Patience: time.Minute, Counters: &stats.CallCounters{},
	}
	if p.plan.honours {
		r.Keys = purchase.NewKeyWindow(purchase.DefaultKeyWindow)
	}
	if s.batch > 0 || s.name == finder {
		r.Question, r.Judged = "people", true
	}
	return r
}

// asking is a store that tells a service which calls the user wants sent again.
type asking struct {
	purchase.Store
	of    *service
	retry bool
}

// Intent is that of purchase.Store.
func (a asking) Intent(ctx context.Context, q answers.Question, send answers.Send) (answers.Call, error) {
	c, err := a.Store.Intent(ctx, q, send)
	if err == nil && send.Again && a.retry && !a.of.plan.honours {
		a.of.allow(q.Key)
	}
	return c, err
}

// asked is what a process knows of a service's answers.
func (p *process) asked(s *service, stored purchase.Store) purchase.Store {
	return asking{stored, s, p.retry}
}
