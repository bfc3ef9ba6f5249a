package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
	"github.com/leadetl/leadetl/resolution/service"
	"github.com/leadetl/leadetl/resolution/service/admission"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/openapi/openapitest"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// TestConformance: a client that asks a service is as good as the engine the
// service asks.
func TestConformance(t *testing.T) {
	called := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(called.Close)
	c := newClient(t, called.URL) // three operations want a callback address
	resolutiontest.Run(t, resolutiontest.Singly(func(ctx context.Context, r resolution.Request) (resolution.Answer, error) {
		reply, err := c.Do(ctx, resolution.Call{Request: r})
		if reply.Pending {
			t.Errorf("%s: the service answers later", r.Operation)
		}
		return resolution.Answer{Lead: reply.Found.Lead(), Reason: reply.Reason}, err
	}))
}

func TestSearchConformance(t *testing.T) {
	resolutiontest.RunSearch(t, searcher{newClient(t, ""), new(sync.Map)})
}

// newClient is a client of a service on the sample directory.
func newClient(t *testing.T, callbackURL string) *client.Client {
	t.Helper()
	url, key := serve(t)
	o := client.DefaultOptions()
	o.BaseURL, o.Key, o.CallbackURL = url, secret.New(key), callbackURL
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// serve runs a service, whose answers are all held to the document.
func serve(t *testing.T) (url, key string) {
	t.Helper()
	kept, err := sqlite.Serve(t.TempDir())
	must(t, err)
	t.Cleanup(func() { must(t, kept.Close()) })
	pepper, err := credential.LoadPepper(t.Context(), filepath.Join(t.TempDir(), "pepper"), true)
	must(t, err)
	o := service.DefaultOptions()
	engine := embedded.New(sample(t), embedded.Options{})
	o.State, o.Pepper, o.Resolver, o.Searcher = kept, pepper, engine, engine
	o.Callbacks = &callback.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	o.Limits = admission.Limits{}
	s, err := service.New(o)
	must(t, err)
	run(t, s)

	organization, err := kept.CreateOrganization(t.Context(), "Example Customer", 1_000_000, pepper.Seal([]byte(callback.NewSecret().Reveal())), time.Now())
	must(t, err)
	key = credential.NewKey(false).Reveal()
	_, err = kept.AddKey(t.Context(), state.Key{Organization: organization.ID, Hash: pepper.Hash(key), Hint: credential.Hint(key), Created: time.Now()})
	must(t, err)
	server := httptest.NewServer(documented(t, s.Public()))
	t.Cleanup(server.Close)
	return server.URL, key
}

// run lets the service work on keyword searches. Its own listener is asked
// nothing.
func run(t *testing.T, s *service.Service) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, service.Listeners{Public: l}) }()
	t.Cleanup(func() {
		stop()
		must(t, <-ended)
	})
}

// sample opens the sample directory, freshly imported.
func sample(t *testing.T) *directory.Directory {
	t.Helper()
	from, to := resolutiontest.Sample(t), t.TempDir()
	_, err := directory.Import(t.Context(), to, directory.Files{
		People:    filepath.Join(from, "people.csv"),
		Companies: filepath.Join(from, "companies.csv"),
		IPRanges:  filepath.Join(from, "ip-ranges.csv"),
		Searches:  filepath.Join(from, "searches.csv"),
		Visits:    filepath.Join(from, "visits.csv"),
	}, directory.DefaultOptions())
	must(t, err)
	d, err := directory.Open(to)
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	return d
}

// documented holds everything a handler is asked and answers to the document.
func documented(t *testing.T, h http.Handler) http.Handler {
	t.Helper()
	v, err := openapitest.New()
	must(t, err)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // who asked has gone
		}
		r.Body = io.NopCloser(bytes.NewReader(sent))
		answered := httptest.NewRecorder()
		h.ServeHTTP(answered, r)
		x := openapitest.Exchange{Request: r, Sent: sent, Status: answered.Code, Header: answered.Header(), Body: answered.Body.Bytes()}
		if err := v.Check(x); err != nil {
			t.Errorf("against the document: %v", err)
		}
		for name, values := range answered.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answered.Code)
		_, _ = w.Write(answered.Body.Bytes()) // whoever went away does not hear of it
	})
}

// searcher is a Searcher that asks a service: a search is begun, and asked
// about until it is finished. What was begun before is only asked about.
type searcher struct {
	client *client.Client
	begun  *sync.Map // asked as text: id
}

var _ resolution.Searcher = searcher{}

// Edition is the service's business.
func (searcher) Edition() string { return "" }

func (s searcher) Search(ctx context.Context, k resolution.KeywordSearch, p resolution.SearchPage) (resolution.SearchResult, error) {
	if p.Number < 1 || p.Limit < 1 { // a client does not send a zero
		return resolution.SearchResult{}, fmt.Errorf("%w: no such page", resolution.ErrInvalid)
	}
	r, err := s.ask(ctx, resolution.SearchCall{Operation: resolution.KeywordToLead, KeywordSearch: k, SearchPage: p})
	found := resolution.SearchResult{Leads: resolution.NewAnswers(), Total: r.Result.Total}
	for _, l := range resolutiontest.Found(r.Result.Leads) {
		l.MatchedKeywords = respelled(l.MatchedKeywords, k.Keywords)
		found.Leads.AddFound(&l)
	}
	return found, err
}

func (s searcher) Count(ctx context.Context, k resolution.KeywordSearch, hems int) (resolution.SearchCount, error) {
	r, err := s.ask(ctx, resolution.SearchCall{Operation: resolution.KeywordToLeadCount, KeywordSearch: k, SearchPage: resolution.SearchPage{HEMs: hems}})
	return r.Count, err
}

// ask returns the result of a search. Keywords of space alone are none, which a
// service does not take.
func (s searcher) ask(ctx context.Context, ask resolution.SearchCall) (found resolution.FoundPage, err error) {
	if !slices.ContainsFunc(ask.Keywords, func(k string) bool { return spaced(k) != "" }) {
		return found, nil
	}
	var r resolution.Reply
	name := fmt.Sprintf("%#v", ask)
	if id, known := s.begun.Load(name); known {
		r.Pending, r.ID = true, id.(string)
	} else if r, err = s.client.Start(ctx, ask); err == nil {
		s.begun.Store(name, r.ID)
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for err == nil && r.Pending {
		if r, err = s.client.Poll(ctx, ask.Operation, r.ID, ask.ClientRef); r.Pending {
			select {
			case <-ctx.Done():
				return found, ctx.Err()
			case <-look.C:
			}
		}
	}
	if r.Page != nil {
		found = *r.Page
	}
	return found, err
}

// respelled are the keywords of a question that matched. A service takes
// those that differ in case and spacing alone as one, without space around it.
func respelled(matched, asked []string) (all []string) {
	for _, k := range asked {
		if slices.ContainsFunc(matched, func(m string) bool { return strings.EqualFold(spaced(m), spaced(k)) }) {
			all = append(all, k)
		}
	}
	return all
}

func spaced(s string) string { return strings.Join(strings.Fields(s), " ") }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
