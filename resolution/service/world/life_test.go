package world

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
	"github.com/leadetl/leadetl/resolution/service"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

const (
	// quietLives is how many lives without a crash or a fault settle all.
	quietLives = 10
	// longEnough is how long a quiet life waits for searches.
	longEnough = 20 * time.Second
	// longRetained is how long a life removes what is past its retention.
	longRetained = 6 * time.Minute
)

// systemKey is what operators call with.
const systemKey = "system"

// history is all lives of one world, and what is known of them.
type history struct {
	world  *worldtest.World
	plan   plan
	disk   *worldtest.Disk
	dir    string // of the database
	secret callback.Secret
	lives  int
	clock  worldtest.Clock
	free   func() // ends that the folder is on the disk
	quiet  bool   // nothing fails any more
	// fullFrom is the write of each life from which the disk is full; 0 for what is drawn. writes and
	// refused are how many the last life made, and how many of them had no room.
	fullFrom, writes, refused int
	// serving says that a process has the state, for sure.
	serving atomic.Bool

	mu    sync.Mutex
	given map[string]*given // by what was asked for
	posts []post
	open  []string // what was not settled at the end of the last life
	wrong []string
	sets  int // of the clock
	// setBack is when the clock was last set back in this life.
	setBack time.Time
}

// live lets a world live until all is settled.
func (h *history) live(ctx context.Context) {
	h.found(ctx)
	h.disk.Failing, h.disk.Slow = h.plan.diskFails, h.plan.diskSlow
	for i := range h.plan.crashes {
		if h.life(ctx, 1+h.world.Below(h.plan.span, "last step", h.lives+1)); len(h.wrong) > 0 {
			return
		}
		if h.plan.damaged && i == h.plan.crashes-1 {
			if h.damage(ctx); len(h.wrong) > 0 {
				return
			}
		}
		if h.plan.wrongClock && h.world.Below(3, "clock at the start", h.lives) == 0 {
			h.setClock(h.wrongBy("clock at the start", h.lives))
		}
	}
	h.settle(ctx)
}

// settle lets lives without a fault come until all is settled.
func (h *history) settle(ctx context.Context) {
	h.disk.Failing, h.plan.ill, h.plan.hasty, h.quiet = 0, 0, 0, true
	for i := range quietLives {
		if i == quietLives-3 && h.plan.wrongClock { // what was put off by a day is due
			h.setClock(mostAhead + 48*time.Hour)
		}
		if h.life(ctx, 0); len(h.wrong) > 0 || len(h.open) == 0 {
			return
		}
	}
	for _, thing := range h.open {
		h.note(thing)
	}
}

// found makes the organizations and their keys.
func (h *history) found(ctx context.Context) {
	ctx = h.world.Begin(ctx, 0)
	s, pepper := h.start(), template().pepper
	h.secret = callback.NewSecret()
	for i, o := range h.plan.organizations {
		made, err := s.CreateOrganization(ctx, fmt.Sprint("Customer ", i), o.credits, pepper.Seal([]byte(h.secret.Reveal())), h.clock.Now())
		h.unexpected("make an organization", err)
		o.id, o.public = made.ID, made.Public
	}
	for i, k := range h.plan.keys {
		k.text, k.expires = credential.NewKey(false).Reveal(), h.expires(i)
		made, err := s.AddKey(ctx, state.Key{Organization: k.of.id, Label: "test", Hash: pepper.Hash(k.text), Hint: credential.Hint(k.text), Created: h.clock.Now(), Expires: k.expires, Limit: k.limit})
		h.unexpected("make a key", err)
		k.public = made.Public
	}
	h.unexpected("close", s.Close())
	h.end(false)
}

// start opens the state, or returns nil.
func (h *history) start() *sqlite.Store {
	s, err := sqlite.Serve(h.dir)
	h.unexpected("open", err)
	if err != nil {
		return nil
	}
	return s
}

// end ends a life: what survives is what the next one begins with.
func (h *history) end(powerCut bool) {
	h.world.Crash()
	if err := h.disk.Remount(h.dir, powerCut); err != nil {
		h.wrongly("remount: %v", err)
	}
}

// life is the life of one process. It crashes at its last step, if that is not 0.
func (h *history) life(ctx context.Context, last int) {
	h.lives++
	h.setBack = time.Time{}
	for _, o := range h.plan.organizations {
		o.refused = time.Time{}
	}
	h.fill()
	ctx = h.world.Begin(ctx, last)
	h.world.Note("life")
	var second chan *sqlite.Store
	if s := h.start(); s != nil {
		h.serving.Store(true)
		if h.plan.second {
			second = make(chan *sqlite.Store, 1)
			go h.standBy(ctx, second)
		}
		h.use(ctx, s, last)
		h.serving.Store(false)
		h.unexpected("close", s.Close())
	}
	if second != nil {
		if s := <-second; s != nil {
			saw(aSecondTakesOver)
			h.use(ctx, s, last)
			h.unexpected("close", s.Close())
		}
	}
	_, h.refused = h.disk.Full()
	h.writes = h.disk.Writes()
	// SQLite reads again what it has written, also if syncing that failed: a disk that fails ends
	// with the machine, not with the process alone.
	h.end(h.world.Below(3, "power cut", h.lives) > 0 || h.world.Faults() > 0 || h.plan.damaged)
	pause := []time.Duration{time.Second, time.Minute, 40 * time.Minute}[h.world.Below(3, "pause", h.lives)]
	if last == 0 {
		pause = 20 * time.Minute // what is due again is due in the next life
	}
	h.world.Rest(pause)
}

// use checks a state, serves it, and checks it again.
func (h *history) use(ctx context.Context, s *sqlite.Store, last int) {
	h.check(ctx, s)
	if h.world.Alive() != nil || len(h.wrong) > 0 {
		return
	}
	wait := longEnough
	if last > 0 {
		wait = time.Duration(h.world.Draw("ends after", h.lives) % uint64(longEnough))
	}
	if h.plan.wrongClock && h.world.Below(4, "lives long", h.lives) == 0 {
		wait = longRetained
	}
	h.serve(ctx, s, wait)
	h.check(ctx, s)
	h.open = h.unsettled(ctx, s)
}

// run lets a service live, and drains it after some work.
func (h *history) run(ctx context.Context, s *sqlite.Store, work func(ctx context.Context, v *service.Service)) error {
	o := service.DefaultOptions()
	o.State, o.Pepper, o.SystemKey, o.JobWorkers = s, template().pepper, secret.New(systemKey), h.plan.workers
	o.Callbacks = &callback.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Transport: h}
	o.Limits, o.Now = h.limits(), h.clock.Now
	o.Resolver, o.Searcher = resolutiontest.Singly(h.resolve), searcher{h}
	v, err := service.New(o)
	if err != nil {
		h.wrongly("make a service: %v", err)
		return nil
	}
	serving, drain := context.WithCancel(ctx)
	defer drain()
	ended := make(chan error, 1)
	go func() { ended <- v.Serve(serving, service.Listeners{Public: deaf(), Internal: deaf()}) }()
	time.Sleep(100 * time.Millisecond)
	work(ctx, v)
	drain()
	return <-ended
}

// serve lets a service answer its callers, wait, and drain.
func (h *history) serve(ctx context.Context, s *sqlite.Store, after time.Duration) {
	h.unexpected("serve", h.run(ctx, s, func(ctx context.Context, v *service.Service) {
		var clients sync.WaitGroup
		call := func() {
			for i := range h.plan.clients {
				clients.Go(func() { client{h, v, i}.work(ctx) })
			}
		}
		call()
		if h.plan.administered {
			clients.Go(func() { h.administer(ctx) })
		}
		if h.plan.wrongClock && !h.quiet {
			clients.Go(func() { h.setClocks(ctx) })
		}
		clients.Wait()
		if h.awaitRoom(ctx, v) {
			h.awaitReadiness(ctx, v)
			call()
			clients.Wait()
		}
		wait := time.NewTimer(after)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
	}))
}

// administer changes the state as another process does: it gives credits, and lets a key spend
// more.
func (h *history) administer(ctx context.Context) {
	h.world.Pause("administrator", h.lives)
	s, err := sqlite.Administer(h.dir, false)
	h.unexpected("administer", err)
	if err != nil {
		return
	}
	g := &grant{number: 100 + len(h.plan.gifts), of: h.plan.organizations[h.world.Below(len(h.plan.organizations), "gift", h.lives)], credits: 2}
	h.mu.Lock()
	h.plan.gifts = append(h.plan.gifts, g)
	h.of(g.name()).doubtful = 1
	h.mu.Unlock()
	if b, err := s.ChangeCredits(ctx, state.CreditChange{Organization: g.of.id, Credits: g.credits, Note: g.name(), At: h.clock.Now()}); h.world.Alive() == nil {
		h.unexpected("give credits", err)
		h.mu.Lock()
		if known := h.of(g.name()); err == nil {
			known.body, known.doubtful = fmt.Append(nil, b), 0
		}
		h.mu.Unlock()
	}
	h.world.Pause("limits", h.lives)
	if k := h.plan.keys[h.world.Below(len(h.plan.keys), "limits", h.lives)]; k.limit > 0 {
		h.mu.Lock()
		k.limit += 2 // before it is: a crash may come after it is stored
		h.mu.Unlock()
		h.unexpected("limit a key", s.LimitKey(ctx, k.public, k.limit))
	}
	h.unexpected("close", s.Close())
}

// deaf is a listener that no caller can reach.
func deaf() net.Listener {
	l, _ := net.Pipe()
	return deafListener{l}
}

type deafListener struct{ net.Conn }

// Accept waits until the listener is closed.
func (l deafListener) Accept() (net.Conn, error) {
	_, err := l.Read(make([]byte, 1))
	return nil, errors.Join(net.ErrClosed, err)
}

// Addr is that of net.Listener.
func (l deafListener) Addr() net.Addr { return l.LocalAddr() }

// resolve is the reference data about people. A look-up takes a while.
func (h *history) resolve(_ context.Context, r resolution.Request) (a resolution.Answer, err error) {
	h.world.Pause("resolve", h.lives, r.Key)
	for _, c := range h.plan.calls {
		if profile(c.number) == r.Key && h.leads(c) > 0 {
			return resolution.Answer{Lead: &resolution.Lead{Phone: phone(c.number), Contact: resolution.Contact{FullName: phone(c.number)}}}, nil
		}
	}
	return a, nil
}

// searcher is the reference data of searches.
type searcher struct{ *history }

// Edition is that of resolution.Searcher.
func (searcher) Edition() string { return "" }

// Search is that of resolution.Searcher. The keyword of a call is its number.
func (s searcher) Search(ctx context.Context, k resolution.KeywordSearch, _ resolution.SearchPage) (r resolution.SearchResult, err error) {
	var number int
	if _, err := fmt.Sscanf(k.Keywords[0], "keyword-%d", &number); err != nil {
		return r, err
	}
	select {
	case <-time.After(time.Duration(s.world.Below(5000, "search", s.lives, number)) * time.Millisecond):
	case <-ctx.Done():
		return r, ctx.Err()
	}
	s.mu.Lock()
	g := s.of(s.plan.calls[number].name())
	g.searched++
	fails := s.world.Chance(s.plan.failing, "search fails", number, g.searched)
	g.mayBe = g.mayBe || fails
	s.mu.Unlock()
	if fails {
		return r, resolution.ErrUnavailable
	}
	r.Leads = resolution.NewAnswers()
	for i := range s.leads(s.plan.calls[number]) {
		r.Leads.AddFound(&resolution.FoundLead{LeadID: fmt.Sprintf("lead_%032d", i), MatchedKeywords: k.Keywords, SearchedAt: time.Now()})
		r.Total++
	}
	return r, nil
}

// Count is that of resolution.Searcher, and not asked for.
func (searcher) Count(context.Context, resolution.KeywordSearch, int) (resolution.SearchCount, error) {
	panic("nobody counts")
}

// wrongly notes what broke a promise.
func (h *history) wrongly(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(fmt.Sprintf(format, args...))
}

// note is wrongly with the lock held. Nothing is wrong with "".
func (h *history) note(wrong string) {
	if wrong != "" {
		h.wrong = append(h.wrong, fmt.Sprintf("life %d: %s", h.lives, wrong))
	}
}

// unexpected notes an error that nothing in the world explains.
func (h *history) unexpected(what string, err error) {
	switch {
	case err == nil, h.world.Alive() != nil, h.troubled():
	default:
		h.wrongly("%s: %v", what, err)
	}
}
