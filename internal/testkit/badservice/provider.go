package badservice

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// ProviderOptions are the settings of a Provider. DefaultProvider has those of a well-behaved one.
type ProviderOptions struct {
	// Name is that of its entry. What it says about a key follows from both.
	Name string
	// Address is where it listens; "" is a free port of the loopback interface.
	Address string
	// Key is the API key of callers; empty accepts everybody.
	Key string
	// Seed makes the faults repeatable: each follows from it, the key, and how often that was asked.
	Seed uint64
	// Batch is how many keys a request may have; 0 takes one at a time. By is how an element finds
	// its key.
	Batch int
	By    By
	// Polls is how many polls find an answer unfinished; 0 answers at once.
	Polls int
	// Checks makes a verifier of email addresses: Matched is the share that is valid.
	Checks bool
	// Matched is the share of keys that match, BadRow the share that is refused without a bill. Of
	// the matches Email and Phone are the shares that have one.
	Matched, BadRow, Email, Phone float64
	// Match and NoMatch are the prices.
	Match, NoMatch int64
	// Costs is where answers say what they cost: header, body, or "" for nowhere.
	Costs string
	// Credits is the balance; a negative one is unlimited.
	Credits int64
	// BillsRetries bills every request that it has read, also one that it breaks off.
	BillsRetries bool
	// Latency is the time to make an answer.
	Latency time.Duration
	// Ledger is a file that keeps the ledger, of this Provider and of those before it; "" is memory.
	Ledger string
	Faults ProviderFaults
}

// By is how an element of a batch finds its key.
type By string

// The ways.
const (
	ByPosition By = "position"
	ByRef      By = "ref"
	ByName     By = "name" // an object whose members have the keys as names
)

// DefaultProvider is a provider without faults.
func DefaultProvider(name string) ProviderOptions {
	return ProviderOptions{Name: name, By: ByRef, Matched: 0.75, Email: 0.8, Phone: 0.6, Match: 1, Credits: -1, Costs: "body"}
}

// Provider is an HTTP API with a shape of its own, which its Entry describes. It bills each key of
// each request, and knows no idempotency keys. It is an http.Handler and safe for many goroutines.
type Provider struct {
	options ProviderOptions
	quit    chan struct{}

	mu       sync.Mutex
	faults   ProviderFaults
	granted  int64
	spent    int64
	denied   bool
	requests int              // about keys
	asked    map[string]int   // how often, by key
	polled   map[string]int   // by task
	tasks    map[string]*task // whose answers come later
	book     []Asked
	file     *os.File // nil keeps the book in memory

	listener listener
}

// task is an answer that comes later.
type task struct {
	keys  []string
	reply *reply
}

// NewProvider makes a provider, with the ledger of the one before it. It does not listen before Start.
func NewProvider(o ProviderOptions) (*Provider, error) {
	p := &Provider{options: o, quit: make(chan struct{}), faults: o.Faults, asked: map[string]int{}, polled: map[string]int{}, tasks: map[string]*task{}}
	p.listener.address = o.Address
	if o.Ledger == "" {
		return p, nil
	}
	var err error
	if p.book, err = ReadLedger(o.Ledger); err != nil {
		return nil, err
	}
	for _, a := range p.book {
		p.asked[a.Key]++
		p.spent += a.Credits
	}
	p.file, err = os.OpenFile(o.Ledger, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return p, err
}

// Start is Service.Start.
func (p *Provider) Start() (url string, err error) { return p.listener.start(p) }

// Stop is Service.Stop.
func (p *Provider) Stop() error { return p.listener.stop() }

// Close is Stop. Nothing may be called after it but what looks at the ledger.
func (p *Provider) Close() error {
	close(p.quit)
	err := p.Stop()
	if p.file != nil {
		_ = p.file.Close() // each line was written at once
	}
	return err
}

// SetFaults replaces the faults.
func (p *Provider) SetFaults(f ProviderFaults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
}

// Grant adds to the balance.
func (p *Provider) Grant(credits int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.granted += credits
}

// Forget forgets the answers that come later.
func (p *Provider) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.tasks)
}

// Deny says whether the key is refused from now on.
func (p *Provider) Deny(all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.denied = all
}

// Entry is the entry of the provider, at an address, in a file of providers.
func (p *Provider) Entry(url string) string {
	o := &p.options
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("%s:\n  base: %q\n  key: header X-Api-Key", o.Name, url)
	if o.Checks {
		say("  check: email\n  ask: {email: \"GET /v1/check?email={email}\"}\n  helper: [email_status]")
	} else if o.Batch == 0 {
		say("  ask: {network_url: \"GET /v1/people?profile={network_url}\"}")
	}
	if !o.Checks {
		say("  echo: person.profile")
	}
	if o.Batch > 0 {
		say("  batch: {size: %d, ask: \"POST /v1/bulk\", status: status, %s}", o.Batch, map[By]string{
			ByPosition: `each: {profile: "{network_url}"}, in: ".", answers: "."`,
			ByRef:      `each: {ref: "{ref}", profile: "{network_url}"}, in: people, answers: answers, id: {send: ref, back: ref}`,
			ByName:     `each: "{network_url}", in: people, answers: answers, id: {send: "."}`,
		}[o.By])
	}
	if o.Polls > 0 {
		say("  later: {ask: \"GET /v1/tasks/{task}\", every: 1s, wait: 10m}")
	}
	say("  price: {match: %d, no_match: %d}", o.Match, o.NoMatch)
	if o.Costs != "" {
		say("  cost: %s", map[string]string{"header": "header X-Credits-Spent", "body": "body spent"}[o.Costs])
	}
	if o.BillsRetries {
		say("  retry: false")
	}
	say("  answers:\n    - slow_down: 429 | 403 error=too_many_requests | 200 state=throttle_triggered")
	if o.Polls > 0 {
		say("    - later: 202 task")
	}
	say(`    - match: 200 person | 200 status=valid | 200 status=invalid
    - no_match: 404 | 200 !person
    - no_credits: 402
    - not_billed: 503 error=busy
    - refused: 401
    - bad_row: 400
  fields:`)
	if o.Checks {
		say("    email_status: status")
	} else {
		say("    full_name: person.name\n    job_title: person.title\n    email: person.email\n    phone: person.phones.0\n    company_name: person.employer.name")
	}
	return b.String()
}

// ServeHTTP answers a request, or misbehaves.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.listener.enter() {
		panic(http.ErrAbortHandler) // the provider is stopping
	}
	defer p.listener.leave()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		panic(http.ErrAbortHandler) // the caller is gone
	}
	if p.options.Latency > 0 {
		time.Sleep(p.options.Latency) // the request is billed even if its caller is gone by then
	}
	f := p.judge(r, body)
	if c, is := r.Context().Value(connKey{}).(*conn); is {
		c.follow(f.kind)
	}
	f.carryOut(w, p.quit)
}

// keys are those of a request, with its task if it is a poll; none if it is not of the shape.
func (p *Provider) keys(r *http.Request, body []byte) (keys []string, poll string) {
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/v1/tasks/") && p.options.Polls > 0:
		return nil, strings.TrimPrefix(path, "/v1/tasks/")
	case path == "/v1/check" && p.options.Checks:
		return []string{r.URL.Query().Get("email")}, ""
	case path == "/v1/people" && p.options.Batch == 0 && !p.options.Checks:
		return []string{r.URL.Query().Get("profile")}, ""
	case path == "/v1/bulk" && p.options.Batch > 0 && r.Method == http.MethodPost:
		return p.batchKeys(body), ""
	}
	return nil, ""
}

// batchKeys are the keys of a batch, whose refs are their places; none if they are too many.
func (p *Provider) batchKeys(body []byte) (keys []string) {
	type one struct{ Ref, Profile string }
	var list []one
	var named struct{ People json.RawMessage }
	switch p.options.By {
	case ByPosition:
		named.People = body
	default:
		if json.Unmarshal(body, &named) != nil {
			return nil
		}
	}
	if p.options.By == ByName {
		_ = json.Unmarshal(named.People, &keys) // without an object, keys stays empty
	} else if json.Unmarshal(named.People, &list) == nil {
		for i, item := range list {
			if p.options.By == ByRef && item.Ref != fmt.Sprint(i+1) {
				return nil
			}
			keys = append(keys, item.Profile)
		}
	}
	if len(keys) > p.options.Batch {
		return nil
	}
	return keys
}
