package service

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// class is the rate limit that a route's calls count against.
type class uint8

const (
	single class = iota
	create
	result
	classes
)

// policies are the names of the classes in the RateLimit headers.
var policies = [classes]string{single: "single", create: "create", result: "result"}

// route is one path of the interface.
type route struct {
	method    string
	name      string               // in metrics and logs
	operation resolution.Operation // sets the price and the retirement
	class     class
	handle    func(*call) (*wire.Reply, error)
	retiring  *retiring // nil without a retirement
}

// routes are the paths of the interface, without trailing slash.
func (s *Service) routes() map[string]*route {
	of := func(operation resolution.Operation, suffix string, class class, handle func(*call) (*wire.Reply, error)) *route {
		return &route{
			method: http.MethodPost, name: string(operation) + suffix, operation: operation, class: class, handle: handle,
			retiring: retiringFrom(s.options.Retirements[operation]),
		}
	}
	own := func(method, name string, handle func(*call) (*wire.Reply, error)) *route {
		return &route{method: method, name: "account_" + name, operation: accountScope, class: result, handle: handle}
	}
	deanonymization := of(resolution.Deanonymization, "", single, s.single)
	return map[string]*route{
		"/lead/resolution/email_to_hem":         of(resolution.EmailToHEM, "", single, s.single),
		"/lead/resolution/network_to_hem":       of(resolution.NetworkToHEM, "", single, s.single),
		"/lead/resolution/network_to_phone":     of(resolution.NetworkToPhone, "", single, s.single),
		"/lead/resolution/ip_to_company":        of(resolution.IPToCompany, "", single, s.single),
		"/lead/enrichment":                      of(resolution.Enrichment, "", single, s.single),
		"/lead/deanonymization":                 deanonymization,
		"/lead/resolution/deanonymization":      deanonymization,
		"/resolve/keyword_to_lead":              of(resolution.KeywordToLead, "", create, s.retaining(s.create)),
		"/resolve/keyword_to_lead/result":       of(resolution.KeywordToLead, "_result", result, s.retaining(s.result)),
		"/resolve/keyword_to_lead/count":        of(resolution.KeywordToLeadCount, "", create, s.retaining(s.create)),
		"/resolve/keyword_to_lead/count/result": of(resolution.KeywordToLeadCount, "_result", result, s.retaining(s.result)),

		"/account/balance":            own(http.MethodGet, "balance", s.ownBalance),
		"/account/usage":              own(http.MethodGet, "usage", s.ownUsage),
		"/account/resolutions":        own(http.MethodGet, "resolutions", s.ownResolutions),
		"/account/resolutions/cancel": own(http.MethodPost, "cancel", s.cancelOwn),
		"/account/callbacks":          own(http.MethodGet, "callbacks", s.ownCallbacks),
		"/account/callbacks/replay":   own(http.MethodPost, "replay", s.replayOwn),
	}
}

// accountScope is the key scope that lets a key read and change the account of
// its organization.
const accountScope = "account"

// Scopes returns the scopes that a key can have.
func Scopes() []string {
	names := []string{string(resolution.KeywordToLead), string(resolution.KeywordToLeadCount), accountScope}
	for _, o := range resolution.SingleRecord {
		names = append(names, string(o))
	}
	slices.Sort(names)
	return names
}

func isOperation(o resolution.Operation) bool {
	return o == resolution.KeywordToLead || o == resolution.KeywordToLeadCount || slices.Contains(resolution.SingleRecord, o)
}

// trim removes one trailing slash from a path.
func trim(path string) string {
	if len(path) > 1 {
		return strings.TrimSuffix(path, "/")
	}
	return path
}

// retiring is a Retirement in the form of headers.
type retiring struct {
	deprecation, sunset, link []string
	until                     time.Time
}

// retiringFrom returns nil for the zero Retirement. Source of the headers:
// RFC 9745, RFC 8594, RFC 8288.
func retiringFrom(r Retirement) *retiring {
	if r.Sunset.IsZero() {
		return nil
	}
	h := &retiring{
		deprecation: []string{"@" + strconv.FormatInt(r.Deprecated.Unix(), 10)},
		sunset:      []string{r.Sunset.UTC().Format(http.TimeFormat)},
		until:       r.Sunset,
	}
	if r.Link != "" {
		h.link = []string{"<" + r.Link + `>; rel="deprecation"; type="text/html"`}
	}
	return h
}

// retired refuses a call after its operation's end. Results of earlier searches
// can still be fetched.
func (r *route) retired(now time.Time) error {
	if r.retiring == nil || r.class == result || now.Before(r.retiring.until) {
		return nil
	}
	return wire.Refuse(wire.OperationRetired, "The operation was retired on %s.", r.retiring.until.UTC().Format("2 January 2006"))
}

func (r *retiring) header(h http.Header) {
	if r == nil {
		return
	}
	h["Deprecation"], h["Sunset"] = r.deprecation, r.sunset
	if r.link != nil {
		h["Link"] = r.link
	}
}
