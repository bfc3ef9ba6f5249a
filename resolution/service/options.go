package service

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/openapi"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/transforms/profile"
)

// Options configure a Service. Fields without a default are required, unless
// their comment says otherwise.
type Options struct {
	// State stores organizations, credits, jobs and callbacks. The caller closes
	// it after Serve has returned.
	State State
	// Resolver answers the single-record operations.
	Resolver resolution.Resolver
	// Searcher answers the keyword searches.
	Searcher resolution.Searcher
	// Requests bounds the contents of bodies.
	Requests request.Limits
	// Profiles are the rules for profile addresses.
	Profiles profile.Rules

	// Pepper hashes keys and seals callback secrets.
	Pepper credential.Pepper
	// Tokens verifies organization JWTs; nil accepts none.
	Tokens *credential.Tokens
	// SystemKey is the x-sys-key of the internal listener; empty closes
	// /internal/* there.
	SystemKey secret.Text

	// Callbacks says which addresses may be called back.
	Callbacks *callback.Policy
	// CallbackConcurrency bounds the callbacks in flight, CallbackPerReceiver those
	// to one receiver.
	CallbackConcurrency, CallbackPerReceiver int
	// CallbackRoots are the certificate authorities for receivers; nil means the
	// system's.
	CallbackRoots *x509.CertPool

	Limits Limits
	Costs  Costs
	// TrustedProxies are the only peers whose X-Forwarded-For counts.
	TrustedProxies []netip.Prefix
	// Retirements are the operations that are deprecated or retired.
	Retirements map[resolution.Operation]Retirement

	// Dashboard shows organizations their account in a browser.
	Dashboard bool

	// JobWorkers is how many keyword searches run at once.
	JobWorkers int
	// Lease is how long a worker keeps a job without renewing it. After that,
	// another worker may take the job.
	Lease time.Duration
	// JobTimeout bounds how long one attempt at a keyword search may take.
	JobTimeout time.Duration
	// Retention is how long finished things are kept.
	Retention state.Retention

	// MaxBody bounds a request's body, in bytes.
	MaxBody int64
	// ResolveTimeout bounds how long the Resolver has for one answer.
	ResolveTimeout time.Duration
	Connections    Connections

	// LogRequests logs every nth request at info level; 0 logs none. All are
	// logged at debug level.
	LogRequests int
	// Log is for operators; nil discards it. It never contains an identifier, a
	// body, a key or a credential.
	Log *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Limits bound the calls of one organization and the guesses of one address. The
// zero Rate means no limit.
type Limits struct {
	Single limit.Rate // single-record operations, of an organization
	Create limit.Rate // keyword creations, of an organization
	Result limit.Rate // result calls, of an organization
	// FailedAuth limits wrong credentials from one client address.
	FailedAuth limit.Rate
	// ActiveJobs is how many unfinished keyword searches an organization may
	// have; 0 is no limit.
	ActiveJobs int
	// KeptBytes is how many bytes an organization may store within a day:
	// callbacks, keyword searches, and answers under an Idempotency-Key. Beyond it,
	// calls that would store more are refused; 0 means no limit.
	KeptBytes int64
}

const (
	// lookUpTime is how long the look-up of a callback's receiver may take. It
	// must match the limit in callback.Policy.
	lookUpTime = 2 * time.Second
	// writeSlack is the part of Connections.WriteTimeout in which a charge is
	// stored and the answer is written.
	writeSlack = 3 * time.Second
)

// Connections bounds the server resources that clients can use.
type Connections struct {
	Max           int           // open at once, further ones wait
	HeaderTimeout time.Duration // to send a request's header
	ReadTimeout   time.Duration // to send a request
	// WriteTimeout is from the end of the header to the end of the answer. A call
	// that is not charged shortly before that is canceled and costs nothing.
	WriteTimeout   time.Duration
	IdleTimeout    time.Duration // between requests
	MaxHeaderBytes int
	// DrainDelay is how long calls are still accepted after /readyz starts to
	// answer 503.
	DrainDelay time.Duration
	// DrainTimeout is how long requests and jobs in progress have to finish once
	// Serve is told to stop.
	DrainTimeout time.Duration
}

// server makes a server with these limits.
func (c Connections) server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: c.HeaderTimeout,
		ReadTimeout:       c.ReadTimeout,
		WriteTimeout:      c.WriteTimeout,
		IdleTimeout:       c.IdleTimeout,
		MaxHeaderBytes:    c.MaxHeaderBytes,
	}
}

// Retirement is the end of an operation. Answers announce it as soon as it is
// configured. After Sunset, calls are refused.
type Retirement struct {
	Deprecated, Sunset time.Time
	// Link is where to read more, an absolute URI; may be empty.
	Link string
}

// noticePeriod is the least time between Deprecated and Sunset.
const noticePeriod = 180 * 24 * time.Hour

// DefaultOptions returns the defaults. State, Resolver, Searcher, Pepper and
// Callbacks have none.
func DefaultOptions() Options {
	return Options{
		Requests:            request.DefaultLimits(),
		Profiles:            profile.DefaultRules(),
		CallbackConcurrency: 64,
		CallbackPerReceiver: 4,
		Limits: Limits{
			Single:     limit.Rate{Events: 600, Per: time.Minute, Burst: 20},
			Create:     limit.Rate{Events: 60, Per: time.Minute, Burst: 20},
			Result:     limit.Rate{Events: 300, Per: time.Minute, Burst: 20},
			FailedAuth: limit.Rate{Events: 30, Per: time.Minute, Burst: 30},
			ActiveJobs: 5,
			KeptBytes:  4 << 30,
		},
		Costs:          DefaultCosts(),
		JobWorkers:     2,
		Lease:          time.Minute,
		JobTimeout:     5 * time.Minute,
		Retention:      state.DefaultRetention(),
		MaxBody:        1 << 20,
		ResolveTimeout: 10 * time.Second,
		Connections: Connections{
			Max:            16_000, // fits the lowest common limits of file descriptors
			HeaderTimeout:  10 * time.Second,
			ReadTimeout:    30 * time.Second,
			WriteTimeout:   60 * time.Second,
			IdleTimeout:    2 * time.Minute,
			MaxHeaderBytes: 16 << 10,
			DrainTimeout:   30 * time.Second,
		},
	}
}

// Validate returns all errors in o, joined.
func (o Options) Validate() error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(o.State == nil, "no state")
	wrong(o.Resolver == nil, "no resolver")
	wrong(o.Searcher == nil, "no searcher")
	wrong(o.Callbacks == nil, "no callback policy")
	if err := o.Requests.Validate(); err != nil {
		errs = append(errs, err)
	}
	wrong(o.CallbackConcurrency < 1 || o.CallbackPerReceiver < 1, "callbacks under way: less than 1")
	for _, l := range []struct {
		name string
		rate limit.Rate
	}{
		{"single-record operations", o.Limits.Single}, {"creations", o.Limits.Create},
		{"results", o.Limits.Result}, {"failed authentications", o.Limits.FailedAuth},
	} {
		if err := l.rate.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("limit of %s: %w", l.name, err))
		}
	}
	wrong(o.Limits.ActiveJobs < 0, "unfinished jobs of an organization: less than 0")
	wrong(o.Limits.KeptBytes < 0, "bytes kept of an organization: less than 0")
	errs = append(errs, o.Costs.validate()...)
	for operation, r := range o.Retirements {
		wrong(!isOperation(operation), "retirement of %q: no such operation", operation)
		wrong(r.Deprecated.IsZero() || r.Sunset.IsZero(), "retirement of %s: it has two dates", operation)
		wrong(r.Link != "" && !isAbsolute(r.Link), "retirement of %s: the link is not an absolute URI", operation)
		wrong(r.Sunset.Sub(r.Deprecated) < noticePeriod, "retirement of %s: less than 180 days from deprecation to sunset", operation)
	}
	wrong(o.JobWorkers < 1, "job workers: less than 1")
	wrong(o.Lease < time.Second, "lease: less than a second")
	wrong(o.JobTimeout <= 0, "time for a job: none")
	wrong(o.LogRequests < 0, "logged requests: one in less than 0")
	wrong(o.MaxBody < 1, "largest body: less than a byte")
	wrong(o.ResolveTimeout <= 0, "time to resolve: none")
	c := o.Connections
	wrong(c.Max < 1, "connections: less than 1")
	wrong(c.HeaderTimeout <= 0 || c.ReadTimeout <= 0 || c.WriteTimeout <= 0 || c.IdleTimeout <= 0 || c.DrainTimeout <= 0 || c.DrainDelay < 0,
		"connections: every time has to be positive")
	least := c.ReadTimeout + o.ResolveTimeout + lookUpTime + writeSlack
	wrong(c.WriteTimeout <= least, "time to write: %s is not more than the %s that reading (%s), resolving (%s), the look-up of a callback's receiver (%s) and writing (%s) may take",
		c.WriteTimeout, least, c.ReadTimeout, o.ResolveTimeout, lookUpTime, writeSlack)
	wrong(c.MaxHeaderBytes < 1<<10, "largest header: less than 1 KiB")
	if len(errs) > 0 {
		return errors.Join(append([]error{fmt.Errorf("service options: %w", resolution.ErrInvalid)}, errs...)...)
	}
	return nil
}

// isAbsolute reports whether link is a URI with a scheme, of characters allowed
// between < and > in a header. Source: RFC 3986, 2 and 4.3; RFC 8288, 3.
func isAbsolute(link string) bool {
	if strings.ContainsFunc(link, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("<>\"{}|\\^`", r) }) {
		return false
	}
	u, err := url.Parse(link)
	return err == nil && u.IsAbs() && (u.Host != "" || u.Opaque != "")
}

// Costs are prices in credits, by name: of an operation, or of a part of one.
type Costs map[string]int64

// The prices of parts of operations.
const (
	// DeanonymizationCompany is a deanonymization that found the company alone.
	DeanonymizationCompany = "deanonymization_company"
	// KeywordDeanonymize and KeywordSuperEnrichment are added to the price of
	// a delivered lead (keyword_to_lead) that asks for them.
	KeywordDeanonymize     = "keyword_to_lead_deanonymize"
	KeywordSuperEnrichment = "keyword_to_lead_super_enrichment"
)

// maxCost keeps every product of prices far from overflowing.
const maxCost = 1_000_000

// DefaultCosts returns the default prices.
func DefaultCosts() Costs {
	return Costs{
		string(resolution.EmailToHEM):         1,
		string(resolution.NetworkToHEM):       1,
		string(resolution.NetworkToPhone):     3,
		string(resolution.IPToCompany):        1,
		string(resolution.Enrichment):         2,
		string(resolution.Deanonymization):    3,
		DeanonymizationCompany:                1,
		string(resolution.KeywordToLead):      1,
		KeywordDeanonymize:                    1,
		KeywordSuperEnrichment:                1,
		string(resolution.KeywordToLeadCount): 1,
	}
}

func (c Costs) validate() (errs []error) {
	known := DefaultCosts()
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if _, ok := known[name]; !ok {
			errs = append(errs, fmt.Errorf("cost of %q: there is no such price; prices are %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
		} else if c[name] < 0 || c[name] > maxCost {
			errs = append(errs, fmt.Errorf("cost of %s: not from 0 to %d", name, maxCost))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if _, ok := c[name]; !ok {
			errs = append(errs, fmt.Errorf("cost of %s: missing", name))
		}
	}
	if c[DeanonymizationCompany] > c[string(resolution.Deanonymization)] {
		errs = append(errs, fmt.Errorf("cost of %s: more than deanonymization", DeanonymizationCompany))
	}
	return errs
}

// of returns the full price of an operation.
func (c Costs) of(o resolution.Operation) int64 { return c[string(o)] }

// found returns the price of an answer.
func (c Costs) found(o resolution.Operation, a resolution.Answer) int64 {
	switch {
	case !a.Matched():
		return 0
	case o == resolution.Deanonymization && a.Lead.MatchLevel != "person":
		return c[DeanonymizationCompany]
	}
	return c.of(o)
}

// lead returns the price of one delivered lead of a keyword search.
func (c Costs) lead(p resolution.SearchPage) int64 {
	price := c.of(resolution.KeywordToLead)
	if p.Deanonymize {
		price += c[KeywordDeanonymize]
	}
	if p.SuperEnrichment {
		price += c[KeywordSuperEnrichment]
	}
	return price
}

// described returns the options that the OpenAPI document shows.
func (o Options) described() openapi.Settings {
	r := o.Requests
	s := openapi.Settings{
		Prices: o.Costs,
		Limits: map[string]int64{
			"keywords": int64(r.Keywords), "places": int64(r.Places), "job_titles": int64(r.JobTitles), "term_length": int64(r.TermLength),
			"city_length": int64(r.CityLength), "date_span": int64(r.DateSpan), "default_date_span": int64(r.DefaultSpan),
			"limit": int64(r.PageLimit), "default_limit": int64(r.DefaultPageLimit), "limit_of_hems": int64(r.HEMs), "default_limit_of_hems": int64(r.DefaultHEMs),
			"depth": int64(r.Depth), "metadata": int64(r.Metadata),
			"url": int64(r.URL), "user_agent": int64(r.UserAgent), "visitor_id": int64(r.VisitorID),
		},
		Rates: map[string]string{
			"single": inWords(o.Limits.Single), "create": inWords(o.Limits.Create), "result": inWords(o.Limits.Result),
			"active": "any number", "kept": "any amount", "body": bytesInWords(o.MaxBody),
		},
		Retired: map[string]openapi.Retired{},
	}
	if o.Limits.ActiveJobs > 0 {
		s.Rates["active"] = strconv.Itoa(o.Limits.ActiveJobs)
	}
	if o.Limits.KeptBytes > 0 {
		s.Rates["kept"] = bytesInWords(o.Limits.KeptBytes)
	}
	for operation, r := range o.Retirements {
		s.Retired[string(operation)] = openapi.Retired{Deprecated: r.Deprecated, Sunset: r.Sunset}
	}
	return s
}

func inWords(r limit.Rate) string {
	if r.Events == 0 {
		return "any number"
	}
	per := map[time.Duration]string{time.Second: "a second", time.Minute: "a minute", time.Hour: "an hour", 24 * time.Hour: "a day"}[r.Per]
	text := fmt.Sprintf("%d %s", r.Events, cmp.Or(per, "in "+r.Per.String()))
	if r.Burst > 0 {
		text += fmt.Sprintf(", %d at once", r.Burst)
	}
	return text
}

func bytesInWords(n int64) string {
	for power, unit := range []string{"GiB", "MiB", "KiB"} {
		if size := int64(1) << (30 - 10*power); n%size == 0 {
			return fmt.Sprintf("%d %s", n/size, unit)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
