package service

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/admission"
	"github.com/leadetl/leadetl/resolution/service/answering"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/dashboard"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/openapi"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/serving"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/transforms/profile"
)

// Options configure a Service. Fields without a default are required, unless
// their comment says otherwise.
type Options struct {
	// State stores organizations, credits, jobs and callbacks. The caller closes
	// it after Serve has returned. Each package here knows the part it reads and
	// changes, as an interface of its own.
	State *sqlite.Store
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

	Limits admission.Limits
	Costs  answering.Costs
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
	Connections    serving.Connections

	// LogRequests logs every nth request at info level; 0 logs none. All are
	// logged at debug level.
	LogRequests int
	// Log is for operators; nil discards it. It never contains an identifier, a
	// body, a key or a credential.
	Log *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

const (
	// lookUpTime is how long the look-up of a callback's receiver may take. It
	// must match the limit in callback.Policy.
	lookUpTime = 2 * time.Second
	// writeSlack is the part of Connections.WriteTimeout in which a charge is
	// stored and the answer is written.
	writeSlack = 3 * time.Second
)

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
		Limits:              admission.DefaultLimits(),
		Costs:               answering.DefaultCosts(),
		JobWorkers:          2,
		Lease:               time.Minute,
		JobTimeout:          5 * time.Minute,
		Retention:           state.DefaultRetention(),
		MaxBody:             1 << 20,
		ResolveTimeout:      10 * time.Second,
		Connections:         serving.DefaultConnections(),
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
	errs = append(errs, o.Limits.Validate()...)
	errs = append(errs, o.Costs.Validate()...)
	for operation, r := range o.Retirements {
		_, known := resolution.ParseOperation(string(operation))
		wrong(!known, "retirement of %q: no such operation", operation)
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
	errs = append(errs, c.Validate()...)
	least := c.ReadTimeout + o.ResolveTimeout + lookUpTime + writeSlack
	wrong(c.WriteTimeout <= least, "time to write: %s is not more than the %s that reading (%s), resolving (%s), the look-up of a callback's receiver (%s) and writing (%s) may take",
		c.WriteTimeout, least, c.ReadTimeout, o.ResolveTimeout, lookUpTime, writeSlack)
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

// shown returns the limits and prices that operators see.
func (o Options) shown() (limits, prices []dashboard.Setting) {
	limits = []dashboard.Setting{
		{Name: "single-record calls of an organization", Value: o.Limits.Single.String()},
		{Name: "new keyword searches of an organization", Value: o.Limits.Create.String()},
		{Name: "results and account calls of an organization", Value: o.Limits.Result.String()},
		{Name: "wrong credentials from an address", Value: o.Limits.FailedAuth.String()},
		{Name: "unfinished keyword searches of an organization", Value: strconv.Itoa(o.Limits.ActiveJobs)},
		{Name: "bytes kept of an organization in a day", Value: figures.Size(o.Limits.KeptBytes)},
		{Name: "keyword searches at work", Value: strconv.Itoa(o.JobWorkers)},
		{Name: "callbacks at work, and to one receiver", Value: strconv.Itoa(o.CallbackConcurrency) + ", " + strconv.Itoa(o.CallbackPerReceiver)},
	}
	for _, name := range slices.Sorted(maps.Keys(o.Costs)) {
		prices = append(prices, dashboard.Setting{Name: name, Value: strconv.FormatInt(o.Costs[name], 10)})
	}
	return limits, prices
}
