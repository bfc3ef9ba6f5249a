package worldtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bucket is an object store as the machines of a world reach it, over a network that loses,
// delays and repeats. It survives all of them. What happens to a request follows from the
// object and from how many requests of its kind came before.
type Bucket struct {
	world *World
	store http.Handler
	// Failing is the probability that a request or its answer is lost or refused.
	Failing float64
	// Away is the probability that an object cannot be reached, for Outage after the first
	// request.
	Away float64
	// Slow is the probability that a request takes up to three minutes more.
	Slow float64
	// Stale is the probability that a list lacks what was written in the last two minutes, or in Lag.
	Stale float64
	Lag   time.Duration
	// Prompt says that a request of a machine that dies arrives at once or never.
	Prompt bool

	mu       sync.Mutex
	attempts map[string]int
	names    map[string]map[string]int // numbers of the objects in a folder whose names are random
	away     map[string]time.Time      // until when
	pending  []*arrival
	written  map[string]time.Time // when an object was created
	careless int
}

// arrival is a request that arrives after its sender has given it up.
type arrival struct {
	at      time.Time
	request *http.Request
	body    []byte
	// behind is how many requests about its object arrive before it, the first of which writes the
	// object, if they do so before its time; 0 for any number.
	behind, seen int
}

// Outage is longer than a machine waits for the store.
const Outage = 20 * time.Minute

// NewBucket makes a store of a world from one that has no faults.
func NewBucket(w *World, store http.Handler) *Bucket {
	return &Bucket{world: w, store: store, attempts: map[string]int{}, names: map[string]map[string]int{}, away: map[string]time.Time{}, written: map[string]time.Time{}}
}

// Link is the way of one machine to the store, an aws.HTTPClient.
type Link struct {
	bucket  *Bucket
	machine *World
}

// From is the way to the store from a machine.
func (b *Bucket) From(machine *World) Link { return Link{b, machine} }

// MachineHeader is the header of a request to the store that says which machine sent it: the
// number of its life.
const MachineHeader = "Machine"

var errBroken = errors.New("connection reset")

// Do is that of aws.HTTPClient. A machine that crashes or falls asleep with a request does so
// before the request leaves, or while it is on its way.
func (l Link) Do(r *http.Request) (*http.Response, error) {
	b, m := l.bucket, l.machine
	if err := m.Awake(); err != nil {
		return nil, err
	}
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body.Close()
	}
	r.Header.Set(MachineHeader, fmt.Sprint(m.life))
	name, attempt := b.next(r)
	m.Pause("request", name, attempt)
	_, ours, err := m.step(fmt.Sprint(name, " ", attempt))
	draw := func(what string, of uint64) uint64 { return b.world.Draw(what, name, attempt) % of }
	if ours && draw("before", 2) == 0 {
		if err := m.Awake(); err != nil { // it was not sent, or is sent after the sleep
			return nil, err
		}
	} else if err != nil && !ours {
		return nil, err
	}
	fault := b.fault(m, name, attempt)
	if fault == refused {
		if err := wait(r.Context(), b.travel("there", name, attempt)); err != nil {
			return nil, err
		}
		return answer(http.StatusServiceUnavailable), m.Awake()
	}
	there := b.travel("there", name, attempt)
	arrives := time.Now().Add(there)
	gone := wait(r.Context(), there)
	dead := m.Alive()
	switch {
	case fault == broken:
		return nil, errBroken
	case gone != nil:
		b.later(arrives, r, body, 0)
		return nil, gone
	case dead != nil && draw("on its way", 3) == 0:
		return nil, dead
	case dead != nil && !b.Prompt && draw("much later", 2) == 0:
		arrives, behind := arrives.Add(time.Duration(draw("later", uint64(10*time.Minute)))), int(draw("behind", 4))
		if behind > 0 {
			arrives = arrives.Add(Outage) // at the latest
		}
		b.later(arrives, r, body, behind)
		return nil, dead
	}
	response := b.serve(r, body, b.hides(name, attempt))
	m.Note("store %s: %d", name, response.StatusCode)
	if err := errors.Join(wait(r.Context(), b.travel("back", name, attempt)), m.Awake()); err != nil {
		return nil, err
	}
	if fault == lost {
		return nil, errBroken
	}
	return response, nil
}

// next names what a request is about, and counts the requests of its kind. Objects with
// random names are named by their order.
func (b *Bucket) next(r *http.Request) (name string, attempt int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	folder, base := path.Split(r.URL.Path)
	if folder == "/" {
		folder, base = r.URL.Query().Get("prefix"), ""
	} else if kind := path.Base(folder); kind == "f" || kind == "c" || kind == "late" {
		numbers := b.names[folder]
		if numbers == nil {
			numbers = map[string]int{}
			b.names[folder] = numbers
		}
		if numbers[base] == 0 {
			numbers[base] = len(numbers) + 1
		}
		base = fmt.Sprint(numbers[base])
	}
	name = r.Method + " " + folder + base
	b.attempts[name]++
	return name, b.attempts[name]
}

// fault is what happens to a request.
type fault string

const (
	none    fault = ""
	refused fault = "refused" // the store is busy
	broken  fault = "broken"  // before the request arrives
	lost    fault = "lost"    // its answer
)

func (b *Bucket) fault(m *World, name string, attempt int) fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.world
	_, object, _ := strings.Cut(name, " ")
	if b.away[object].IsZero() {
		b.away[object] = time.Now()
		if w.Chance(b.Away, "away", object) {
			b.away[object] = time.Now().Add(Outage)
		}
	}
	if !time.Now().Before(b.away[object]) && !w.Chance(b.Failing, "store fails", name, attempt) {
		return none
	}
	f := []fault{refused, broken, lost, lost}[w.Below(4, "store fault", name, attempt)]
	_ = m.fault(fmt.Sprint(name, " ", f), nil)
	return f
}

// travel is how long a request is under way, one way.
func (b *Bucket) travel(which, name string, attempt int) time.Duration {
	most := 20 * time.Millisecond
	switch {
	case b.world.Chance(b.Slow, which+" slow", name, attempt):
		most = 3 * time.Minute
	case b.world.Below(8, which, name, attempt) == 0:
		most = 2 * time.Second
	}
	return 1 + time.Duration(b.world.Draw(which+" takes", name, attempt)%uint64(most))
}

// wait waits, until the sender gives up.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// later lets a request arrive at a time, or behind some others.
func (b *Bucket) later(at time.Time, r *http.Request, body []byte, behind int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = append(b.pending, &arrival{at: at, request: r.Clone(context.Background()), body: body, behind: behind})
}

// Careless is how many requests would have replaced any object, whoever wrote it.
func (b *Bucket) Careless() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.careless
}

// hides is how old a list is.
func (b *Bucket) hides(name string, attempt int) time.Duration {
	if !b.world.Chance(b.Stale, "stale", name, attempt) {
		return 0
	}
	return time.Duration(b.world.Draw("hides", name, attempt) % uint64(cmp.Or(b.Lag, 2*time.Minute)))
}

// serve answers a request, after all that arrive before it, and before those that arrive behind
// it. A list is as it was some time ago.
func (b *Bucket) serve(r *http.Request, body []byte, ago time.Duration) *http.Response {
	b.Arrive()
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.follow(r)
	return b.apply(r, body, ago)
}

// Arrive lets all requests arrive whose time has come.
func (b *Bucket) Arrive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.SortStableFunc(b.pending, func(x, y *arrival) int { return x.at.Compare(y.at) })
	for len(b.pending) > 0 && !b.pending[0].at.After(time.Now()) {
		late := b.pending[0]
		b.pending = b.pending[1:]
		b.apply(late.request, late.body, 0)
	}
}

// follow lets requests arrive that come right behind one.
func (b *Bucket) follow(r *http.Request) {
	b.pending = slices.DeleteFunc(b.pending, func(late *arrival) bool {
		if late.behind == 0 || late.request.URL.Path != r.URL.Path || late.seen == 0 && r.Method != http.MethodPut {
			return false
		}
		if late.seen++; late.seen < late.behind {
			return false
		}
		b.apply(late.request, late.body, 0)
		return true
	})
}

// listed is an object in a list.
var listed = regexp.MustCompile(`<Contents><Key>([^<]*)</Key>.*?</Contents>`)

func (b *Bucket) apply(r *http.Request, body []byte, ago time.Duration) *http.Response {
	r.Body = io.NopCloser(bytes.NewReader(body))
	recorded := httptest.NewRecorder()
	b.store.ServeHTTP(recorded, r)
	switch folder, _ := path.Split(r.URL.Path); {
	case folder == "/" && ago > 0:
		recorded.Body = bytes.NewBuffer(listed.ReplaceAllFunc(recorded.Body.Bytes(), func(entry []byte) []byte {
			if written, known := b.written[folder+path.Base(r.URL.Path)+"/"+string(listed.FindSubmatch(entry)[1])]; known && time.Since(written) < ago {
				return nil
			}
			return entry
		}))
	case r.Method == http.MethodPut && recorded.Code == http.StatusOK:
		if r.Header.Get("If-None-Match")+r.Header.Get("If-Match") == "" {
			b.careless++
		}
		if b.written[r.URL.Path].IsZero() {
			b.written[r.URL.Path] = time.Now()
		}
	case r.Method == http.MethodDelete:
		delete(b.written, r.URL.Path)
	}
	recorded.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	if recorded.Header().Get("Content-Length") == "" {
		recorded.Header().Set("Content-Length", fmt.Sprint(recorded.Body.Len()))
	}
	return recorded.Result()
}

// answer is an answer without a body.
func answer(status int) *http.Response {
	recorded := httptest.NewRecorder()
	recorded.WriteHeader(status)
	return recorded.Result()
}
