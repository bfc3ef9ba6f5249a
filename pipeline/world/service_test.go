package world

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/resolution"
)

const (
	price = 3 // credits of a match
	// patient is after how many requests for a key the service answers without a fault.
	patient = 7
)

// service answers questions about keys and bills them. What it does to a request follows from
// the key and from how many requests for the key it has seen, so goroutines meet the same
// faults in any order. It survives all crashes.
type service struct {
	world *worldtest.World
	plan  plan
	made  time.Time

	mu      sync.Mutex
	records map[string]*record
	later   []*delivery                    // that are under way, in the order of their calls
	pages   map[string]*delivery           // that are made for searches, by their ids
	wrong   []string                       // what broke a promise
	lost    struct{ credits, calls int64 } // what is billed again, because damage has taken its answers
	quota   *quota
	// departures are the requests that left, if the user has limited them.
	departures []departure
	// promised says that there is more in later.
	promised chan struct{}
	// budgets of the present life, -1 without one.
	credits, calls, allowance int64
	job                       *job             // of several services; nil of one
	before                    func(key string) // each request about a key, of one that is judged
}

// record is what the service knows of a key.
type record struct {
	number   int
	requests int
	task     string // of its last request, if that was a batch
	answered bool
	failed   bool      // an answer of it was promised and given up
	givenUp  *delivery // that said so last
	billed   int
	allowed  int  // how often it may be billed
	doubtful bool // a request may have been billed, and got no answer, or a promise
	// disturbed says that a request met a fault, or that its call was open when a life began or ended.
	disturbed bool
	replies   map[string]reply
}

// reply is the answer under an idempotency key.
type reply struct {
	body string
	made time.Time
}

func newService(w *worldtest.World, p plan, of string) *service {
	s := &service{world: w, plan: p, made: time.Now(), quota: newQuota(w, of), records: map[string]*record{}, pages: map[string]*delivery{}, promised: make(chan struct{}, 1), credits: p.credits, calls: p.calls, allowance: p.allowance}
	for i, key := range p.keys {
		s.records[key] = &record{number: p.first + i, allowed: 1, replies: map[string]reply{}}
	}
	return s
}

// disturb notes that a call about a key was disturbed.
func (s *service) disturb(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[key].disturbed = true
}

// isDisturbed reports whether a call about a key was disturbed; "" is any key.
func (s *service) isDisturbed(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, r := range s.records {
		if r.disturbed && (key == "" || key == of) {
			return true
		}
	}
	return false
}

// isDecided reports whether the service has answered a key.
func (s *service) isDecided(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[key]
	return r.answered || r.requests > 0 && s.truth(r.number) == refused
}

func (s *service) truthOf(key string) truth { return s.truth(s.records[key].number) }

// allow lets a key be billed once more.
func (s *service) allow(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[key].allowed++
}

// The truth about a key.
type truth string

const (
	match   truth = "match"
	miss    truth = "miss"
	refused truth = "refused"
)

func (s *service) truth(number int) truth {
	is := s.world.Below(10, "truth", number)
	if s.world.Chance(s.plan.refuses, "refuses", number) {
		return refused
	}
	if s.plan.several && is < 5 { // the next one is asked
		return miss
	}
	switch is {
	case 0, 1:
		return miss
	case 2:
		return refused
	}
	return match
}

// settles reports whether a key gets an answer that settles a call that may have been billed
// before: a refusal and a 404 do not.
func (s *service) settles(number int) bool {
	is := s.truth(number)
	return is == match || is == miss && !s.plan.misses
}

func phone(number int) string { return fmt.Sprintf("+1202555%04d", number) }

// mark is a text that only the answer to a number has.
func (p plan) mark(number int) string {
	if p.operation.IsKeyword() {
		return fmt.Sprintf("lead_%d_", number)
	}
	if p.several {
		return title(number)
	}
	return phone(number)
}

func (s *service) body(number int, id string) string {
	if s.plan.operation.IsKeyword() {
		var leads []string
		for i := range s.costs(number) {
			leads = append(leads, fmt.Sprintf(`{"lead_id":"%s%d"}`, s.plan.mark(number), i))
		}
		return fmt.Sprintf(`{"resolution":{"id":%q,"status":"completed"},"lead":{"leads":[%s],"pagination":{"has_more":false}}}`, id, strings.Join(leads, ","))
	}
	if s.truth(number) == miss {
		return fmt.Sprintf(`{"success":true,"resolution":{"id":%q,"status":"completed"},"data":false,"lead":{}}`, id)
	}
	return s.lead(number, id)
}

// lead is what is found about a number.
func (s *service) lead(number int, id string) string {
	lead := fmt.Sprintf(`"phone":%q`, phone(number))
	if s.plan.several {
		email, phone := s.finds(number)
		lead = fmt.Sprintf(`"job_title":%q,"email":%q,"phone":%q,"first_name":"Alex","company":%s`, title(number), email, phone, company)
	}
	return fmt.Sprintf(`{"success":true,"resolution":{"id":%q,"status":"completed"},"lead":{%s}}`, id, lead)
}

// company is the company of all leads that services of an order find.
const company = `{"name":"Acme","domain":"acme.example","website_url":"acme.example","network_url":"network.example/company/acme","revenue":"1M","employee_count":"11-50",` +
	`"year_founded":1999,"about":"makes tools","industry":"tools","address":{"street":"1 Main","zip_code":"12345","city":"Springfield","state":"IL"}}`

// costs is what the answer to a key costs.
func (s *service) costs(number int) int64 {
	if s.truth(number) == match {
		return price
	}
	return 0
}

// fault is what happens to a request.
type fault string

const (
	none        fault = "none"
	unreachable fault = "unreachable"
	limited     fault = "limited"
	unbilled    fault = "503"
	before      fault = "500 before billing"
	after       fault = "500 after billing"
	lost        fault = "answer lost"
	garbage     fault = "garbage after billing"
	denied      fault = "denied"
	noCredits   fault = "no credits"
	pending     fault = "later"
)

// failures are the faults and their weights.
var failures = []fault{unreachable, limited, limited, unbilled, before, after, after, lost, lost, garbage, denied, noCredits}

func (s *service) fault(r *record) fault {
	w := s.world
	switch {
	case s.isDown():
		return s.plan.outage
	case r.requests <= patient && w.Chance(s.plan.faulty, "fault", r.number, r.requests):
		return failures[w.Below(len(failures), "which", r.number, r.requests)]
	case s.truth(r.number) != refused && w.Chance(s.plan.later, "later", r.number, r.requests):
		return pending
	}
	return none
}

// isDown reports whether the service is down now.
func (s *service) isDown() bool {
	return s.plan.outage != "" && time.Since(s.made)%s.plan.downEvery < s.plan.downEvery/3
}

// caller is the service as a machine reaches it, a purchase.Service.
type caller struct {
	*service
	machine *worldtest.World
}

// Do is that of purchase.Service.
func (s caller) Do(_ context.Context, call resolution.Call) (resolution.Reply, error) {
	return s.request(call)
}

// Start is that of purchase.Service.
func (s caller) Start(_ context.Context, call resolution.SearchCall) (resolution.Reply, error) {
	var number int
	if _, err := fmt.Sscanf(call.Keywords[0], "keyword-%d", &number); err != nil {
		panic(err)
	}
	asked := resolution.Request{Operation: call.Operation, Key: s.plan.keys[number]}
	return s.request(resolution.Call{Request: asked, IdempotencyKey: call.IdempotencyKey, ClientRef: call.ClientRef})
}

// request answers a request. One that is out when its process dies may still arrive.
func (s caller) request(call resolution.Call) (resolution.Reply, error) {
	w, operation := s.world, s.plan.operation
	if err := s.machine.Alive(); err != nil {
		return resolution.Reply{}, err
	}
	if s.before != nil {
		s.before(call.Key)
	}
	s.mu.Lock()
	r := s.records[call.Key]
	r.requests++
	request, f := r.requests, s.fault(r)
	r.disturbed = r.disturbed || f != none
	s.departs(1)
	s.mu.Unlock()
	if f == unreachable {
		return resolution.Reply{}, &resolution.CallError{Operation: operation, Class: resolution.Unavailable}
	}
	time.Sleep(s.travel("there", r.number, request))
	if err := s.machine.Alive(); err != nil && w.Below(2, "on its way", r.number, request) == 0 {
		return resolution.Reply{}, err
	}
	s.postAgain(r, request)
	f, limit := s.admit(f, r)
	text, err := s.arrive(r, f, call)
	time.Sleep(s.travel("back", r.number, request))
	if err := s.machine.Awake(); err != nil {
		return resolution.Reply{}, err
	}
	if failure, is := errors.AsType[*resolution.CallError](err); is && failure.Status != 0 {
		failure.KeyWindow = s.plan.said
		limit.RetryAfter = failure.Pace.RetryAfter
		failure.Pace = limit
	}
	if err != nil {
		return resolution.Reply{}, err
	}
	reply, err := s.read(operation, 200, []byte(text), nil)
	reply.KeyWindow, reply.Pace = s.plan.said, limit
	if cost := s.costs(r.number); s.plan.prices && !reply.Pending {
		reply.Spent = &cost
	}
	return reply, err
}

// travel is how long a request is under way, one way. It is short, or longer than most.
func (s *service) travel(which string, number, request int) time.Duration {
	most := 20 * time.Millisecond
	if s.world.Below(8, which+" slow", number, request) == 0 {
		most = 30 * time.Second
	}
	return time.Duration(s.world.Draw(which, number, request) % uint64(most))
}

// arrive answers a request, and bills it unless it was answered under its idempotency key.
func (s *service) arrive(r *record, f fault, call resolution.Call) (text string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.Note("request %d of key %d: %s", r.requests, r.number, f)
	fail := func(class resolution.Class, status int) *resolution.CallError {
		return &resolution.CallError{Operation: s.plan.operation, Class: class, Status: status, Sent: true}
	}
	switch f {
	case before, after, lost, garbage, pending:
		r.doubtful = true
	}
	switch f {
	case limited:
		e := fail(resolution.Limited, 429)
		e.Pace.RetryAfter = time.Duration(s.world.Below(4, "retry after", r.number, r.requests)) * time.Second
		return "", e
	case unbilled:
		e := fail(resolution.Unavailable, 503)
		e.Unbilled = true
		return "", e
	case before:
		return "", fail(resolution.Unavailable, 500)
	case denied:
		return "", fail(resolution.Denied, 401)
	case noCredits:
		return "", fail(resolution.NoCredits, 402)
	}
	if s.truth(r.number) == refused {
		e := fail(resolution.Invalid, 400)
		e.Code = "refused"
		return "", e
	}
	if s.plan.misses && s.truth(r.number) == miss && f == none {
		r.answered = true
		return "", fail(resolution.Denied, 404)
	}
	said, known := r.replies[call.IdempotencyKey]
	if !s.plan.honours || !known || s.plan.window > 0 && time.Since(said.made) > s.plan.window {
		said = s.bill(r, f, call)
	}
	switch f {
	case after:
		return "", fail(resolution.Unavailable, 500)
	case lost:
		return "", fail(resolution.Unavailable, 0)
	case garbage:
		e := fail(resolution.Protocol, 200)
		e.Body = []byte("<html>")
		return "", e
	}
	return said.body, nil
}

// bill makes the answer to a key, or promises it, and checks the promises on money.
func (s *service) bill(r *record, f fault, call resolution.Call) reply {
	id := fmt.Sprintf("%sres_%d_%d", r.task, r.number, r.requests)
	said := reply{s.body(r.number, id), time.Now()}
	if f == pending && s.world.Chance(s.plan.fails, "fails", r.number, r.requests) {
		r.failed = true
		r.givenUp = &delivery{
			Delivery: resolution.Delivery{ID: id, Body: fmt.Appendf(nil, `{"success":false,"resolution":{"id":%q,"status":"failed"}}`, id)}, number: r.number, failed: true,
		}
		s.promise(r, call, r.givenUp)
		return reply{body: fmt.Sprintf(`{"resolution":{"id":%q,"status":"queued"}}`, id)}
	}
	r.answered = true
	if r.billed++; r.billed > r.allowed {
		s.wrong = append(s.wrong, fmt.Sprintf("key %d is billed %d times", r.number, r.billed))
	}
	s.checkBudgets()
	if r.billed == 1 && s.job != nil {
		s.job.bill(s, s.costs(r.number))
	}
	if f == pending {
		s.promise(r, call, &delivery{Delivery: resolution.Delivery{ID: id, Body: []byte(said.body)}, number: r.number})
		said.body = fmt.Sprintf(`{"resolution":{"id":%q,"status":"queued"}}`, id)
	}
	r.replies[call.IdempotencyKey] = said
	return said
}

// checkBudgets notes a budget that is passed. An answer counts for the run that got it, so the
// budgets of two runs hold together.
func (s *service) checkBudgets() {
	credits, calls := s.billed()
	runs := int64(s.plan.runs)
	if s.credits >= 0 && credits > s.credits*runs || s.calls >= 0 && calls > s.calls*runs || s.allowance >= 0 && credits > s.allowance {
		s.wrong = append(s.wrong, fmt.Sprintf("%d calls and %d credits are billed, with budgets of %d and %d of each run, and %d of all", calls, credits, s.calls, s.credits, s.allowance))
	}
}

// lose notes that nobody but the service knows of a key any more. What was promised of it is not posted.
func (s *service) lose(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[key]
	if r.billed > 0 {
		s.lost.credits, s.lost.calls = s.lost.credits+s.costs(r.number), s.lost.calls+1
	}
	r.billed, r.givenUp = 0, nil
	for _, d := range s.later {
		d.done = d.done || d.number == r.number
	}
}

// billed is how many keys are billed, and the credits of all: of each key once.
func (s *service) billed() (credits, calls int64) {
	credits, calls = s.lost.credits, s.lost.calls
	for _, r := range s.records {
		if r.billed > 0 {
			calls++
			credits += s.costs(r.number)
		}
	}
	return credits, calls
}
