package service

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/account"
	"github.com/leadetl/leadetl/resolution/service/admission"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// route is one path of the interface.
type route struct {
	method    string
	name      string               // in metrics and logs
	operation resolution.Operation // sets the price and the retirement
	class     admission.Class
	handle    admission.Handler
	retiring  *retiring // nil without a retirement
}

// routes are the paths of the interface, without trailing slash.
func (s *Service) routes() map[string]*route {
	of := func(operation resolution.Operation, suffix string, class admission.Class, handle admission.Handler) *route {
		return &route{
			method: http.MethodPost, name: string(operation) + suffix, operation: operation, class: class, handle: handle,
			retiring: retiringFrom(s.options.Retirements[operation]),
		}
	}
	own := func(method, name string, do func(context.Context, account.Asked) (any, error)) *route {
		return &route{method: method, name: "account_" + name, operation: account.Scope, class: admission.Result, handle: s.own(do)}
	}
	a := s.answering
	routes := map[string]*route{
		"/lead/resolution/result": of(admission.SingleResult, "", admission.Result, a.SingleResult),

		"/account/balance":            own(http.MethodGet, "balance", s.desk.Balance),
		"/account/usage":              own(http.MethodGet, "usage", s.desk.Usage),
		"/account/resolutions":        own(http.MethodGet, "resolutions", s.desk.Resolutions),
		"/account/resolutions/cancel": own(http.MethodPost, "cancel", s.desk.CancelResolution),
		"/account/callbacks":          own(http.MethodGet, "callbacks", s.desk.Callbacks),
		"/account/callbacks/replay":   own(http.MethodPost, "replay", s.desk.ReplayCallback),
	}
	for _, o := range resolution.SingleRecord {
		routes[o.Facts().Path] = of(o, "", admission.Single, a.Single)
	}
	routes["/lead/resolution/deanonymization"] = routes["/lead/deanonymization"]
	for _, o := range resolution.Keyword {
		routes[o.Facts().Path] = of(o, "", admission.Create, s.gate.Retaining(a.Create))
		routes[o.Facts().Path+"/result"] = of(o, "_result", admission.Result, s.gate.Retaining(a.Result))
	}
	return routes
}

// own makes the handler of a question about the caller's account. The answer to a
// change is stored under its Idempotency-Key.
func (s *Service) own(do func(context.Context, account.Asked) (any, error)) admission.Handler {
	return func(c *admission.Call) (*wire.Reply, error) {
		ctx := c.Request.Context()
		answer, err := do(ctx, account.Asked{Caller: c.Caller, Query: c.Request.URL.Query(), Body: c.Body, At: c.Began})
		if err != nil {
			return nil, err
		}
		wire.WriteJSON(c.Out, answer)
		if c.Key != nil {
			_, err = s.state.Settle(ctx, state.Charge{Organization: c.Caller.Account.ID, Reply: c.Key.Reply(c.Out.Bytes()), At: s.clock.now()})
		}
		return &wire.Reply{Body: c.Out.Bytes()}, err
	}
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
	if r.retiring == nil || r.class == admission.Result || now.Before(r.retiring.until) {
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
