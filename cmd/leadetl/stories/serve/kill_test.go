//go:build unix

package serve

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
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
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
	kills := clitest.KillsWanted(t, 6)
	const seed = 20_261_120 // makes the moments repeatable as far as a clock can be
	random := rand.New(rand.NewPCG(seed, 0))
	p := clitest.NewPlace(t)
	// Who gives every call a key asks again until it is answered. Who gives
	// none asks once.
	careful, careless := newShopper(t, p, "Careful Customer", true), newShopper(t, p, "Careless Customer", false)
	flags := append(clitest.Unlimited, "--callback-allow", "127.0.0.0/8")
	starting, resumed := 0, 0
	for round := 0; round < kills; round++ {
		if round%3 == 2 { // one that is killed before anybody is served, or just when
			s := p.Start(append([]string{"--state", p.State, "--directory", p.Directory}, flags...)...)
			clitest.Until(t, "the service is there", func() bool { return s.Said.Line("serving") != nil || s.Ended() })
			s.Stop(syscall.SIGKILL)
			starting++
			resumed += s.Resumed()
			continue
		}
		s := p.Serve(flags...)
		ctx, stop := context.WithCancel(t.Context())
		var shopping sync.WaitGroup
		for worker := range 3 {
			shopping.Go(func() { careful.shop(ctx, s.Public, rand.New(rand.NewPCG(seed, uint64(round<<8|worker)))) })
			shopping.Go(func() { careless.shop(ctx, s.Public, rand.New(rand.NewPCG(^uint64(seed), uint64(round<<8|worker)))) })
		}
		// After so many answers more, however busy the machine is, and a bit.
		target, began := careful.answered.Load()+careless.answered.Load()+int64(random.IntN(60)), time.Now()
		clitest.Until(t, "customers are served", func() bool {
			return careful.answered.Load()+careless.answered.Load() >= target || time.Since(began) > 3*time.Second || s.Ended()
		})
		kill := time.AfterFunc(time.Duration(random.IntN(20))*time.Millisecond, func() { _ = s.Process.Process.Kill() })
		<-s.Gone
		kill.Stop()
		if code := s.Code(); code != -1 {
			t.Fatalf("the service ended by itself, with exit code %d:\n%s", code, s.Said)
		}
		stop()
		shopping.Wait()
		resumed += s.Resumed()
	}

	s := p.Serve(flags...)
	careful.insist(s.Public)
	careful.collect(s.Public)
	careless.collect(s.Public)
	operator := clitest.NewOperator(t, s.Internal)
	clitest.Until(t, "every search is finished and every callback delivered", func() bool {
		return clitest.IsIdle(string(operator.Do("GET", "/metrics", "").Raw))
	})
	if code := s.Stop(syscall.SIGTERM); code != cli.ExitDone {
		t.Errorf("exit code %d, want %d\n%s", code, cli.ExitDone, s.Said)
	}
	kept, err := sqlite.Administer(p.State, false)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	careful.audit(kept)
	careless.audit(kept)
	t.Logf("seed %d, %d kills, %d of them at the start; %d searches were under way; %s; %s", seed, kills, starting, resumed+s.Resumed(), careful, careless)
}

// shopper is a customer who calls from many goroutines and remembers
// everything.
type shopper struct {
	*clitest.Caller
	name     string
	careful  bool // gives keys and asks again
	receiver *clitest.Receiver

	answered atomic.Int64

	mu    sync.Mutex
	calls []*shopped
}

// shopped is one call a shopper made, maybe more than once.
type shopped struct {
	kind       clitest.Goods
	body       string
	ref        string         // of its callback, "" for none
	key        string         // Idempotency-Key, "" for none
	answer     clitest.Answer // the first; status 0 when there was none
	unanswered int            // attempts that were cut off
	id         uuid.UUID
	result     clitest.Answer // of a search
}

func newShopper(t testing.TB, p *clitest.Place, name string, careful bool) *shopper {
	s := &shopper{Caller: clitest.NewCaller(t, "", p.Customer(name, "10000000")), name: name, careful: careful}
	s.receiver = clitest.NewReceiver(t, p.Admin("secret", "show", name))
	seen := map[string]bool{}
	s.receiver.Respond(func(a clitest.Arrival) int {
		// Some receivers are down when they are called first.
		if first := !seen[a.Ref]; first && strings.HasSuffix(a.Ref, "7") {
			seen[a.Ref] = true
			return []int{http.StatusInternalServerError, 0}[len(seen)%2]
		}
		return http.StatusNoContent
	})
	return s
}

// shop buys one thing after the other until ctx ends, or the service does.
func (s *shopper) shop(ctx context.Context, url string, random *rand.Rand) {
	for ctx.Err() == nil {
		b := &shopped{kind: clitest.Assortment[random.IntN(len(clitest.Assortment))]}
		b.body = b.kind.Body
		s.mu.Lock()
		s.calls = append(s.calls, b)
		number := len(s.calls)
		s.mu.Unlock()
		wantsCallback := b.kind.Operation == resolution.EmailToHEM || b.kind.Operation == resolution.NetworkToPhone || random.IntN(2) == 0
		if wantsCallback && b.kind.Operation != resolution.IPToCompany {
			b.ref = fmt.Sprint(number)
			b.body = strings.TrimSuffix(b.body, "}") + `,"callback_url":"` + s.receiver.Hook(b.kind.Path, b.ref) + `"}`
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
	to := *s.Caller
	to.URL = url
	var headers []string
	if b.key != "" {
		headers = []string{"Idempotency-Key", b.key}
	}
	a, err := to.Try(ctx, http.MethodPost, b.kind.Path, b.body, headers...)
	if err != nil {
		b.unanswered++
		return false
	}
	s.answered.Add(1)
	switch {
	case a.Status != http.StatusOK:
		s.Errorf("%s: %d %s", b.kind.Path, a.Status, a.Raw)
	case b.answer.Status == 0:
		b.answer = a
		b.id, _ = request.ParseID(a.Text("resolution", "id"))
	case string(a.Raw) != string(b.answer.Raw):
		s.Errorf("%s: answered\n%s\nand again\n%s", b.kind.Path, b.answer.Raw, a.Raw)
	case a.Header.Get("Idempotent-Replayed") != "true" || a.Header.Get("X-Credits-Spent") != "0":
		s.Errorf("%s: a second answer under a key is no replay, or not free: %v", b.kind.Path, a.Header)
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
	to := *s.Caller
	to.URL = url
	for _, b := range s.calls {
		switch {
		case b.answer.Status == 0:
			continue
		case b.kind.Search == "list":
			b.result = to.Result("", request.FormatID(b.id))
		case b.kind.Search == "count":
			b.result = to.Result("/count", request.FormatID(b.id))
		}
		if b.ref != "" {
			s.receiver.Wait(b.ref, 1)
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
		if b.answer.Status == 0 {
			unknown++
			continue
		}
		s.checkCallback(b)
		if b.kind.Operation == resolution.IPToCompany {
			continue // it has no id; they are counted below
		}
		account := books.take(b.id)
		if b.kind.Search != "" {
			s.checkSearch(kept, organization.ID, b, account)
			continue
		}
		want := bill{captured: b.kind.Credits}
		if b.kind.Credits > 0 {
			want.captures = 1
		}
		if account != want {
			s.Errorf("%s: the books say %+v, want %+v", b.kind.Path, account, want)
		}
		spent, replayed := b.answer.Header.Get("X-Credits-Spent"), b.answer.Header.Get("Idempotent-Replayed") != ""
		if spent != fmt.Sprint(b.kind.Credits) && !replayed {
			s.Errorf("%s: X-Credits-Spent %s, want %d", b.kind.Path, spent, b.kind.Credits)
		}
	}
	companies := 0
	for _, b := range s.calls {
		if b.kind.Operation == resolution.IPToCompany && b.answer.Status != 0 {
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
	if b.kind.Search == "list" {
		reserved = 100
	}
	want := bill{reserves: 1, reserved: reserved, captured: b.kind.Credits, released: reserved - b.kind.Credits}
	if b.kind.Credits > 0 {
		want.captures = 1
	}
	if account != want {
		s.Errorf("%s: the books say %+v, want %+v", b.kind.Path, account, want)
	}
	if job.Status != state.Completed || b.result.Text("resolution", "status") != "completed" {
		s.Errorf("a search is %s, and polls as %s", job.Status, b.result.Raw)
		return
	}
	number := b.result.At("lead", "count")
	if b.kind.Search == "list" {
		leads, _ := b.result.At("lead", "leads").([]any)
		number = float64(len(leads))
		if b.result.At("credits", "spent") != float64(b.kind.Credits) || b.result.At("lead", "pagination", "total") != number {
			s.Errorf("a list says %s", b.result.Raw)
		}
	}
	if want := map[bool]float64{true: 6}[b.kind.Credits > 0]; number != want {
		s.Errorf("a search finds %v, want %v", number, want)
	}
}

// checkCallback looks at what arrived for a call: one message, however often.
func (s *shopper) checkCallback(b *shopped) {
	s.Helper()
	if b.ref == "" {
		return
	}
	came := s.receiver.Came(b.ref)
	for _, a := range came {
		if a.ID != came[0].ID || a.Body != came[0].Body || a.Resolution != request.FormatID(b.id) || a.Kind != "resolution.completed" {
			s.Errorf("%s: the callback %s about %s, of %s about %s", b.kind.Path, a.ID, a.Resolution, came[0].ID, request.FormatID(b.id))
		}
	}
	if len(came) == 0 {
		s.Errorf("%s: no callback came", b.kind.Path)
		return
	}
	told := b.answer
	if b.kind.Search != "" {
		told = b.result
	}
	var said clitest.Answer
	if err := json.Unmarshal([]byte(came[0].Body), &said.Body); err != nil || !reflect.DeepEqual(said.At("lead"), told.At("lead")) {
		s.Errorf("%s: the callback tells another lead than the answer", b.kind.Path)
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
		if b.answer.Status != 0 {
			answered++
			if b.kind.Search != "" {
				searches++
			}
		}
	}
	ids := map[string]bool{}
	came := s.receiver.Came("")
	for _, a := range came {
		ids[a.ID] = true
	}
	return fmt.Sprintf("%s: %d calls answered, %d of them searches, %d calls cut off, %d callbacks in %d arrivals",
		s.name, answered, searches, unanswered, len(ids), len(came))
}
