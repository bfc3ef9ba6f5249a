package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution/client"
	"github.com/leadetl/leadetl/resolution/exchange"
)

const (
	// quietLives is how many lives without a crash settle all keys: in the last ones the service
	// has no faults either.
	quietLives = 6
	// longest is more than any life takes.
	longest = 30 * 24 * time.Hour
)

func runName(number int) string { return fmt.Sprint("run ", number) }

// payer is who pays in a run.
func (h *history) payer(run string) string {
	if h.name == "" {
		return run
	}
	return run + "/" + h.name
}

var errInterrupted = errors.New("the user interrupts the run")

// history is all lives of one world, and what is known of them.
type history struct {
	world   *worldtest.World
	name    string // among several; "" of one
	plan    plan
	disk    *worldtest.Disk
	dir     string            // of the database
	bucket  *worldtest.Bucket // nil: the state is on the disk
	objects *s3test.Fake      // that it is made of
	service *service
	scope   answers.Scope
	lives   int
	known   *knowledge
	began   time.Time // to open a state on S3

	mu   sync.Mutex
	uses map[string]int  // of the store
	open map[string]bool // keys with an open call, at the last check
	// reopened are those of them that were refused before: rows from then went on without them.
	reopened map[string]bool
}

// knowledge is what is known of a world, whichever machine lives.
type knowledge struct {
	mu        sync.Mutex
	told      map[int]bool      // keys whose answers somebody relies on
	late      map[int]time.Time // when answers to keys came to a machine that had been replaced
	ended     map[int]bool      // keys whose calls ended on such a machine
	writer    string            // the machine that took over the log last
	calm      bool              // the last lives: the service has no faults, and the user waits for all answers
	disturbed bool              // a crash or a bad disk may have left more open calls than were sent
	poor      bool              // a life ended with its budget
	lost      bool              // damage has taken what was paid
	wrong     []string
}

// isWrong reports whether a promise was broken.
func (h *history) isWrong() bool {
	h.service.mu.Lock()
	defer h.service.mu.Unlock()
	h.known.mu.Lock()
	defer h.known.mu.Unlock()
	h.known.wrong = append(h.known.wrong, h.service.wrong...)
	h.service.wrong = nil
	return len(h.known.wrong) > 0
}

// disturb notes that calls may be open that were not sent.
func (h *history) disturb() {
	h.known.mu.Lock()
	defer h.known.mu.Unlock()
	h.known.disturbed = true
}

// live lets a world live until all keys are settled.
func (h *history) live(ctx context.Context) {
	for range h.plan.crashes {
		last := 1 + h.world.Below(h.plan.span, "last step", h.lives+1)
		h.life(ctx, last, h.plan.retry && h.world.Below(6, "retry", h.lives+1) == 0)
		if !h.isWrong() && h.plan.damaged > 0 && h.lives >= h.plan.damaged {
			h.suffer(ctx, h)
		}
		if h.isWrong() {
			return
		}
	}
	h.disk.Failing = 0
	if names, err := disk.Names(h.disk); err == nil && len(names) > 0 {
		h.show(h.world.Begin(ctx, 0), false)
		h.disk.Restart(false)
	}
	h.quiet(ctx, func(ctx context.Context, retry bool) { h.life(ctx, 0, retry) })
	if h.isWrong() {
		return
	}
	atRest := h.world.Begin(ctx, 0)
	if h.offline(atRest); !h.isWrong() {
		h.show(atRest, true)
	}
}

// quiet lets processes live that do not crash, until all keys are settled.
func (h *history) quiet(ctx context.Context, life func(ctx context.Context, retry bool)) {
	h.service.credits, h.service.calls, h.service.allowance = -1, -1, -1
	for i := range quietLives {
		if i >= quietLives/2 {
			h.calmDown()
		}
		if life(ctx, h.plan.retry && i > 0); h.isWrong() || h.settled() {
			return
		}
	}
}

// calmDown ends the faults of the service, and the user interrupts no more.
func (h *history) calmDown() {
	h.service.plan.faulty, h.service.plan.later, h.service.plan.outage = 0, 0, ""
	h.known.calm = true
}

// settled reports whether all keys have the last word of the service.
func (h *history) settled() bool {
	for i := range h.plan.keys {
		if !h.known.told[i] && h.service.settles(i) {
			return false
		}
	}
	return true
}

// life is the life of one process. It crashes at its last step, if that is not 0.
func (h *history) life(ctx context.Context, last int, retry bool) {
	h.lives++
	ctx, stop := context.WithTimeout(ctx, longest)
	defer stop()
	ctx = h.world.Begin(ctx, last)
	h.process(ctx, retry)
	h.disk.Restart(h.world.Below(3, "power cut", h.lives) > 0)
	h.world.Rest(h.pauseOf(time.Second, 10*time.Minute, 2*time.Hour, 30*time.Hour))
}

// pauseOf draws the time to the next life. At last it is long enough for promised answers to come.
func (h *history) pauseOf(some ...time.Duration) time.Duration {
	pause := some[h.world.Below(len(some), "pause", h.lives)]
	if h.known.calm {
		pause = max(pause, 10*time.Minute)
	}
	return pause
}

// process is what a process does until it ends or the machine crashes.
func (h *history) process(ctx context.Context, retry bool) {
	h.world.Note("life: %d keys, retry %t, budgets %d %d", len(h.plan.keys), retry, h.service.credits, h.service.calls)
	s, err := h.openStore(ctx, false)
	h.unexpected("open", err)
	if err == nil {
		h.check(ctx, s)
		if h.world.Alive() == nil && !h.isWrong() {
			h.use(ctx, s, retry)
		}
		h.unexpected("close", s.close())
	}
	if h.world.Alive() != nil || h.world.Faults() > 0 {
		h.disturb()
	}
	h.world.Crash()
}

// opened is an open store.
type opened struct {
	purchase.Store
	close func() error
	// delay makes its changes wait for others, unless urgent says that there is a hurry.
	delay func(urgent func() bool)
}

// openStore opens what is stored; look says that nothing will be written.
func (h *history) openStore(ctx context.Context, look bool) (opened, error) {
	if h.bucket != nil {
		return h.openOnS3(ctx, look)
	}
	s, err := answers.Open(context.Background(), answers.On(h.disk), h.stored())
	return opened{s, s.Close, func(func() bool) {}}, err
}

// stored are the settings of a store.
func (h *history) stored() answers.Options {
	return answers.Options{
		LogBytes: h.plan.logBytes, MaxBatch: h.plan.maxBatch, RowsPerFile: h.plan.rowsPerFile, Generations: h.plan.generations, InTurn: true,
	}
}

// remote is the service as a life asks it.
func (h *history) remote(s opened, retry bool) *purchase.Remote {
	o := pace.DefaultOptions()
	o.Concurrency = h.plan.concurrency
	if !h.known.calm && h.world.Below(4, "gives up"+h.name, h.lives) == 0 {
		o.GiveUp = time.Duration(1+h.world.Below(60, "give up"+h.name, h.lives)) * time.Second
	}
	h.ownLimits(&o)
	o.DeadAfter = cmp.Or(h.plan.deadAfter, o.DeadAfter)
	draws := 0
	o.Random = func() float64 {
		draws++
		return float64(h.world.Below(1000, "pace"+h.name, h.lives, draws)) / 1000
	}
	r := &purchase.Remote{
		Service: caller{h.service, h.world}, Read: h.service.read, Name: h.scope.Service, Answers: store{s, h}, Pace: pace.New(o), Concurrency: h.plan.concurrency,
		Plain404: purchase.Plain404Stop, RetryUnknown: retry, NewKey: retry && h.plan.newKey, Price: h.plan.price(),
		Budget: purchase.Budget{MaxCredits: h.service.credits, MaxCalls: h.service.calls}, Patience: h.plan.patience, Counters: &stats.CallCounters{},
	}
	h.recall(r.Pace)
	s.delay(r.Pace.Crowded)
	if !h.known.calm && h.world.Below(8, "deadline"+h.name, h.lives) == 0 {
		r.Budget.MaxDuration = time.Duration(1+h.world.Below(60, "duration"+h.name, h.lives)) * time.Second
	}
	r.Strict = h.plan.dear && !h.known.calm && h.world.Below(3, "strict", h.lives) == 0
	if !h.known.calm {
		r.FirstMisses, r.BadRows, r.MaxAttempts = h.plan.firstMisses, h.plan.badRows, h.plan.attempts
	}
	if h.plan.misses {
		r.Plain404 = purchase.Plain404Miss
	}
	if h.service.allowance >= 0 {
		r.Budget.Allowance = cliflag.Allowance{Days: 1000, Credits: h.service.allowance}
	}
	if h.plan.honours {
		r.Keys = purchase.NewKeyWindow(cmp.Or(h.plan.window, purchase.DefaultKeyWindow))
	}
	if h.plan.batch > 0 {
		h.inBatches(r)
	} else {
		r.Check, r.Deliveries = client.CheckerOf(exchange.NewAsked(nil)), purchase.NewDeliveries(r, time.Now)
	}
	return r
}

// use asks all keys, from several goroutines, while the service posts what it promised.
func (h *history) use(ctx context.Context, s opened, retry bool) {
	if retry {
		for key, open := range h.open {
			if open {
				h.service.allow(key)
			}
		}
	}
	r := h.remote(s, retry)
	var post sync.WaitGroup
	posting, stopPosting := context.WithCancel(ctx)
	post.Go(func() { h.service.post(posting, r.Deliveries, h) })
	b, buying, err := purchase.Open(ctx, r, h.plan.operation, runName(h.world.Below(h.plan.runs, "run", h.lives)), slog.New(slog.DiscardHandler))
	h.unexpected("open the buyer", err)
	if err == nil {
		if !h.known.calm && h.world.Below(5, "interrupt", h.lives) == 0 {
			after := time.Duration(h.world.Draw("interrupted", h.lives) % uint64(20*time.Second))
			defer time.AfterFunc(after, func() { b.Stop(errInterrupted) }).Stop()
		}
		h.askAll(buying, b)
		b.Close()
	}
	stopPosting()
	post.Wait()
	if err == nil && h.world.Alive() == nil && h.world.Faults() == 0 && !h.isReplaced() { // a call whose end was not stored is still under way
		h.checkBuyer(b)
		h.check(ctx, s)
	}
	h.service.mu.Lock()
	defer h.service.mu.Unlock()
	if h.known.poor {
		h.known.poor = false
		for budget, more := range map[*int64]int64{&h.service.credits: 2 * price, &h.service.calls: 2, &h.service.allowance: 2 * price} {
			if *budget >= 0 {
				*budget += more
			}
		}
	}
}

// askAll lets the askers ask, and reports whether they all got to their end.
func (h *history) askAll(ctx context.Context, b *purchase.Buyer) bool {
	var askers sync.WaitGroup
	var stopped atomic.Bool
	for i := range h.plan.askers {
		askers.Go(func() {
			if !h.ask(ctx, b, i) {
				stopped.Store(true)
			}
		})
	}
	askers.Wait()
	return !stopped.Load()
}

// ask asks all keys in an order of the asker, some at a time, until one gets no answer.
func (h *history) ask(ctx context.Context, b *purchase.Buyer, asker int) (all bool) {
	moment := func() { h.pause(fmt.Sprint("asker ", asker)) } // many askers may wait for one answer
	keys := slices.Clone(h.plan.keys)
	slices.SortFunc(keys, func(a, b string) int {
		return int(h.world.Draw("order", h.lives, asker, a)>>33) - int(h.world.Draw("order", h.lives, asker, b)>>33)
	})
	for some := range slices.Chunk(keys, 1+h.world.Below(len(keys), "chunk", h.lives, asker)) {
		moment()
		err := h.answer(ctx, b, some, func(keys []string, got []purchase.Result) {
			moment()
			h.take(keys, got)
		})
		if err != nil {
			h.unexpected("ask", err)
			if errors.Is(err, purchase.ErrBudget) {
				h.service.mu.Lock()
				h.known.poor = true
				h.service.mu.Unlock()
			}
			return false
		}
	}
	return true
}

// offline asks what is stored, as it would be in a world without any fault.
func (h *history) offline(ctx context.Context) {
	s, err := h.openStore(ctx, true)
	h.unexpected("open", err)
	if err != nil {
		return
	}
	defer func() { h.unexpected("close", s.close()) }()
	h.check(ctx, s)
	r := h.remote(s, false)
	r.Offline, r.Service, r.Pace = true, nil, nil
	b, _, err := purchase.Open(ctx, r, h.plan.operation, runName(h.world.Below(h.plan.runs, "run", h.lives)), slog.New(slog.DiscardHandler))
	h.unexpected("open the buyer", err)
	if err != nil {
		return
	}
	defer b.Close()
	plan := h.foresee(ctx, r)
	h.unexpected("ask offline", h.answer(ctx, b, h.plan.keys, func(keys []string, got []purchase.Result) {
		for i, a := range got {
			n := h.service.records[keys[i]].number
			h.compare(n, a)
			if p, planned := plan[keys[i]]; planned && (p.Outcome != a.Outcome || p.Reason != a.Reason) {
				h.wrongly("key %d is planned as %s %s, and is %s %s", n, p.Outcome, p.Reason, a.Outcome, a.Reason)
			}
			if h.isKept(n) && a.Outcome != outcome.Matched && a.Outcome != outcome.NoMatch {
				h.wrongly("the answer of key %d came to a machine that was replaced, and is gone: %s %s", n, a.Outcome, a.Reason)
			}
			unsettled := a.Outcome == outcome.Skipped || a.Outcome == outcome.Failed && a.Reason == outcome.ReasonUnknownCall
			if a.Outcome == outcome.Skipped && h.service.records[keys[i]].failed {
				continue // the service gave its answer up in the last life
			}
			if unsettled && h.service.settles(n) && (h.plan.retry || !h.open[h.plan.keys[n]]) {
				h.wrongly("key %d is never settled: %s %s", n, a.Outcome, a.Reason)
			}
		}
	}))
}

// foresee is what a plan says of the keys.
func (h *history) foresee(ctx context.Context, r *purchase.Remote) map[string]purchase.Looked {
	plan := map[string]purchase.Looked{}
	looked, err := r.Foresee(ctx, h.plan.operation, h.plan.keys, time.Now(), true)
	h.unexpected("plan", err)
	unknown := false
	for i, l := range looked {
		plan[h.plan.keys[i]] = l
		unknown = unknown || l.Open == answers.Unknown
	}
	waits, err := r.UnknownWait(ctx, h.plan.operation)
	if h.unexpected("list the unknown calls", err); waits && !unknown || unknown && !waits && r.Keys == nil {
		h.wrongly("that rows wait for the user is %t, and that calls are unknown is %t", waits, unknown)
	}
	return plan
}
