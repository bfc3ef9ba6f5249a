package service

import (
	"context"
	"crypto/tls"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/openapi/openapitest"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// receiver is a TLS server that takes callbacks.
type receiver struct {
	*httptest.Server
	posts chan post
}

type post struct {
	*http.Request
	body []byte
}

func newReceiver(f *fixture) *receiver {
	r := &receiver{posts: make(chan post, 16)} // more than any test makes
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			f.Error(err)
		}
		r.posts <- post{q, body}
		w.WriteHeader(http.StatusNoContent)
	}))
	f.Cleanup(r.Close)
	return r
}

// TestCallbacks: what is posted, signed, about each way to finish.
func TestCallbacks(t *testing.T) {
	f := &fixture{TB: t, client: &http.Client{}}
	f.client.Transport = openapitest.Transport(t, f.transport())
	to := newReceiver(f)
	s := &searcher{}
	f.prepare(func(o *Options) {
		o.CallbackRoots = to.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
		o.Searcher = s
	})
	stop := f.run()
	address := to.URL + "/hook?to=me&x=<1>"
	for _, c := range []struct {
		path, body, kind string
		fails            bool
	}{
		{"/lead/resolution/email_to_hem", `{"email":"ada.example@bakery.example",`, "resolution.completed", false},
		{"/lead/resolution/network_to_phone", `{"network_url":"` + stranger + `",`, "resolution.completed", false},
		{enrichment, `{"network_url":"` + ada + `",`, "resolution.completed", false},
		{list, `{"keywords":["x"],"metadata":{"client_ref":"1"},`, "resolution.completed", false},
		{tally, `{"keywords":["x"],`, "resolution.completed", false},
		{list, `{"keywords":["x"],`, "resolution.failed", true},
	} {
		s.search = nil
		if c.fails {
			s.search = func(context.Context, resolution.KeywordSearch, resolution.SearchPage) (resolution.SearchResult, error) {
				return resolution.SearchResult{}, io.ErrUnexpectedEOF
			}
		}
		a := f.post(c.path, c.body+`"callback_url":"`+address+`"}`)
		got := <-to.posts
		openapitest.Callback(t, c.path, got.Request, got.body)
		if id, err := callback.Verify(got.Header, got.body, []callback.Secret{f.secret}, time.Now()); err != nil || !strings.HasPrefix(id, "msg_") {
			t.Errorf("%s: %s, %v", c.path, id, err)
		}
		var body struct {
			Type, Operation, Timestamp string
			Resolution                 struct {
				ID  string
				URL string `json:"callback_url"`
			}
			Payload map[string]any
		}
		if err := json.Unmarshal(got.body, &body); err != nil {
			t.Fatal(err)
		}
		of := path.Base(c.path)
		if c.path == tally {
			of = "keyword_to_lead_count"
		}
		if body.Operation != of {
			t.Errorf("%s: the callback is of %q", c.path, body.Operation)
		}
		if body.Type != c.kind || body.Resolution.ID != a.text("resolution", "id") || body.Resolution.URL != address ||
			body.Payload["callback_url"] != address || got.RequestURI != "/hook?to=me&x=%3C1%3E" && got.RequestURI != "/hook?to=me&x=<1>" {
			t.Errorf("%s: %s %s", c.path, got.RequestURI, got.body)
		}
	}
	f.must(stop())
	delivered, err := f.store.Deliveries(t.Context(), 0, state.Delivered, "", 100)
	f.must(err)
	if len(delivered) != 6 {
		t.Errorf("%d callbacks are delivered", len(delivered))
	}
}

// TestIgnoredCallback: ip_to_company answers at once and posts nothing.
func TestIgnoredCallback(t *testing.T) {
	f := newFixture(t)
	a := f.post("/lead/resolution/ip_to_company", `{"ip":"192.31.196.5","callback_url":"https://10.0.0.1/"}`)
	all, err := f.store.Deliveries(t.Context(), 0, "", "", 100)
	f.must(err)
	if a.status != http.StatusOK || len(all) != 0 {
		t.Errorf("%d %s, %d callbacks", a.status, a.raw, len(all))
	}
}

// TestDrain: a request under way when the service is told to end is answered,
// nothing new is, and readiness says so.
func TestDrain(t *testing.T) {
	arrived, goOn := make(chan struct{}), make(chan struct{})
	f := &fixture{TB: t, client: &http.Client{}}
	f.client.Transport = f.transport()
	f.prepare(func(o *Options) {
		resolver := resolution.NewSingle(o.Resolver)
		o.Resolver = resolutiontest.Singly(func(ctx context.Context, r resolution.Request) (resolution.Answer, error) {
			close(arrived)
			<-goOn
			return resolver.Resolve(ctx, r)
		})
	})
	stop := f.run()
	if a := f.do(http.MethodGet, f.internal+"/readyz", ""); a.status != http.StatusOK {
		t.Errorf("before: %d %s", a.status, a.raw)
	}
	underway, stopped := make(chan answer, 1), make(chan error, 1)
	go func() {
		a, err := f.try(t.Context(), http.MethodPost, f.public+enrichment, askAda)
		if err != nil {
			t.Error(err)
		}
		underway <- a
	}()
	<-arrived
	go func() { stopped <- stop() }()
	for { // until the listener is closed
		c, err := net.Dial("tcp", strings.TrimPrefix(f.public, "http://"))
		if err != nil {
			break
		}
		_ = c.Close()
	}
	if a := f.do(http.MethodGet, f.internal+"/readyz", ""); a.status != http.StatusServiceUnavailable || a.code() != "unavailable" {
		t.Errorf("draining: %d %s", a.status, a.raw)
	}
	if a := f.do(http.MethodGet, f.internal+"/healthz", ""); a.status != http.StatusOK {
		t.Errorf("draining: %d %s", a.status, a.raw)
	}
	close(goOn)
	if a := <-underway; a.status != http.StatusOK || a.at("data") != true {
		t.Errorf("%d %s", a.status, a.raw)
	}
	f.must(<-stopped)
	if got := f.balance().Available; got != plenty-2 {
		t.Errorf("%d credits left", got)
	}
}

// TestDrainCutsOff: a request that does not end in time is cut off, leaves no
// charge, and Serve says so.
func TestDrainCutsOff(t *testing.T) {
	arrived := make(chan struct{})
	f := &fixture{TB: t, client: &http.Client{}}
	f.client.Transport = f.transport()
	f.prepare(func(o *Options) {
		o.Connections.DrainTimeout = 50 * time.Millisecond
		o.Resolver = resolutiontest.Singly(func(ctx context.Context, _ resolution.Request) (resolution.Answer, error) {
			close(arrived)
			<-ctx.Done()
			return resolution.Answer{}, ctx.Err()
		})
	})
	stop := f.run()
	underway := make(chan error, 1)
	go func() {
		_, err := f.try(t.Context(), http.MethodPost, f.public+enrichment, askAda)
		underway <- err
	}()
	<-arrived
	if err := stop(); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("%v", err)
	}
	if <-underway == nil {
		t.Error("the request was answered")
	}
	if got := f.balance().Available; got != plenty {
		t.Errorf("%d credits left", got)
	}
}

// TestDrainGivesJobsBack: a search that does not end in time waits for the
// next service, which finishes it.
func TestDrainGivesJobsBack(t *testing.T) {
	begun := make(chan struct{}, 1)
	s := &searcher{search: func(ctx context.Context, _ resolution.KeywordSearch, _ resolution.SearchPage) (resolution.SearchResult, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return resolution.SearchResult{}, ctx.Err()
	}}
	f := &fixture{TB: t, client: &http.Client{}}
	f.client.Transport = f.transport()
	f.prepare(func(o *Options) {
		o.Searcher = s
		o.Connections.DrainTimeout = 50 * time.Millisecond
	})
	stop := f.run()
	id := f.started(list, `{"keywords":["x"],"limit":3}`)
	<-begun
	f.must(stop())

	finished := make(chan struct{})
	s.search = func(_ context.Context, _ resolution.KeywordSearch, p resolution.SearchPage) (resolution.SearchResult, error) {
		close(finished)
		return threeLeads(p), nil
	}
	stop = f.again()
	<-finished
	f.must(stop()) // waits for the job
	stop = f.again()
	if a := f.resultOf(listResult, id); a.text("resolution", "status") != "completed" || a.at("credits", "spent") != 3.0 {
		t.Errorf("%s", a.raw)
	}
	f.must(stop())
	if got := f.balance(); got != (state.Balance{Available: plenty - 3}) {
		t.Errorf("%+v", got)
	}
}

// again runs a new service on the same state.
func (f *fixture) again() (stop func() error) {
	f.Helper()
	next, err := New(f.options)
	f.must(err)
	f.service = next
	return f.run()
}

func TestTLS(t *testing.T) {
	f := &fixture{TB: t}
	backend := httptest.NewUnstartedServer(nil)
	backend.StartTLS() // for its certificate
	defer backend.Close()
	f.prepare()
	l := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- f.service.Serve(ctx, Listeners{Public: l, TLS: &tls.Config{Certificates: backend.TLS.Certificates}})
	}()
	f.client = backend.Client()
	a := f.do(http.MethodPost, "https://"+l.Addr().String()+enrichment, askAda)
	if a.status != http.StatusOK || a.header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%d %s, headers %v", a.status, a.raw, a.header)
	}
	f.client.CloseIdleConnections()
	old := &tls.Config{MaxVersion: tls.VersionTLS11, InsecureSkipVerify: true}
	if c, err := tls.Dial("tcp", l.Addr().String(), old); err == nil {
		t.Error("TLS 1.1 is taken")
		_ = c.Close()
	}
	cancel()
	f.must(<-ended)
}

// TestListenerThatFails ends the service.
func TestListenerThatFails(t *testing.T) {
	f := &fixture{TB: t}
	f.prepare()
	l := listen(t)
	f.must(l.Close())
	if err := f.service.Serve(t.Context(), Listeners{Public: l, Internal: listen(t)}); err == nil || !strings.Contains(err.Error(), "public listener") {
		t.Errorf("%v", err)
	}
}

// TestToldToEndBeforeItBegan is a clean end.
func TestToldToEndBeforeItBegan(t *testing.T) {
	f := &fixture{TB: t}
	f.prepare()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := listen(t)
	f.must(f.service.Serve(ctx, Listeners{Public: l}))
	if _, err := l.Accept(); err == nil {
		t.Error("the listener is open")
	}
}

// damagedState is an open state whose table of callbacks has noise for a page.
func damagedState(t *testing.T) *sqlite.Store {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, sqlite.DatabaseName)
	whole, err := sqlite.Serve(dir)
	if err == nil {
		err = whole.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	var page int64
	err = errors.Join(db.QueryRowContext(t.Context(), "SELECT rootpage FROM sqlite_schema WHERE name = 'outbox'").Scan(&page), db.Close())
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte(strings.Repeat("noise", 800)), (page-1)*4096)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestDamagedState: a service that starts on a damaged state says so soon, and a call that
// meets the damage fails as internal, not as something that passes.
func TestDamagedState(t *testing.T) {
	bad := damagedState(t)
	f := &fixture{TB: t, client: &http.Client{}}
	f.client.Transport = f.transport()
	f.prepare(func(o *Options) { o.State = bad })
	stop := f.run()
	var a answer
	for range 100 {
		if a = f.do(http.MethodGet, f.internal+"/readyz", ""); a.status != http.StatusOK {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if a.status != http.StatusServiceUnavailable || !strings.Contains(string(a.raw), "leadetl admin restore") {
		t.Errorf("readiness: %d %s", a.status, a.raw)
	}
	if a := f.do(http.MethodGet, f.internal+"/metrics", ""); !strings.Contains(string(a.raw), "\nleadetl_state_damaged 1\n") {
		t.Error("the metrics do not say that the state is damaged")
	}
	of, err := bad.CreateOrganization(t.Context(), "Acme", 5, nil, time.Now())
	f.must(err)
	_, err = bad.Settle(t.Context(), state.Charge{Organization: of.ID, Credits: 1, At: time.Now(), Callback: &state.Callback{WebhookID: "msg_1", Organization: of.ID}})
	if p := wire.AsProblem(err); !errors.Is(err, state.ErrDamaged) || p.Kind != wire.InternalError {
		t.Errorf("a change to a damaged table: %v, answered with %v", err, p)
	}
	f.must(stop())
}

// TestCallMeetsDamage: once a call has met damage, the service should get no more.
func TestCallMeetsDamage(t *testing.T) {
	f := &fixture{TB: t}
	f.prepare()
	w := httptest.NewRecorder()
	f.service.Public().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("readiness: %d", w.Code)
	}
	met := fmt.Errorf("answer: %w", state.ErrDamaged)
	if err := f.service.noteDamage(met); err != met {
		t.Errorf("%v", err)
	}
	w = httptest.NewRecorder()
	f.service.Public().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "admin restore") {
		t.Errorf("readiness: %d %s", w.Code, w.Body)
	}
}

// TestStopsWhileLocked: another process that holds the lock of the database does not hold
// up the end of the service.
func TestStopsWhileLocked(t *testing.T) {
	dir := t.TempDir()
	kept, err := sqlite.Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{TB: t, client: &http.Client{}}
	f.client.Transport = f.transport()
	f.prepare(func(o *Options) {
		o.State, o.Connections.DrainTimeout, o.Connections.DrainDelay = kept, time.Second, 0
	})
	stop := f.run()
	for f.do(http.MethodGet, f.internal+"/readyz", "").status != http.StatusOK {
	}
	other, err := groupcommit.Connect(filepath.Join(dir, sqlite.DatabaseName))
	f.must(err)
	_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	f.must(err)
	f.post(enrichment, askAda) // counted, and to be stored
	began := time.Now()
	f.must(stop())
	f.must(kept.Close())
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it ended after %v", took)
	}
	f.must(other.Close())
}
