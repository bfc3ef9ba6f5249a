package provider

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
	"github.com/leadetl/leadetl/transforms/profile"
)

// maxBody bounds an answer, in bytes, without its encodings.
const maxBody = 4 << 20

// Options say how a provider is asked.
type Options struct {
	// Key is what the entry's key is made of: the key, USER:PASSWORD for basic, ID:SECRET for a
	// token. It is empty for none.
	Key secret.Text
	// Reread reads the key again after a 401: keys rotate. nil if Key cannot change.
	Reread func() (secret.Text, error)
	// Concurrency is the maximum of simultaneous requests, and of kept connections.
	Concurrency int
	// Timeout bounds a request from the dial to the last byte of the answer.
	Timeout time.Duration
	// RootCAs are trusted instead of the system's; nil trusts the system's.
	RootCAs *x509.CertPool
	// Asked are the questions of the run; nil for those of this client alone.
	Asked *exchange.Asked
	// Observe is told of each exchange, also of those without an answer; nil tells nobody.
	Observe func(Exchange)
	// Kind is what is asked about; "" for what the operation says.
	Kind resolution.Identifier
	// Base is asked instead of the entry's base, in tests; "" for the entry's.
	Base string
}

// DefaultOptions are the defaults of the command line, without a key.
func DefaultOptions() Options { return Options{Concurrency: 16, Timeout: 30 * time.Second} }

// Client asks one provider. It is safe for concurrent use.
type Client struct {
	entry   *Entry
	base    *url.URL
	line    *exchange.Line
	options Options
	key     atomic.Pointer[secret.Text]
	tokens  tokens
}

// New makes a client without opening a connection. The error joins everything that is wrong with o
// and is resolution.ErrInvalid.
func New(e *Entry, o Options) (*Client, error) {
	base := e.base
	var errs []error
	if o.Base != "" {
		var err error
		if base, err = parseBase(o.Base); err != nil {
			errs = append(errs, err)
		}
	}
	o.Key = trimmed(o.Key)
	if err := e.key.check(o.Key); err != nil {
		errs = append(errs, fmt.Errorf("the key of %s: %w", e.Name, err))
	}
	if o.Concurrency < 1 {
		errs = append(errs, fmt.Errorf("concurrency %d is less than 1", o.Concurrency))
	}
	if o.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("timeout %s is not positive", o.Timeout))
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("%w: %w", resolution.ErrInvalid, errors.Join(errs...))
	}
	if o.Asked == nil {
		o.Asked = exchange.NewAsked(profile.DefaultRules().Hosts)
	}
	c := &Client{entry: e, base: base, options: o, line: exchange.NewLine(o.Concurrency, o.Timeout, maxBody, o.RootCAs)}
	c.key.Store(&o.Key)
	c.tokens.turn = make(chan struct{}, 1)
	return c, nil
}

// Close closes the idle connections.
func (c *Client) Close() { c.line.HTTP.CloseIdleConnections() }

// Reach asks for the address of the provider alone, without key and question, which costs nothing.
// clock is the provider's; zero if it does not say the time.
func (c *Client) Reach(ctx context.Context) (clock time.Time, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, c.base.String(), nil)
	if err != nil {
		return clock, err
	}
	response, err := c.line.HTTP.RoundTrip(request)
	if err != nil {
		return clock, err
	}
	response.Body.Close()
	clock, _ = http.ParseTime(response.Header.Get("Date"))
	return clock, nil
}

// Balance asks for what is left, which its entry says is free. The error names the line of the entry, and what the
// provider answered: its status alone, or which member is missing.
func (c *Client) Balance(ctx context.Context) (left int64, err error) {
	b := c.entry.balance
	fail := func(format string, args ...any) error {
		return fmt.Errorf("the balance of %s (%s): %s", c.entry.Name, c.entry.line(b.line), fmt.Sprintf(format, args...))
	}
	m, _ := b.ask.render(func(string) (string, bool) { return "", false })
	m.headers = slices.Concat(c.entry.headers, m.headers)
	got, err := c.send(ctx, "", m, false)
	if failed, is := errors.AsType[*resolution.CallError](err); is {
		return 0, fmt.Errorf("%w: %w", fail("%s", failed.Reason()), err)
	}
	defer got.watch.Done()
	if got.Status/100 != 2 {
		err := fail("the provider answers %d to %s %s", got.Status, m.Method, m.Target)
		if got.Status == http.StatusUnauthorized || got.Status == http.StatusForbidden {
			err = fmt.Errorf("%w: %w", err, resolution.ErrDenied)
		}
		return 0, err
	}
	reading(got.body(), func(v jsontree.Value) {
		n, is := exchange.Number(b.credits.one(v))
		switch lack := b.credits.lack(v); {
		case len(v) == 0:
			err = fail("the answer is not complete JSON")
		case lack != "":
			err = fail("credits: %s: %s", b.credits, lack)
		case !is || n < 0 || n > math.MaxInt64/2:
			err = fail("credits: %s is no number from 0; some providers say so that the key is wrong", b.credits)
		}
		left = int64(n)
	})
	return left, err
}

// BatchSize is how many keys of an operation a request can have.
func (c *Client) BatchSize(op resolution.Operation) int { return c.entry.BatchSize(c.kindOf(op)) }

func (c *Client) kindOf(op resolution.Operation) resolution.Identifier {
	return cmp.Or(c.options.Kind, c.entry.KindOf(op))
}

// Do asks about one key. The error is a *resolution.CallError, or the context's.
func (c *Client) Do(ctx context.Context, call resolution.Call) (resolution.Reply, error) {
	result := c.DoBatch(ctx, []resolution.Call{call})[0]
	return result.Reply, result.Err
}

// DoBatch asks about the keys of calls of one operation in one request: no more than the entry's
// BatchSize, and none whose questions are equal. Each call gets its own answer and no other's.
func (c *Client) DoBatch(ctx context.Context, calls []resolution.Call) []resolution.Result {
	op := calls[0].Operation
	keys := make([]string, len(calls))
	for i, call := range calls {
		keys[i] = call.Key
	}
	m, r, q, err := c.message(c.kindOf(op), keys)
	switch {
	case errors.Is(err, errOneQuestion):
		return each(len(calls), &resolution.CallError{Operation: op, Class: resolution.Unavailable, Unbilled: true, Detail: err.Error(), Cause: resolution.ErrAskAlone})
	case err != nil:
		return each(len(calls), &resolution.CallError{Operation: op, Class: resolution.Invalid, Detail: err.Error()})
	}
	began := time.Now()
	got, err := c.send(ctx, op, m, false)
	if err != nil {
		c.observe(Exchange{Request: r, Keys: keys, Message: m, Failure: err}, began)
		return each(len(calls), err)
	}
	defer got.watch.Done()
	answer := Response{got.Status, got.Header, got.body(), false}
	verdicts := r.judge(q, answer)
	c.observe(Exchange{Request: r, Keys: keys, Message: m, Response: answer, Verdicts: verdicts}, began)
	got.shared = len(calls) > 1
	results := make([]resolution.Result, len(calls))
	c.renew(&got, verdicts)
	for i, v := range verdicts {
		results[i] = c.result(op, keys[i], got, v, func() string { return r.ticket(q, v.Next, i) })
	}
	return results
}

func (c *Client) observe(x Exchange, began time.Time) {
	if x.Took = time.Since(began); c.options.Observe != nil {
		c.options.Observe(x)
	}
}

// renew leaves all connections if one of them gave an answer to another request, or may have.
func (c *Client) renew(g *got, verdicts []Verdict) {
	isMatch := slices.ContainsFunc(verdicts, func(v Verdict) bool { return v.Outcome == Match })
	g.doubtful = g.doubtful || isMatch && g.watch.IsDoubtful(true)
	if g.doubtful || slices.ContainsFunc(verdicts, func(v Verdict) bool { return v.Swapped }) {
		c.line.Renew()
	}
}

// errOneQuestion says that the provider could not tell the answers to two keys apart.
var errOneQuestion = errors.New("two keys of a batch are one question")

// message is the request about some keys.
func (c *Client) message(kind resolution.Identifier, keys []string) (m Message, r *Request, q asked, err error) {
	r, is := c.entry.Request(kind)
	switch {
	case !is:
		return m, nil, q, fmt.Errorf("%s is not asked about %s", c.entry.Name, kind)
	case len(keys) > c.entry.BatchSize(kind):
		return m, nil, q, fmt.Errorf("%s is asked about %d keys at a time", c.entry.Name, c.entry.BatchSize(kind))
	}
	if m, is = r.Message(keys...); !is {
		return m, nil, q, errors.New("a key lacks the form that the provider asks for")
	}
	q = r.asked(c.options.Asked, keys)
	if ids := slices.Sorted(slices.Values(q.ids)); len(slices.Compact(ids)) < len(ids) {
		return m, nil, q, errOneQuestion
	}
	return m, r, q, nil
}

// each is the same error for n calls.
func each(n int, err error) []resolution.Result {
	results := make([]resolution.Result, n)
	for i := range results {
		results[i].Err = err
	}
	return results
}

// got is an answer, and who may have gotten it.
type got struct {
	exchange.Response
	watch    *exchange.Watch
	doubtful bool // it may be that to another request
	shared   bool // it is about several keys
}

// body is what rules see of the body: nothing if it did not come whole.
func (g got) body() []byte {
	if g.Fault != nil {
		return []byte("{") // the beginning of an answer is none
	}
	return g.Body
}

// send sends a request with the key. A caller calls got.watch.Done when it has judged the answer. If a
// token was refused that is not new, it is renewed, and the request sent again: a refusal bills nothing.
func (c *Client) send(ctx context.Context, op resolution.Operation, m Message, renewed bool) (got, error) {
	key := c.key.Load()
	token, err := c.token(ctx, op, renewed)
	if err != nil {
		return got{}, err
	}
	request, err := c.request(m, key, token.value)
	if err != nil {
		return got{}, &resolution.CallError{Operation: op, Class: resolution.Invalid, Detail: err.Error()}
	}
	a, w, err := c.line.Send(ctx, request, func(exchange.Response) bool { return false })
	if err != nil {
		failed, _ := errors.AsType[*exchange.Failure](err)
		c.heed(failed.Status, key)
		return got{}, &resolution.CallError{
			Operation: op, Class: failed.Class, Status: failed.Status, Sent: failed.Sent, Detail: failed.Detail,
			General: failed.Class == resolution.Denied && failed.Cause == nil, Body: failed.Body, Cause: failed.Cause,
		}
	}
	g := got{Response: a, watch: w, doubtful: w.IsDoubtful(false)}
	if g.doubtful {
		c.line.Renew()
	}
	c.heed(a.Status, key)
	if a.Status == http.StatusUnauthorized && !g.doubtful && c.entry.key.token != nil && !renewed && time.Since(token.since) > freshToken {
		w.Done()
		return c.send(ctx, op, m, true)
	}
	return g, nil
}

// heed reads the key again if it was refused. One that cannot be read, or is none, leaves the old
// one in use.
func (c *Client) heed(status int, used *secret.Text) {
	if status != http.StatusUnauthorized || c.options.Reread == nil || c.key.Load() != used {
		return
	}
	if key, err := c.options.Reread(); err == nil {
		if key = trimmed(key); c.entry.key.check(key) == nil {
			c.key.CompareAndSwap(used, &key)
		}
	}
}
