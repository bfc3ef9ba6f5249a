package world

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
)

// several is a world whose keys are asked of three services in an order: one that is asked about a
// key at a time, one by batches, and one that answers later.
type several struct {
	world   *worldtest.World
	plan    plan
	known   *knowledge
	job     *job
	layout  *columns.Layout
	want    []string
	perKey  int64        // 0 has no limit
	steps   []order.Step // without their Remotes
	of      []*history   // by step
	judge   int          // how many keys decide about a step with a MinMatch
	few     int          // the step with a MinMatch, if there is one
	batches [][]string   // keys

	identity  string    // of the order
	reference reference // of the last step, if it has reference data
	lists     bool      // some people are on a list of those who must not be contacted

	recorded *worldtest.Disk  // of the journal
	journal  *journal.Journal // of the present life
	store    purchase.Store   // of the present life

	mu     sync.Mutex
	judged map[string]bool // what is kept of verdicts
	open   atomic.Bool     // one is that the service is asked about all keys
	unkept bool            // the journal of the present life could not keep one
	last   []made          // by batch
}

// made is what became of a batch.
type made struct {
	rows []string
	done bool // it is recorded: a later life makes it no more
	// lacks says that damage has taken stored answers since.
	lacks bool
}

// errJournal is the error of what the journal cannot store.
var errJournal = errors.New("the journal fails")

// liveInOrder lets a world of several services live.
func liveInOrder(w *worldtest.World, dir string, p plan, l worldtest.Limits) (wrong []string, lives int) {
	o := newSeveral(w, dir, p, l)
	disk := o.of[0].disk
	disk.Failing, disk.Slow, o.recorded.Failing = p.diskFails, p.diskSlow, p.diskFails
	o.live(context.Background())
	return o.known.wrong, o.of[0].lives
}

func newSeveral(w *worldtest.World, dir string, p plan, l worldtest.Limits) *several {
	in := func(what string, from, to int) int { return from + w.Below(to-from+1, "order", what) }
	often := func(what string, of int) bool { return w.Below(of, "order", what) == 0 }
	p.runs, p.allowance, p.operation = 1, -1, resolution.Enrichment
	for i := range p.keys {
		p.keys[i] = p.key(i)
	}
	o := &several{
		world: w, plan: p, judge: in("judge", 1, 4), recorded: worldtest.NewDisk(w), job: &job{credits: p.credits, calls: p.calls},
		known: &knowledge{told: map[int]bool{}, late: map[int]time.Time{}},
	}
	if often("want", 2) {
		o.want = []string{"email", "phone"}
		if often("more is wanted", 3) {
			o.want = append(o.want, always[in("what more", 0, len(always)-1)])
		}
		if often("too much is wanted", 6) {
			o.want = append(o.want, never[in("what else", 0, len(never)-1)])
		}
	}
	o.lists = often("lists", 4)
	if often("max_credits_per_key", 3) {
		o.perKey = int64(in("credits per key", price, 3*price))
	}
	var err error
	if o.layout, err = columns.NewLayout(columns.Settings{Operation: p.operation, DefaultRegion: "US", Remote: true, Want: o.want, NotesSkipped: true}); err != nil {
		panic(err)
	}
	disk := worldtest.NewDisk(w)
	o.recorded.Name, o.recorded.Missing = "journal", true
	o.few = in("which has few", 0, 3)
	for i := range 3 {
		kind := (i + in("first kind", 0, 2)) % 3
		name := string("abc"[i])
		one := newPlan(w, l, name).inOrder(p, kind, 100*(i+1))
		h := &history{
			world: w, name: name, plan: one, disk: disk, dir: dir, service: newService(w, one, name), uses: map[string]int{}, known: o.known,
			scope: answers.Scope{Service: "https://" + name + ".example", Operation: p.operation},
		}
		if one.batch > 0 {
			h.scope.Operation = question
		}
		h.service.job = o.job
		step := order.Step{Name: name, ElseNext: often("else next "+name, 3)}
		if i == o.few {
			step.MinMatch = 0.5
		}
		if o.want != nil && often("for "+name, 4) {
			step.For = o.want[in("for what "+name, 0, 1):][:1]
		}
		if o.want != nil && often("accepts "+name, 4) {
			step.Accept = map[string][]string{"phone_region": {[]string{"US", "CA"}[in("region "+name, 0, 1)]}}
			for n := one.first; n < one.first+len(p.keys); n += 2 {
				email, _ := h.service.finds(n)
				step.Accept["email"] = append(step.Accept["email"], email)
			}
		}
		o.of, o.steps = append(o.of, h), append(o.steps, step)
	}
	if o.want != nil && often("verifies", 2) {
		o.addVerifier(disk, dir, l, order.Step{Name: "v", Verifies: "email", Accept: map[string][]string{verified: {"valid"}}, ElseNext: often("else next v", 3)})
	}
	if often("reference data", 4) {
		o.reference = reference{newService(w, p, "r")}
		o.steps = append(o.steps, order.Step{Name: "r", Directory: o.reference, Fingerprint: "edition 1"})
	}
	for from := 0; from < len(p.keys); {
		to := min(len(p.keys), from+in(fmt.Sprint("batch ", from), 1, 4))
		batch := slices.Clone(p.keys[from:to])
		if from > 0 && often(fmt.Sprint("again ", from), 4) {
			batch = append(batch, p.keys[in(fmt.Sprint("which again ", from), 0, from-1)])
		}
		o.batches = append(o.batches, batch)
		from = to
	}
	o.last = make([]made, len(o.batches))
	if o.judges() {
		o.of[o.few].service.before = o.checkReached
	}
	return o
}

// always are columns that each match has, and never are those that no service of these worlds has.
var (
	always = []string{
		"company_about", "company_city", "company_domain", "company_employee_count", "company_industry", "company_name", "company_network_url", "company_revenue", "company_state",
		"company_street", "company_website_url", "company_year_founded", "company_zip_code", "first_name",
	}
	never = []string{"city", "department", "headline", "last_seen_at", "seniority", "state", "street", "zip_code"}
)

// addVerifier adds a step that is asked about the emails that the others find.
func (o *several) addVerifier(disk *worldtest.Disk, dir string, l worldtest.Limits, step order.Step) {
	w := o.world
	one := newPlan(w, l, step.Name).inOrder(o.plan, w.Below(3, "order", "kind of verifier"), 400)
	one.verifies, one.keys = true, nil
	for _, h := range o.of {
		for n := range h.plan.keys {
			if email, _ := h.service.finds(h.plan.first + n); email != "" {
				one.keys = append(one.keys, email)
			}
		}
	}
	if len(one.keys) == 0 {
		return
	}
	h := &history{
		world: w, name: step.Name, plan: one, disk: disk, dir: dir, service: newService(w, one, step.Name), uses: map[string]int{}, known: o.known,
		scope: answers.Scope{Service: "https://" + step.Name + ".example", Operation: o.plan.operation},
	}
	if one.batch > 0 {
		h.scope.Operation = question
	}
	h.service.job = o.job
	o.of, o.steps = append(o.of, h), append(o.steps, step)
}

// inOrder is the plan of a service among those of a world.
func (p plan) inOrder(of plan, kind, first int) plan {
	p.several, p.first, p.operation, p.keys = true, first, of.operation, of.keys
	p.runs, p.allowance, p.misses, p.dear, p.fails, p.spoils = 1, -1, false, false, 0, 0
	p.damaged = of.damaged
	p.retry, p.newKey, p.concurrency, p.logBytes, p.maxBatch, p.storeSlow = of.retry, of.newKey, of.concurrency, of.logBytes, of.maxBatch, of.storeSlow
	batch, later := max(p.batch, 2), max(p.later, 0.3)
	if p.batch, p.later = 0, 0; kind > 0 {
		p.batch, p.every = batch, max(p.every, time.Second)
		p.billsRetries, p.honours = !p.honours, false
	}
	if kind == 2 {
		p.batch, p.later = batch-1, later
	}
	return p
}

// finds is what a service knows of a key.
func (s *service) finds(number int) (email, phoneNumber string) {
	email, phoneNumber = fmt.Sprintf("person-%d@mail.example", number), phone(number)
	switch s.world.Below(3, "finds", number) {
	case 0:
		email = ""
	case 1:
		phoneNumber = ""
	}
	return email, phoneNumber
}

func title(number int) string { return fmt.Sprintf("title-%d-", number) }

// job is what several services may bill together.
type job struct {
	mu             sync.Mutex
	credits, calls int64 // budgets of the present life, -1 without one
	billed, keys   int64
}

// bill bills a key once. The caller holds the lock of the service.
func (j *job) bill(by *service, cost int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.billed, j.keys = j.billed+cost, j.keys+1
	if j.credits >= 0 && j.billed > j.credits || j.calls >= 0 && j.keys > j.calls {
		by.wrong = append(by.wrong, fmt.Sprintf("%d calls and %d credits are billed by all, with budgets of %d and %d", j.keys, j.billed, j.calls, j.credits))
	}
}

func (o *several) isWrong() (wrong bool) {
	for _, h := range o.of {
		wrong = h.isWrong() || wrong
	}
	return wrong
}

func (o *several) live(ctx context.Context) {
	first := o.of[0]
	for range o.plan.crashes {
		last := 1 + o.world.Below(3*o.plan.span, "last step", first.lives+1)
		o.life(ctx, last, o.plan.retry && o.world.Below(6, "retry", first.lives+1) == 0)
		if !o.isWrong() && first.plan.damaged > 0 && first.lives >= first.plan.damaged {
			first.suffer(ctx, o.of...)
			for i := range o.last {
				o.last[i].lacks = o.known.lost && o.last[i].done
			}
		}
		if o.isWrong() {
			return
		}
	}
	first.disk.Failing, o.recorded.Failing = 0, 0
	o.job.credits, o.job.calls = -1, -1
	for i := range quietLives {
		for _, h := range o.of {
			h.service.credits, h.service.calls = -1, -1
			if i >= quietLives/2 {
				h.calmDown()
			}
		}
		o.life(ctx, 0, o.plan.retry && i > 0)
		if o.isWrong() {
			return
		}
	}
	o.atRest(o.world.Begin(ctx, 0))
}

// life is that of one process. It crashes at its last step, if that is not 0.
func (o *several) life(ctx context.Context, last int, retry bool) {
	first := o.of[0]
	for _, h := range o.of {
		h.lives++
	}
	ctx, stop := context.WithTimeout(ctx, longest)
	defer stop()
	ctx = o.world.Begin(ctx, last)
	o.process(ctx, retry)
	powerCut := o.world.Below(3, "power cut", first.lives) > 0
	first.disk.Restart(powerCut)
	o.recorded.Restart(powerCut)
	o.world.Rest(first.pauseOf(time.Second, 10*time.Minute, 2*time.Hour, 30*time.Hour))
}

func (o *several) process(ctx context.Context, retry bool) {
	first := o.of[0]
	o.world.Note("life: %d batches, retry %t, budgets %d %d", len(o.batches), retry, o.job.credits, o.job.calls)
	s, err := first.openStore(ctx, false)
	first.unexpected("open", err)
	if err == nil {
		o.check(ctx, s)
		if o.world.Alive() == nil && !o.isWrong() {
			o.use(ctx, s, retry)
		}
		first.unexpected("close", s.close())
	}
	if o.world.Alive() != nil || o.world.Faults() > 0 {
		first.disturb()
	}
	o.world.Crash()
}

// check checks what is stored of each service.
func (o *several) check(ctx context.Context, s purchase.Store) {
	for _, h := range o.of {
		h.check(ctx, s)
		for key, open := range h.open {
			if open {
				h.service.disturb(key)
			}
		}
	}
}

// order is the order as a life asks it.
func (o *several) order(s opened, retry bool) *order.Order {
	all := &order.Order{Want: o.want, PerKey: o.perKey, Budget: purchase.Budget{MaxCredits: o.job.credits, MaxCalls: o.job.calls}, Counters: &stats.CallCounters{}}
	for i, step := range o.steps {
		if step.Directory == nil {
			step.Remote = o.of[i].remote(s, retry)
		}
		all.Steps = append(all.Steps, &step)
	}
	if err := all.Check(o.plan.operation); err != nil {
		panic(err)
	}
	o.checkIdentity(all)
	return all
}

// use makes all batches that are not recorded.
func (o *several) use(ctx context.Context, s opened, retry bool) {
	first := o.of[0]
	for _, h := range o.of {
		for key, open := range h.open {
			if open && retry {
				h.service.allow(key)
			}
		}
	}
	o.store = s
	err := o.resume()
	defer o.journal.Close()
	if first.unexpected("resume", err); err != nil {
		return
	}
	var plan *planned
	if o.world.Below(3, "plan", first.lives) == 0 {
		if plan = o.planLife(ctx, s, retry); plan == nil {
			return
		}
	}
	with := o.options(maps.Clone(o.judged))
	with.KeepJudged = o.keep
	chain, _, err := o.order(s, retry).Open(ctx, with)
	first.unexpected("open the chain", err)
	if err != nil {
		return
	}
	if !o.known.calm && o.world.Below(5, "interrupt", first.lives) == 0 {
		after := time.Duration(o.world.Draw("interrupted", first.lives) % uint64(20*time.Second))
		defer time.AfterFunc(after, func() { chain.Stop(errInterrupted) }).Stop()
	}
	o.unkept = false
	skipped, stopped := o.makeAll(ctx, chain)
	if o.unkept && !stopped {
		first.wrongly("a verdict is not kept, and the run goes on")
	}
	if skipped && !stopped && chain.End(true) == nil {
		first.wrongly("rows are skipped, and the run is finished")
	}
	chain.Close()
	if o.world.Alive() == nil && o.world.Faults() == 0 {
		if plan != nil {
			o.comparePlanned(plan, o.known.calm && !skipped && !stopped)
		}
		var calls, credits int64
		for i, b := range chain.Buyers() {
			o.of[i].checkBuyer(b)
			ofCalls, ofCredits := b.Spent()
			calls, credits = calls+ofCalls, credits+ofCredits
		}
		if allCalls, allCredits := chain.Total().Totals(); allCalls != calls || allCredits != credits {
			first.wrongly("the job counts %d calls and %d credits, and its resolvers %d and %d", allCalls, allCredits, calls, credits)
		}
		o.check(ctx, s)
	}
	if skipped {
		o.allowMore()
	}
}

// allowMore raises the budgets for the next life.
func (o *several) allowMore() {
	budgets := map[*int64]int64{&o.job.credits: 2 * price, &o.job.calls: 2}
	for _, h := range o.of {
		budgets[&h.service.credits], budgets[&h.service.calls] = 2*price, 2
	}
	for budget, more := range budgets {
		if *budget >= 0 {
			*budget += more
		}
	}
}

// options are those of a chain in which verdicts are known.
func (o *several) options(judged map[string]bool) order.Options {
	return order.Options{
		Operation: o.plan.operation, Run: runName(0), Layout: o.layout, Log: slog.New(slog.DiscardHandler), Judge: o.judge, Judged: judged, EngineSlots: semaphore.NewWeighted(1),
	}
}

// resume begins the journal with what is recorded in it: what was acknowledged has to be. While a
// verdict is missing no batch counts.
func (o *several) resume() error {
	own, err := journal.InFolder(o.recorded).Progress(context.Background(), "/out", false)
	if err != nil {
		return err
	}
	o.journal = journal.New(own)
	_, parts, err := o.journal.Read()
	if err != nil { // what is left of an earlier one is removed
		return fmt.Errorf("%w: %w", errJournal, err)
	}
	judged, err := o.journal.Judged()
	if err != nil {
		return err
	}
	o.compareVerdicts(judged)
	for i := range o.last {
		_, recorded := parts[i]
		if o.last[i].done && !recorded {
			o.of[0].wrongly("batch %d was recorded, and is not", i)
		}
	}
	if o.judges() && len(judged) == 0 {
		parts = nil
		for i := range o.last {
			o.last[i].done = false
		}
	}
	if err := o.journal.Begin(journal.Header{Run: runName(0)}, parts); err != nil {
		return fmt.Errorf("%w: %w", errJournal, err)
	}
	o.setJudged(judged)
	for i := range parts {
		o.last[i].done = true
	}
	return nil
}

// compareVerdicts compares verdicts with those that are kept.
func (o *several) compareVerdicts(judged map[string]bool) {
	for name, before := range o.judged {
		if now, known := judged[name]; !known || now != before {
			o.of[0].wrongly("the verdict on %s was %t, and is not kept", name, before)
		}
	}
}

func (o *several) setJudged(judged map[string]bool) {
	o.judged = judged
	o.open.Store(slices.Contains(slices.Collect(maps.Values(judged)), true))
}

// keep keeps verdicts.
func (o *several) keep(judged map[string]bool) error {
	if err := o.world.Awake(); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.compareVerdicts(judged)
	o.checkVerdict(judged)
	if err := o.journal.KeepJudged(judged); err != nil {
		o.unkept = true
		return fmt.Errorf("%w: %w", errJournal, err)
	}
	o.setJudged(maps.Clone(judged))
	return nil
}

// makeAll makes the batches that are not recorded, in their order, some at a time.
func (o *several) makeAll(ctx context.Context, chain *order.Chain) (skipped, stopped bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var making sync.WaitGroup
	var skips, stops atomic.Bool
	places := make(chan struct{}, o.plan.askers)
	for i, keys := range o.batches {
		if o.last[i].done {
			continue
		}
		turn := chain.Turn()
		places <- struct{}{}
		making.Go(func() {
			defer func() { <-places }()
			o.world.Pause("make", o.of[0].lives, i)
			b := newBatch(keys)
			err := chain.Answer(ctx, turn, b, o.suppress)
			if o.world.Pause("take", o.of[0].lives, i); err == nil && o.world.Awake() == nil {
				var skipped bool
				skipped, err = o.take(i, b)
				skips.Store(skipped || skips.Load())
			}
			if err != nil {
				if ctx.Err() == nil {
					o.of[0].unexpected("make a batch", err)
				}
				stops.Store(true)
				cancel()
			}
		})
	}
	making.Wait()
	if !stops.Load() && o.world.Alive() == nil {
		o.compareAll(ctx)
	}
	return skips.Load(), stops.Load()
}

// newBatch is a batch with keys as rows have them before anybody is asked.
func newBatch(keys []string) *columns.Batch {
	b := &columns.Batch{}
	b.Reset(len(keys))
	b.Rows = make([]int64, len(keys))
	b.Outcomes, b.Reasons = make([]outcome.Outcome, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		b.Rows[i], b.Outcomes[i] = int64(i), outcome.Matched
		b.Keys.Add([]byte(key))
	}
	return b
}

// take looks at a batch that is made, and records it if no row waits. It reports whether rows are
// skipped.
func (o *several) take(number int, b *columns.Batch) (skipped bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	keys, m, whole := o.batches[number], made{}, true
	for i, key := range keys {
		text := o.row(b, i)
		o.world.Note("batch %d: %s: %s", number, key, text)
		later := false
		for range outcome.AskedLater(b.Origins[i].Skipped) {
			later = true
		}
		skipped = skipped || b.Outcomes[i] == outcome.Skipped
		whole = whole && !later && b.Outcomes[i] != outcome.Skipped && b.Outcomes[i] != outcome.Failed
		m.rows = append(m.rows, text)
	}
	for _, a := range b.Asked {
		if s := o.steps[a.Step]; s.Directory != nil || s.Verifies != "" { // what it is asked about is not said
			if credits := int64(a.Receipt.Credits); credits != 0 && (s.Directory != nil || credits != price) {
				o.of[0].wrongly("%s costs %d", a.Resolver, credits)
			}
			continue
		}
		h := o.of[a.Step]
		n := h.service.records[keys[a.Row]].number
		is := h.service.truth(n)
		switch {
		case a.Open || a.Outcome == outcome.Failed:
		case a.Outcome == outcome.Matched != (is == match), int64(a.Receipt.Credits) != h.service.costs(n):
			h.wrongly("key %d is a %s, and %s is said to have answered %s for %d", n, is, a.Resolver, a.Outcome, a.Receipt.Credits)
		default:
			h.acknowledge(n)
		}
	}
	if o.last[number] = m; whole {
		if err := o.journal.Record(number, sinks.Part{}); err != nil {
			return skipped, fmt.Errorf("%w: %w", errJournal, err)
		}
		o.last[number].done = true
	}
	return skipped, nil
}

// compareAll compares the rows of a life.
func (o *several) compareAll(ctx context.Context) {
	want := o.expected(ctx)
	for i, m := range o.last {
		for n, row := range m.rows {
			if !m.lacks && (strings.HasPrefix(row, "matched") || strings.HasPrefix(row, "no_match") || strings.HasPrefix(row, "suppressed")) && !strings.Contains(row, "skipped=") {
				o.compare(want, o.batches[i][n], row)
			}
		}
	}
}

// row is a row in words, without the times and ids of its answers.
func (o *several) row(b *columns.Batch, i int) string {
	words := []string{b.Outcomes[i].String()}
	if b.Reasons[i] != "" {
		words = append(words, b.Reasons[i])
	}
	from := b.Origins[i]
	if b.Answers.Matched[i] {
		lead := resolution.AnswerRow{Of: b.Answers, I: i}.Lead()
		words = append(words, "by="+from.AnsweredBy, lead.JobTitle, lead.Email, lead.Phone, strings.Join(from.Wanted, "+"))
	}
	if from.Skipped != "" {
		words = append(words, "skipped="+from.Skipped)
	}
	return strings.Join(append(words, fmt.Sprint(b.Receipts[i].Credits)), " ")
}

// compare compares the row of a key with that of a world without any fault. A suppressed row does not
// say whom it has passed over before somebody named a listed person.
func (o *several) compare(want map[string]string, key, row string) {
	passes := func(s order.Step) bool { return s.ElseNext }
	if row != want[key] && !(strings.HasPrefix(row, "suppressed") && slices.ContainsFunc(o.steps, passes)) {
		o.of[0].wrongly("key %s has the row\n  %q, and without faults\n  %q", key, row, want[key])
	}
}

// expected are the rows of a world without any fault, by key. Where a call was disturbed, the verdict
// may rest on other keys, one for each: then who was asked is what is stored.
func (o *several) expected(ctx context.Context) map[string]string {
	if !o.isDisturbed() {
		return o.undisturbed(nil)
	}
	few, asked := o.of[o.few], map[string]bool{}
	found, err := o.store.Lookup(ctx, few.scope, few.plan.keys, answers.Freshness{}, false, nil)
	few.unexpected("look up who was asked", err)
	for i, f := range found {
		asked[few.plan.keys[i]] = f.Stored
	}
	return o.undisturbed(asked)
}

// isDisturbed reports whether a fault or a crash met a call to a service that is judged, or to one
// before it, or to a verifier, after which others are asked. A verifier with else: next is also passed over when its
// budget ends.
func (o *several) isDisturbed() bool {
	for i, h := range o.of {
		s := o.steps[i]
		if o.judges() && (i <= o.few || s.Verifies != "") && (s.Verifies != "" && s.ElseNext || h.service.isDisturbed("")) {
			return true
		}
	}
	return false
}

// checkReached checks that the judged service may be asked about a key: until the verdict, those
// before it are decided, and it is among the first that reach it. Disturbed ones may have failed, and
// where else: next goes on, any may have passed a service with a fault.
func (o *several) checkReached(asked string) {
	if o.open.Load() {
		return
	}
	for i, h := range o.of {
		if s := o.steps[i]; s.ElseNext && (s.Verifies != "" || i <= o.few && h.service.isDisturbed("")) {
			return
		}
	}
	reached := 0
	for key, r := range o.ideals(func(string, int) bool { return true }) {
		if key == asked {
			break
		}
		disturbed := slices.ContainsFunc(slices.Collect(maps.Keys(r.checked)), o.isDisturbedAt)
		for _, i := range r.inOrder {
			if i == o.few { // those after it are asked when a verifier has refused a value
				break
			}
			if s := o.of[i].service; i < o.few && !disturbed {
				disturbed = s.isDisturbed(key)
				if !disturbed && !s.isDecided(key) {
					o.of[o.few].wrongly("it is asked about %s, and %s before it has no answer of %s", asked, key, o.steps[i].Name)
				}
			}
		}
		if !disturbed && slices.Contains(r.askedOf, o.few) && !o.of[o.few].service.isDisturbed(key) {
			reached++
		}
	}
	if reached >= o.judge && !o.of[o.few].service.isDisturbed(asked) {
		o.of[o.few].wrongly("it is asked about %s, behind %d keys that decide about it", asked, reached)
	}
}

// isDisturbedAt reports whether a call to a verifier about an email was disturbed.
func (o *several) isDisturbedAt(email string) bool {
	return slices.ContainsFunc(o.of, func(h *history) bool { return h.plan.verifies && h.service.isDisturbed(email) })
}

// checkVerdict checks a verdict that follows from stored answers alone. One that does not was made
// while calls had failed.
func (o *several) checkVerdict(judged map[string]bool) {
	if !o.judges() || o.isDisturbed() {
		return
	}
	needed, matched := 0, 0
	for key, r := range o.ideals(func(string, int) bool { return true }) {
		if slices.Contains(r.askedOf, o.few) && needed < o.judge {
			if needed++; o.of[o.few].service.truthOf(key) == match {
				matched++
			}
		}
	}
	name := o.steps[o.few].Name
	if want := float64(matched) >= o.steps[o.few].MinMatch*float64(o.judge); needed < o.judge || judged[name] != want {
		o.of[o.few].wrongly("the verdict on %s is %v; %d of its first %d keys match", name, judged[name], matched, needed)
	}
}

// atRest compares the rows with those of a world without faults, and with those that are made of
// what is stored alone.
func (o *several) atRest(ctx context.Context) {
	first := o.of[0]
	s, err := first.openStore(ctx, true)
	first.unexpected("open", err)
	if err != nil {
		return
	}
	defer func() { first.unexpected("close", s.close()) }()
	o.store = s
	o.check(ctx, s)
	judged := map[string]bool(nil) // what is stored alone gives the same verdict
	if o.isDisturbed() {
		judged = maps.Clone(o.judged)
	}
	with := o.options(judged)
	with.Run = runName(1)
	chain, _, err := o.order(s, false).AtRest().Open(ctx, with)
	first.unexpected("open the chain", err)
	if err != nil {
		return
	}
	defer chain.Close()
	want := o.expected(ctx)
	for i, keys := range o.batches {
		if o.last[i].lacks {
			continue
		}
		b := newBatch(keys)
		if err := chain.Answer(ctx, chain.Turn(), b, o.suppress); err != nil {
			first.wrongly("make a batch at rest: %v", err)
			return
		}
		for n, key := range keys {
			open := o.isAbout(key, func(h *history) map[string]bool { return h.open })
			switch row := o.row(b, n); {
			case o.isAbout(key, func(h *history) map[string]bool { return h.reopened }): // the row may be from before that
			case strings.Contains(o.last[i].rows[n], ":"+outcome.ReasonUnavailable): // who makes no calls goes by what it refused before
			case row != o.last[i].rows[n]:
				first.wrongly("key %s has the row\n  %q, and made of what is stored\n  %q", key, o.last[i].rows[n], row)
			case !open:
				o.compare(want, key, o.last[i].rows[n])
			case o.plan.retry && strings.HasPrefix(row, "failed"):
				first.wrongly("key %s is never settled: %q", key, row)
			}
		}
	}
	if got := chain.Judged(); !maps.Equal(got, o.judged) {
		first.wrongly("the verdicts are %v, and of what is stored %v", o.judged, got)
	}
}

// isAbout reports whether a key, or an email that was found for it, is among some of a service.
func (o *several) isAbout(key string, some func(*history) map[string]bool) bool {
	return slices.ContainsFunc(o.of, func(h *history) bool {
		return some(h)[key] || slices.ContainsFunc(o.of, func(of *history) bool {
			r, asked := of.service.records[key]
			if !asked {
				return false
			}
			email, _ := of.service.finds(r.number)
			return some(h)[email]
		})
	})
}

func (o *several) judges() bool {
	return slices.ContainsFunc(o.steps, func(s order.Step) bool { return s.MinMatch > 0 })
}
