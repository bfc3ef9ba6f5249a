//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// TestServeKilled kills the service with SIGKILL at random moments, while
// customers call it, again and again, and then lets it finish. What a customer
// was told holds: an answer was charged once and can be had again under its
// key, a search that was accepted is completed once, a callback that was
// promised arrives, under one id.
//
// LEADETL_KILLS is how many kills have to hit (default 6).
func TestServeKilled(t *testing.T) {
	t.Parallel()
	kills := killsWanted(t, 6)
	const seed = 20_261_120 // makes the moments repeatable as far as a clock can be
	random := rand.New(rand.NewPCG(seed, 0))
	p := newPlace(t)
	// Who gives every call a key asks again until it is answered. Who gives
	// none asks once.
	careful, careless := newShopper(t, p, "Careful Customer", true), newShopper(t, p, "Careless Customer", false)
	flags := append(unlimited, "--callback-allow", "127.0.0.0/8")
	starting, resumed := 0, 0
	for round := 0; round < kills; round++ {
		if round%3 == 2 { // one that is killed before anybody is served, or just when
			s := p.start(append([]string{"--state", p.state, "--directory", p.directory}, flags...)...)
			until(t, "the service is there", func() bool { return s.said.line("serving") != nil || s.ended() })
			s.stop(syscall.SIGKILL)
			starting++
			resumed += s.resumed()
			continue
		}
		s := p.serve(flags...)
		ctx, stop := context.WithCancel(t.Context())
		var shopping sync.WaitGroup
		for worker := range 3 {
			shopping.Go(func() { careful.shop(ctx, s.public, rand.New(rand.NewPCG(seed, uint64(round<<8|worker)))) })
			shopping.Go(func() { careless.shop(ctx, s.public, rand.New(rand.NewPCG(^uint64(seed), uint64(round<<8|worker)))) })
		}
		// After so many answers more, however busy the machine is, and a bit.
		target, began := careful.answered.Load()+careless.answered.Load()+int64(random.IntN(60)), time.Now()
		until(t, "customers are served", func() bool {
			return careful.answered.Load()+careless.answered.Load() >= target || time.Since(began) > 3*time.Second || s.ended()
		})
		kill := time.AfterFunc(time.Duration(random.IntN(20))*time.Millisecond, func() { _ = s.process.Process.Kill() })
		<-s.gone
		kill.Stop()
		if code := s.code(); code != -1 {
			t.Fatalf("the service ended by itself, with exit code %d:\n%s", code, s.said)
		}
		stop()
		shopping.Wait()
		resumed += s.resumed()
	}

	s := p.serve(flags...)
	careful.insist(s.public)
	careful.collect(s.public)
	careless.collect(s.public)
	operator := newOperator(t, s.internal)
	until(t, "every search is finished and every callback delivered", func() bool {
		return isIdle(string(operator.do("GET", "/metrics", "").raw))
	})
	if code := s.stop(syscall.SIGTERM); code != cli.ExitDone {
		t.Errorf("exit code %d, want %d\n%s", code, cli.ExitDone, s.said)
	}
	kept, err := sqlite.Administer(p.state, false)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	careful.audit(kept)
	careless.audit(kept)
	t.Logf("seed %d, %d kills, %d of them at the start; %d searches were under way; %s; %s", seed, kills, starting, resumed+s.resumed(), careful, careless)
}

// shopper is a customer who calls from many goroutines and remembers
// everything.
type shopper struct {
	*caller
	name     string
	careful  bool // gives keys and asks again
	receiver *receiver

	answered atomic.Int64

	mu    sync.Mutex
	calls []*shopped
}

// shopped is one call a shopper made, maybe more than once.
type shopped struct {
	kind       goods
	body       string
	ref        string // of its callback, "" for none
	key        string // Idempotency-Key, "" for none
	answer     answer // the first; status 0 when there was none
	unanswered int    // attempts that were cut off
	id         uuid.UUID
	result     answer // of a search
}

func newShopper(t testing.TB, p *place, name string, careful bool) *shopper {
	s := &shopper{caller: newCaller(t, "", p.customer(name, "10000000")), name: name, careful: careful}
	s.receiver = newReceiver(t, p.admin("secret", "show", name))
	seen := map[string]bool{}
	s.receiver.respond(func(a arrival) int {
		// Some receivers are down when they are called first.
		if first := !seen[a.ref]; first && strings.HasSuffix(a.ref, "7") {
			seen[a.ref] = true
			return []int{http.StatusInternalServerError, 0}[len(seen)%2]
		}
		return http.StatusNoContent
	})
	return s
}

// shop buys one thing after the other until ctx ends, or the service does.
func (s *shopper) shop(ctx context.Context, url string, random *rand.Rand) {
	for ctx.Err() == nil {
		b := &shopped{kind: assortment[random.IntN(len(assortment))]}
		b.body = b.kind.body
		s.mu.Lock()
		s.calls = append(s.calls, b)
		number := len(s.calls)
		s.mu.Unlock()
		wantsCallback := b.kind.operation == resolution.EmailToHEM || b.kind.operation == resolution.NetworkToPhone || random.IntN(2) == 0
		if wantsCallback && b.kind.operation != resolution.IPToCompany {
			b.ref = fmt.Sprint(number)
			b.body = strings.TrimSuffix(b.body, "}") + `,"callback_url":"` + s.receiver.hook(b.kind.path, b.ref) + `"}`
		}
		if s.careful {
			b.key = fmt.Sprintf("key-%d", number)
		}
		if !s.buy(ctx, url, b) || s.careful && random.IntN(4) == 0 && !s.buy(ctx, url, b) {
			return
		}
	}
}

// buy makes a call and reports whether it was answered. What is not answered
// with success is another's mistake.
func (s *shopper) buy(ctx context.Context, url string, b *shopped) bool {
	s.Helper()
	to := *s.caller
	to.url = url
	var headers []string
	if b.key != "" {
		headers = []string{"Idempotency-Key", b.key}
	}
	a, err := to.try(ctx, http.MethodPost, b.kind.path, b.body, headers...)
	if err != nil {
		b.unanswered++
		return false
	}
	s.answered.Add(1)
	switch {
	case a.status != http.StatusOK:
		s.Errorf("%s: %d %s", b.kind.path, a.status, a.raw)
	case b.answer.status == 0:
		b.answer = a
		b.id, _ = request.ParseID(a.text("resolution", "id"))
	case string(a.raw) != string(b.answer.raw):
		s.Errorf("%s: answered\n%s\nand again\n%s", b.kind.path, b.answer.raw, a.raw)
	case a.header.Get("Idempotent-Replayed") != "true" || a.header.Get("X-Credits-Spent") != "0":
		s.Errorf("%s: a second answer under a key is no replay, or not free: %v", b.kind.path, a.header)
	}
	return true
}

// insist makes every call again under its key: those that were answered are
// answered with the same.
func (s *shopper) insist(url string) {
	s.Helper()
	for _, b := range s.calls {
		for range 2 { // the first may be the first that is answered
			if !s.buy(context.Background(), url, b) {
				s.Fatal("a service that is not killed does not answer")
			}
		}
	}
}

// collect polls what was accepted and waits for the callbacks.
func (s *shopper) collect(url string) {
	s.Helper()
	to := *s.caller
	to.url = url
	for _, b := range s.calls {
		switch {
		case b.answer.status == 0:
			continue
		case b.kind.search == "list":
			b.result = to.result("", request.FormatID(b.id))
		case b.kind.search == "count":
			b.result = to.result("/count", request.FormatID(b.id))
		}
		if b.ref != "" {
			s.receiver.wait(b.ref, 1)
		}
	}
}

// audit compares what the shopper knows with what the service's books say.
func (s *shopper) audit(kept *sqlite.Store) {
	s.Helper()
	organization, err := kept.FindOrganization(s.Context(), s.name)
	if err != nil {
		s.Fatal(err)
	}
	books := s.readBooks(kept, organization.ID)
	unknown := 0
	for _, b := range s.calls {
		if b.answer.status == 0 {
			unknown++
			continue
		}
		s.checkCallback(b)
		if b.kind.operation == resolution.IPToCompany {
			continue // it has no id; they are counted below
		}
		account := books.take(b.id)
		if b.kind.search != "" {
			s.checkSearch(kept, organization.ID, b, account)
			continue
		}
		want := bill{captured: b.kind.credits}
		if b.kind.credits > 0 {
			want.captures = 1
		}
		if account != want {
			s.Errorf("%s: the books say %+v, want %+v", b.kind.path, account, want)
		}
		spent, replayed := b.answer.header.Get("X-Credits-Spent"), b.answer.header.Get("Idempotent-Replayed") != ""
		if spent != fmt.Sprint(b.kind.credits) && !replayed {
			s.Errorf("%s: X-Credits-Spent %s, want %d", b.kind.path, spent, b.kind.credits)
		}
	}
	companies := 0
	for _, b := range s.calls {
		if b.kind.operation == resolution.IPToCompany && b.answer.status != 0 {
			companies++
		}
	}
	// What is left in the books are calls that were cut off: at most as many as
	// were.
	left := len(books.bills) + books.companies - companies
	if books.companies < companies || left > unknown || left > 0 && s.careful {
		s.Errorf("%s: ip_to_company is %d times in the books, and was answered %d times; of others too much are %d, and %d calls were cut off",
			s.name, books.companies, companies, left, unknown)
	}
}

// checkSearch holds a search to what was found without a kill.
func (s *shopper) checkSearch(kept *sqlite.Store, organization int64, b *shopped, account bill) {
	s.Helper()
	job, err := kept.FindJob(s.Context(), organization, b.id)
	if err != nil {
		s.Error(err)
		return
	}
	reserved := int64(1)
	if b.kind.search == "list" {
		reserved = 100
	}
	want := bill{reserves: 1, reserved: reserved, captured: b.kind.credits, released: reserved - b.kind.credits}
	if b.kind.credits > 0 {
		want.captures = 1
	}
	if account != want {
		s.Errorf("%s: the books say %+v, want %+v", b.kind.path, account, want)
	}
	if job.Status != state.Completed || b.result.text("resolution", "status") != "completed" {
		s.Errorf("a search is %s, and polls as %s", job.Status, b.result.raw)
		return
	}
	number := b.result.at("lead", "count")
	if b.kind.search == "list" {
		leads, _ := b.result.at("lead", "leads").([]any)
		number = float64(len(leads))
		if b.result.at("credits", "spent") != float64(b.kind.credits) || b.result.at("lead", "pagination", "total") != number {
			s.Errorf("a list says %s", b.result.raw)
		}
	}
	if want := map[bool]float64{true: 6}[b.kind.credits > 0]; number != want {
		s.Errorf("a search finds %v, want %v", number, want)
	}
}

// checkCallback looks at what arrived for a call: one message, however often.
func (s *shopper) checkCallback(b *shopped) {
	s.Helper()
	if b.ref == "" {
		return
	}
	came := s.receiver.came(b.ref)
	for _, a := range came {
		if a.id != came[0].id || a.body != came[0].body || a.resolution != request.FormatID(b.id) || a.kind != "resolution.completed" {
			s.Errorf("%s: the callback %s about %s, of %s about %s", b.kind.path, a.id, a.resolution, came[0].id, request.FormatID(b.id))
		}
	}
	if len(came) == 0 {
		s.Errorf("%s: no callback came", b.kind.path)
		return
	}
	told := b.answer
	if b.kind.search != "" {
		told = b.result
	}
	var said answer
	if err := json.Unmarshal([]byte(came[0].body), &said.body); err != nil || !reflect.DeepEqual(said.at("lead"), told.at("lead")) {
		s.Errorf("%s: the callback tells another lead than the answer", b.kind.path)
	}
}

// bill is what the books say about one resolution.
type bill struct {
	captures, reserves           int
	captured, reserved, released int64
}

// books are an organization's ledger, by resolution.
type books struct {
	bills     map[uuid.UUID]bill
	companies int // captures of ip_to_company
}

// take returns what there is about a resolution, and crosses it out.
func (b *books) take(id uuid.UUID) bill {
	defer delete(b.bills, id)
	return b.bills[id]
}

// readBooks reads the ledger, and checks that it balances at every entry.
func (s *shopper) readBooks(kept *sqlite.Store, organization int64) *books {
	s.Helper()
	b := &books{bills: map[uuid.UUID]bill{}}
	var available, reserved, granted, captured, after int64
	for {
		entries, err := kept.Ledger(s.Context(), organization, after, 1000)
		if err != nil {
			s.Fatal(err)
		}
		if len(entries) == 0 {
			break
		}
		for _, e := range entries {
			after = e.Seq
			available, reserved = available+e.Available, reserved+e.Reserved
			if available < 0 || reserved < 0 {
				s.Fatalf("after entry %d: %d available, %d reserved", e.Seq, available, reserved)
			}
			of := b.bills[e.Resolution]
			switch e.Kind {
			case state.Grant:
				granted += e.Credits
				continue
			case state.Capture:
				captured += e.Credits
				if e.Operation == resolution.IPToCompany {
					b.companies++
					continue
				}
				of.captures, of.captured = of.captures+1, of.captured+e.Credits
			case state.Reserve:
				of.reserves, of.reserved = of.reserves+1, of.reserved+e.Credits
			case state.Release:
				of.released += e.Credits
			}
			b.bills[e.Resolution] = of
		}
	}
	balance, err := kept.Balance(s.Context(), organization)
	if err != nil {
		s.Fatal(err)
	}
	if balance.Available != available || balance.Available != granted-captured || balance.Reserved != 0 || reserved != 0 {
		s.Errorf("%s: granted %d, captured %d, in the ledger %d available and %d reserved, balance %+v", s.name, granted, captured, available, reserved, balance)
	}
	return b
}

// String tells what was bought.
func (s *shopper) String() string {
	answered, unanswered, searches := 0, 0, 0 // calls, not attempts
	for _, b := range s.calls {
		unanswered += b.unanswered
		if b.answer.status != 0 {
			answered++
			if b.kind.search != "" {
				searches++
			}
		}
	}
	ids := map[string]bool{}
	came := s.receiver.came("")
	for _, a := range came {
		ids[a.id] = true
	}
	return fmt.Sprintf("%s: %d calls answered, %d of them searches, %d calls cut off, %d callbacks in %d arrivals",
		s.name, answered, searches, unanswered, len(ids), len(came))
}
