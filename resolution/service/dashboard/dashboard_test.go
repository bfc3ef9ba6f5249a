package dashboard_test

import (
	"fmt"
	"html"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/internal/testkit/browsertest"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/resolution/service"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// served is a service with the dashboard, and an organization that was busy.
type served struct {
	*testing.T
	store            *sqlite.Store
	pepper           credential.Pepper
	organization     state.Organization
	key, test        string
	secret           callback.Secret
	public, internal *httptest.Server
	ahead            atomic.Int64 // of the service's clock
}

func serve(t *testing.T, change ...func(*service.Options)) *served {
	t.Helper()
	s := &served{T: t}
	var err error
	s.pepper, err = credential.LoadPepper(t.Context(), filepath.Join(t.TempDir(), "pepper"), true)
	s.must(err)
	s.store, err = sqlite.Serve(t.TempDir())
	s.must(err)
	t.Cleanup(func() { s.must(s.store.Close()) })
	live, err := embedded.Follow("", embedded.Options{}, nil)
	s.must(err)
	t.Cleanup(func() { s.must(live.Close()) })
	o := service.DefaultOptions()
	o.State, o.Pepper, o.Dashboard = s.store, s.pepper, true
	o.Resolver, o.Searcher = live, live
	o.Callbacks = &callback.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	o.SystemKey = secret.New("system")
	o.Now = func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }
	for _, c := range change {
		c(&o)
	}
	running, err := service.New(o)
	s.must(err)
	s.public, s.internal = httptest.NewUnstartedServer(running.Public()), httptest.NewServer(running.Internal())
	s.public.Config.ErrorLog = log.New(io.Discard, "", 0) // a browser complains of the certificate, and continues
	s.public.StartTLS()
	t.Cleanup(s.public.Close)
	t.Cleanup(s.internal.Close)
	s.secret = callback.NewSecret()
	s.organization, err = s.store.CreateOrganization(t.Context(), "Example Rockets & Söhne", 25_000, s.pepper.Seal([]byte(s.secret.Reveal())), time.Now().AddDate(0, 0, -40))
	s.must(err)
	s.key, s.test = s.newKey(state.Key{Label: "nightly import"}), s.newKey(state.Key{Label: "try out", Test: true})
	return s
}

func (s *served) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *served) newKey(k state.Key) string {
	s.Helper()
	key := credential.NewKey(k.Test).Reveal()
	k.MakesKeys = k.MakesKeys || !k.Narrowed()
	k.Organization, k.Hash, k.Hint, k.Created = s.organization.ID, s.pepper.Hash(key), credential.Hint(key), time.Now()
	_, err := s.store.AddKey(s.Context(), k)
	s.must(err)
	return key
}

// fill gives the organization a month of calls, searches and callbacks.
func (s *served) fill() {
	s.Helper()
	ctx, now := s.Context(), time.Now()
	keys, err := s.store.Keys(ctx, state.KeyChoice{Organization: s.organization.ID})
	s.must(err)
	operations := []resolution.Operation{resolution.Enrichment, resolution.EmailToHEM, resolution.NetworkToPhone, resolution.IPToCompany}
	for day := range 30 {
		for i, o := range operations[:1+day%4] {
			at := now.AddDate(0, 0, -day)
			_, err := s.store.Settle(ctx, state.Charge{Organization: s.organization.ID, Key: keys[len(keys)-1].ID, Credits: int64(20 + 17*day%90 + 31*i), Resolution: uuid.Must(uuid.NewV7()), Operation: o, At: at})
			s.must(err)
			s.must(s.store.CountRequests(ctx, []state.Requests{{Organization: s.organization.ID, Key: keys[len(keys)-1].ID, Day: at.Unix() / 86400, Operation: string(o), Total: 300, Limited: int64(day)}}))
		}
	}
	_, err = s.store.ChangeCredits(ctx, state.CreditChange{Organization: s.organization.ID, Credits: -5, Note: "=HYPERLINK(\"http://evil.example\")", At: now})
	s.must(err)
	for i := range 4 {
		id := uuid.Must(uuid.NewV7())
		_, err := s.store.CreateJob(ctx, state.Job{ID: id, Organization: s.organization.ID, Key: keys[len(keys)-1].ID, Operation: resolution.KeywordToLead, Requested: now, Work: []byte("{}"),
			Payload: []byte("{}"), CallbackURL: "https://127.0.0.1:9/hook", Receiver: "127.0.0.1:9", Reserved: 100}, 0, nil)
		s.must(err)
		if i == 3 {
			break // stays queued
		}
		job, err := s.store.LeaseJob(ctx, now, now.Add(time.Hour))
		s.must(err)
		f := state.Finish{ID: id, Lease: job.Lease, Status: state.Completed, Result: []byte("{}"), Spent: 12, At: now,
			Callback: &state.Callback{WebhookID: fmt.Sprintf("msg_%032x", i), Receiver: "hooks.customer.example:443", URL: "https://hooks.customer.example/leads?token=secret", Body: []byte("{}"), Due: now}}
		if i == 2 {
			f.Status, f.Error, f.Spent = state.Failed, "unavailable", 0
		}
		s.must(s.store.FinishJob(ctx, f))
	}
	posted, err := s.store.Deliveries(ctx, s.organization.ID, "", "", 10)
	s.must(err)
	s.must(s.store.SettleDelivery(ctx, state.Attempt{ID: posted[0].ID, State: state.Dead, Status: 500, Failure: "status", At: now}))
	s.must(s.store.SettleDelivery(ctx, state.Attempt{ID: posted[1].ID, State: state.Delivered, Status: 204, At: now}))
}

// visitor is a browser without a screen.
func (s *served) visitor() *http.Client {
	jar, err := cookiejar.New(nil)
	s.must(err)
	c := s.public.Client()
	return &http.Client{Transport: c.Transport, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (s *served) ask(c *http.Client, method, path string, form url.Values, headers ...string) answer {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.public.URL+path, strings.NewReader(form.Encode()))
	s.must(err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", s.public.URL)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.Do(r)
	s.must(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	s.must(err)
	return answer{response.StatusCode, response.Header, string(body)}
}

// follow sends a form, and returns the page that it leads to.
func (s *served) follow(c *http.Client, path string, form url.Values) answer {
	s.Helper()
	a := s.ask(c, "POST", path, form)
	if a.status != 303 {
		s.Fatalf("%s: %d, want a redirect", path, a.status)
	}
	return s.ask(c, "GET", a.header.Get("Location"), nil)
}

// signIn returns a visitor with a session, and the token of its forms.
func (s *served) signIn(key string) (*http.Client, string) {
	s.Helper()
	c := s.visitor()
	if a := s.ask(c, "POST", "/account/sign-in", url.Values{"key": {key}}); a.status != 303 || a.header.Get("Location") != "/account" {
		s.Fatalf("sign in: %d %s", a.status, a.body)
	}
	_, after, _ := strings.Cut(s.ask(c, "GET", "/account", nil).body, `name="csrf" value="`)
	token, _, found := strings.Cut(after, `"`)
	if !found {
		s.Fatal("no form on the page")
	}
	return c, token
}

const call = "/lead/resolution/email_to_hem"

// callWith asks an operation with a key, and returns the status.
func (s *served) callWith(key string) int {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), "POST", s.public.URL+call, strings.NewReader(`{"email":"ada@bakery.example","callback_url":"https://127.0.0.1:9/hook"}`))
	s.must(err)
	r.Header.Set("Authorization", "Bearer "+key)
	response, err := s.public.Client().Do(r)
	s.must(err)
	defer response.Body.Close()
	return response.StatusCode
}

func TestSignIn(t *testing.T) {
	s := serve(t, func(o *service.Options) { o.Limits.FailedAuth.Events, o.Limits.FailedAuth.Burst = 5, 5 })
	a := s.ask(s.visitor(), "POST", "/account/sign-in", url.Values{"key": {" " + s.key + " "}})
	cookie := a.header.Get("Set-Cookie")
	for _, want := range []string{"__Host-", "HttpOnly", "Secure", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("cookie %q lacks %s", cookie, want)
		}
	}
	if strings.Contains(cookie, "Expires") || strings.Contains(cookie, "Max-Age") {
		t.Errorf("the cookie outlives the browser: %q", cookie)
	}
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'", "Referrer-Policy": "same-origin", "X-Frame-Options": "DENY", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if got := a.header.Get(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q", name, got)
		}
	}
	limited := s.newKey(state.Key{Label: "one operation", Operations: []string{"enrichment"}})
	far := s.newKey(state.Key{Label: "far away", Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	expired := s.newKey(state.Key{Label: "expired", Expires: time.Now().Add(-time.Hour)})
	for _, c := range []struct {
		name, key string
		status    int
		says      string
	}{
		{"for one operation", limited, 403, "may not call this operation"},
		{"for another network", far, 403, "from this address"},
		{"expired", expired, 401, "has expired"},
		{"unknown", credential.NewKey(false).Reveal(), 401, "Unknown API key"},
		{"empty", "", 401, "Unknown API key"},
		{"a script", `"><script>alert(1)</script>`, 401, "Unknown API key"},
		{"unknown again", "x", 401, "Unknown API key"},
		{"one too many", "x", 429, "Try again later"},
	} {
		a := s.ask(s.visitor(), "POST", "/account/sign-in", url.Values{"key": {c.key}})
		if a.status != c.status || !strings.Contains(a.body, c.says) || a.header.Get("Set-Cookie") != "" || strings.Contains(a.body, "<script") {
			t.Errorf("%s: %d, want %d with %q", c.name, a.status, c.status, c.says)
		}
	}
	if a := s.ask(s.visitor(), "POST", "/account/sign-in", url.Values{"key": {s.key}}); a.status != 303 {
		t.Errorf("a right key where wrong ones came from: %d", a.status)
	}
	if a := s.ask(s.visitor(), "GET", "/account/nothing", nil); a.status != 303 {
		t.Errorf("an unknown page without a session: %d", a.status)
	}
	response, err := http.Get(s.internal.URL + "/metrics")
	s.must(err)
	defer response.Body.Close()
	numbers, err := io.ReadAll(response.Body)
	s.must(err)
	if want := `leadetl_requests_total{operation="dashboard",status="429"} 1`; !strings.Contains(string(numbers), want) {
		t.Errorf("no %s in the metrics", want)
	}
	off := serve(t, func(o *service.Options) { o.Dashboard = false })
	for _, path := range []string{"/account", "/account/sign-in", "/account/ledger.csv"} {
		if a := off.ask(off.visitor(), "GET", path, nil); a.status != 404 {
			t.Errorf("%s without --dashboard: %d", path, a.status)
		}
	}
}

// Forms count only from a page of the same session, and change nothing else.
func TestForms(t *testing.T) {
	s := serve(t)
	s.fill()
	c, token := s.signIn(s.key)
	other, otherToken := s.signIn(s.key)
	name := url.Values{"name": {"from a form"}, "csrf": {token}}
	for _, x := range []struct {
		name    string
		client  *http.Client
		form    url.Values
		headers []string
		status  int
	}{
		{"without a token", c, url.Values{"name": {"x"}}, nil, 403},
		{"with a wrong token", c, url.Values{"name": {"x"}, "csrf": {token[1:] + "x"}}, nil, 403},
		{"with the token of another session", c, url.Values{"name": {"x"}, "csrf": {otherToken}}, nil, 403},
		{"from another origin", c, name, []string{"Origin", "https://evil.example"}, 403},
		{"from another site", c, name, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"without a session", s.visitor(), name, nil, 303},
		{"too long", c, url.Values{"name": {strings.Repeat("x", 70_000)}, "csrf": {token}}, nil, 413},
		{"right", c, name, nil, 303},
		{"right, of the other session", other, url.Values{"name": {"second"}, "csrf": {otherToken}}, nil, 303},
		{"without a name", c, url.Values{"csrf": {token}}, nil, 400},
		{"of no operation", c, url.Values{"name": {"x"}, "csrf": {token}, "operation": {"x"}}, nil, 400},
		{"of no network", c, url.Values{"name": {"x"}, "csrf": {token}, "networks": {"here"}}, nil, 400},
		{"that may spend nothing", c, url.Values{"name": {"x"}, "csrf": {token}, "limit": {"0"}}, nil, 400},
		{"that expires at once", c, url.Values{"name": {"x"}, "csrf": {token}, "days": {"0"}}, nil, 400},
		{"as GET", c, nil, nil, 405},
	} {
		method := "POST"
		if x.form == nil {
			method = "GET"
		}
		if a := s.ask(x.client, method, "/account/settings/keys", x.form, x.headers...); a.status != x.status {
			t.Errorf("%s: %d, want %d", x.name, a.status, x.status)
		}
	}
	keys, err := s.store.Keys(t.Context(), state.KeyChoice{Organization: s.organization.ID})
	s.must(err)
	if len(keys) != 4 {
		t.Errorf("%d keys, want the two from before and two new ones", len(keys))
	}
	for _, path := range []string{"/account/settings/revoke", "/account/activity/cancel", "/account/deliveries/replay", "/account/deliveries/secret", "/account/sign-out"} {
		if a := s.ask(c, "POST", path, url.Values{"csrf": {"x"}}); a.status != 403 || strings.Contains(a.body, "whsec_") {
			t.Errorf("%s with a wrong token: %d", path, a.status)
		}
	}
	if a := s.follow(c, "/account/deliveries/secret", url.Values{"csrf": {token}}); !strings.Contains(html.UnescapeString(a.body), s.secret.Reveal()) {
		t.Errorf("the secret is not shown: %d", a.status)
	}
	if a := s.ask(c, "GET", "/account/deliveries", nil); strings.Contains(a.body, "whsec_") || strings.Contains(a.body, "token=secret") {
		t.Error("a secret is shown unasked")
	}
	job, err := s.store.Jobs(t.Context(), s.organization.ID, state.Queued, uuid.Nil, 1)
	s.must(err)
	id := "res_" + strings.ReplaceAll(job[0].ID.String(), "-", "")
	for _, want := range []int{303, 409} {
		if a := s.ask(c, "POST", "/account/activity/cancel", url.Values{"csrf": {token}, "resolution": {id}}); a.status != want {
			t.Errorf("cancel: %d, want %d", a.status, want)
		}
	}
	for webhook, want := range map[string]int{"msg_00000000000000000000000000000002": 303, "msg_x": 404} {
		if a := s.ask(c, "POST", "/account/deliveries/replay", url.Values{"csrf": {token}, "webhook": {webhook}}); a.status != want {
			t.Errorf("replay of %s: %d, want %d", webhook, a.status, want)
		}
	}
	if a := s.ask(c, "POST", "/account/sign-out", url.Values{"csrf": {token}}); a.status != 303 {
		t.Errorf("sign out: %d", a.status)
	}
	if a := s.ask(c, "GET", "/account", nil); a.status != 303 {
		t.Errorf("after signing out: %d", a.status)
	}
}

func TestSessionsEnd(t *testing.T) {
	s := serve(t)
	for _, x := range []struct {
		name  string
		waits []time.Duration
		ended bool
	}{
		{"in use", []time.Duration{14 * time.Minute, 14 * time.Minute, 14 * time.Minute}, false},
		{"not used for long", []time.Duration{15 * time.Minute}, true},
		{"used for long", []time.Duration{14 * time.Minute, 14 * time.Minute, 14 * time.Minute, 14 * time.Minute, 14 * time.Minute, 14 * time.Minute, 14 * time.Minute, 14 * time.Minute, 14 * time.Minute}, true},
	} {
		c, token := s.signIn(s.key)
		var a answer
		for _, wait := range x.waits {
			s.ahead.Add(int64(wait))
			a = s.ask(c, "GET", "/account", nil)
		}
		if got := a.status == 303 && a.header.Get("Location") == "/account/sign-in?ended"; got != x.ended {
			t.Errorf("%s: ended is %t (%d)", x.name, got, a.status)
		}
		if x.ended {
			if a := s.ask(c, "POST", "/account/settings/keys", url.Values{"csrf": {token}, "name": {"late"}}); a.status != 303 {
				t.Errorf("%s: a form after its end: %d", x.name, a.status)
			}
		}
	}
	if a := s.ask(s.visitor(), "GET", "/account", nil); a.header.Get("Location") != "/account/sign-in" {
		t.Errorf("a visitor who never signed in is sent to %s", a.header.Get("Location"))
	}
	c, _ := s.signIn(s.key)
	s.must(s.store.SuspendOrganization(t.Context(), s.organization.ID, time.Now()))
	s.callWith("x") // the service reads the credentials again
	if a := s.ask(c, "GET", "/account", nil); a.status != 303 {
		t.Errorf("of a suspended organization: %d", a.status)
	}
	if a := s.ask(s.visitor(), "POST", "/account/sign-in", url.Values{"key": {s.key}}); a.status != 403 || !strings.Contains(a.body, "suspended") {
		t.Errorf("sign-in of a suspended organization: %d", a.status)
	}
}

// A test key shows test data, and neither sees nor makes live keys.
func TestTestKeySeesTestsAlone(t *testing.T) {
	s := serve(t)
	s.fill()
	c, token := s.signIn(s.test)
	if a := s.ask(c, "GET", "/account", nil); !strings.Contains(a.body, "1,000,000") || !strings.Contains(a.body, "test data") {
		t.Error("the overview is not that of the test ledger")
	}
	a := s.follow(c, "/account/settings/keys", url.Values{"csrf": {token}, "name": {"more"}, "kind": {"live"}})
	if !strings.Contains(a.body, "lrk_test_") || strings.Contains(a.body, "lrk_live_") || strings.Contains(a.body, "nightly import") {
		t.Errorf("%d: a test key made a live one, or sees one", a.status)
	}
	keys, err := s.store.Keys(t.Context(), state.KeyChoice{Organization: s.organization.ID})
	s.must(err)
	if a := s.ask(c, "POST", "/account/settings/revoke", url.Values{"csrf": {token}, "key": {keys[len(keys)-1].Public}}); a.status != 404 {
		t.Errorf("a test key revoked a live one: %d", a.status)
	}
}

// A narrow key makes no wider one on the page, and revokes none.
func TestNarrowKeyOnThePage(t *testing.T) {
	s := serve(t)
	limited := s.newKey(state.Key{Label: "limited", Limit: 3, Expires: time.Now().Add(24 * time.Hour)})
	keys, err := s.store.Keys(t.Context(), state.KeyChoice{Organization: s.organization.ID})
	s.must(err)
	c, token := s.signIn(limited)
	if a := s.ask(c, "GET", "/account/settings/api-access", nil); !strings.Contains(a.body, "may not make keys") || strings.Contains(a.body, "Make key</button>") || strings.Count(a.body, "Revoke for good") != 1 {
		t.Errorf("%d: a key without the right sees the form, or may revoke more than itself", a.status)
	}
	for path, form := range map[string]url.Values{
		"/account/settings/keys":   {"name": {"wide"}},
		"/account/settings/revoke": {"key": {keys[2].Public}},
	} {
		form.Set("csrf", token)
		if a := s.ask(c, "POST", path, form); a.status != 403 {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	k := state.Key{Label: "may make keys", Limit: 3, MakesKeys: true, Operations: []string{"account", "email_to_hem"}}
	c, token = s.signIn(s.newKey(k))
	for _, x := range []struct {
		form   url.Values
		status int
	}{
		{url.Values{"limit": {"4"}}, 400},
		{url.Values{"operation": {"enrichment"}}, 400},
		{url.Values{"limit": {"2"}, "operation": {"email_to_hem"}}, 303},
		{url.Values{}, 303},
	} {
		x.form.Set("csrf", token)
		x.form.Set("name", "child")
		if a := s.ask(c, "POST", "/account/settings/keys", x.form); a.status != x.status {
			t.Errorf("%v: %d, want %d", x.form, a.status, x.status)
		}
	}
	newest, err := s.store.Keys(t.Context(), state.KeyChoice{Organization: s.organization.ID, Limit: 3})
	s.must(err)
	if newest[0].Limit != 3 || len(newest[0].Operations) != 2 || newest[0].MakesKeys || newest[0].MakerPublic != newest[2].Public {
		t.Errorf("a key with only a name is %+v", newest[0])
	}
	c, token = s.signIn(s.key)
	if a := s.ask(c, "GET", "/account/settings/api-access", nil); !strings.Contains(a.body, "the 2 keys it made") {
		t.Error("the page does not name the keys that a key made")
	}
	if a := s.ask(c, "POST", "/account/settings/revoke", url.Values{"csrf": {token}, "key": {newest[2].Public}, "made": {"yes"}}); a.status != 303 {
		t.Errorf("revoke with all that it made: %d", a.status)
	}
	for _, k := range newest {
		if now, err := s.store.FindKey(t.Context(), 0, k.Public); err != nil || now.Revoked.IsZero() {
			t.Errorf("%s is not revoked: %v", k.Label, err)
		}
	}
}

// TestManyKeys: the page of keys has few of many, and finds each.
func TestManyKeys(t *testing.T) {
	s := serve(t)
	for i := range 120 {
		s.newKey(state.Key{Label: fmt.Sprintf("worker %03d", i)})
	}
	c, _ := s.signIn(s.key)
	const path = "/account/settings/api-access"
	a := s.ask(c, "GET", path, nil)
	_, after, _ := strings.Cut(a.body, "?before=")
	before, _, _ := strings.Cut(after, `"`)
	keys, err := s.store.Keys(t.Context(), state.KeyChoice{Organization: s.organization.ID})
	s.must(err)
	for _, x := range []struct {
		name, query  string
		rows, status int
		shows, hides string
	}{
		{"first", "", 50, 200, "worker 119", "worker 069"},
		{"second", "?before=" + before, 50, 200, "worker 069", "worker 119"},
		{"by name", "?search=WORKER+01", 10, 200, "worker 017", "worker 020"},
		{"by name, the second page", "?search=worker&before=" + before, 50, 200, "search=worker", "worker 119"},
		{"by id", "?search=" + keys[7].Public, 1, 200, keys[7].Public, "Older keys"},
		{"by the end of the key", "?search=…" + keys[9].Hint, 1, 200, keys[9].Public, "Older keys"},
		{"unknown", "?search=%25", 0, 200, "No key is like that.", "worker"},
		{"nonsense", "?before=x", 0, 404, "", "worker"},
	} {
		a := s.ask(c, "GET", path+x.query, nil)
		if got := strings.Count(a.body, `scope="row"`); a.status != x.status || got != x.rows || !strings.Contains(a.body, x.shows) || strings.Contains(a.body, x.hides) {
			t.Errorf("%s: %d with %d keys, want %d", x.name, a.status, got, x.rows)
		}
	}
	if a := s.operate(s.operator(), "GET", "/operator/one?search=worker+01&id="+s.organization.Public, nil, "X-Sys-Key", "system"); strings.Count(a.body, "key_")/3 == 0 || strings.Contains(a.body, "worker 020") {
		t.Errorf("operators do not find keys: %d", a.status)
	}
}

func TestLedgerFile(t *testing.T) {
	s := serve(t)
	s.fill()
	c, _ := s.signIn(s.key)
	a := s.ask(c, "GET", "/account/ledger.csv", nil)
	lines := strings.Split(strings.TrimSpace(a.body), "\n")
	entries, err := s.store.Ledger(t.Context(), s.organization.ID, 0, 1000)
	s.must(err)
	if a.header.Get("Content-Type") != "text/csv; charset=utf-8" || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment;") || len(lines) != len(entries)+1 {
		t.Fatalf("%v, %d lines of %d entries", a.header, len(lines), len(entries))
	}
	for _, want := range []string{",grant,25000,25000,0,,,,,", ",enrichment,res_", ",nightly import,", `"'=HYPERLINK(`} {
		if !strings.Contains(a.body, want) {
			t.Errorf("no %q", want)
		}
	}
}

var screens = []browsertest.Screen{
	{Name: "light", Width: 1280, Height: 900, Scale: 1},
	{Name: "dark", Width: 1280, Height: 900, Scale: 1, Dark: true},
	{Name: "phone", Width: 390, Height: 844, Scale: 2},
	{Name: "phone-dark", Width: 390, Height: 844, Scale: 2, Dark: true},
}

// look shows pages on every screen and looks for faults. LEADETL_PICTURES=FOLDER
// keeps the pictures.
func (s *served) look(b *browsertest.Browser, origin string, pages map[string]string) {
	s.Helper()
	for name, path := range pages {
		for _, screen := range screens {
			b.Show(origin+path, screen)
			s.faults(b, name+"-"+screen.Name)
		}
	}
}

func (s *served) faults(b *browsertest.Browser, name string) {
	s.Helper()
	if folder := os.Getenv("LEADETL_PICTURES"); folder != "" {
		s.must(os.WriteFile(filepath.Join(folder, name+".png"), b.Picture(), 0o644))
	}
	var wrong []string
	b.Ask(browsertest.Faults, &wrong)
	for _, w := range wrong {
		s.Errorf("%s: %s", name, w)
	}
}

// quiet fails for console messages, and for requests to anywhere else.
func (s *served) quiet(b *browsertest.Browser, origin string) {
	s.Helper()
	if len(b.Complaints) > 0 {
		s.Errorf("the console says %q", b.Complaints)
	}
	for _, asked := range b.Asked {
		if !strings.HasPrefix(asked, origin+"/") {
			s.Errorf("the pages asked for %s", asked)
		}
	}
}

func (s *served) at(b *browsertest.Browser, path string) {
	s.Helper()
	var got string
	if b.Ask("location.pathname + location.search", &got); got != path {
		s.Fatalf("the browser is at %s, want %s", got, path)
	}
}

func TestAccountInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	b := browsertest.Start(t)
	b.Do("Security.setIgnoreCertificateErrors", map[string]any{"ignore": true}, nil)
	s := serve(t)
	s.fill()
	origin := s.public.URL
	b.Show(origin+"/account", screens[0])
	s.at(b, "/account/sign-in")
	s.look(b, origin, map[string]string{"sign-in": "/account/sign-in"})

	submit := func(key string) {
		b.Follow(fmt.Sprintf("document.querySelector('#key').value = %q; document.querySelector('main button').click()", key))
	}
	submit("lrk_live_wrong")
	var alert string
	if b.Ask("document.querySelector('[role=alert]').textContent", &alert); !strings.Contains(alert, "Unknown API key") {
		t.Errorf("a wrong key: %q", alert)
	}
	s.faults(b, "sign-in-wrong")
	b.Complaints = nil // the status 401
	submit(s.key)
	s.at(b, "/account")
	s.look(b, origin, map[string]string{
		"overview": "/account", "activity": "/account/activity", "deliveries": "/account/deliveries", "ledger": "/account/ledger", "api-access": "/account/settings/api-access",
	})

	fresh, _ := s.store.CreateOrganization(t.Context(), "New Customer", 0, s.pepper.Seal([]byte(s.secret.Reveal())), time.Now())
	s.organization, fresh = fresh, s.organization
	empty := s.newKey(state.Key{Label: "first"})
	s.organization = fresh
	b.Show(origin+"/account", screens[0])
	b.Follow(`document.querySelector('header form button').click()`)
	submit(empty)
	s.look(b, origin, map[string]string{"empty-overview": "/account", "empty-activity": "/account/activity", "empty-deliveries": "/account/deliveries", "empty-ledger": "/account/ledger"})
	b.Show(origin+"/account", screens[0])
	b.Follow(`document.querySelector('header form button').click()`)
	submit(s.key)

	// Make a key and use it; revoke it and see it refused.
	b.Show(origin+"/account/settings/api-access", screens[0])
	b.Follow(`document.querySelector('#name').value = 'made here'; document.querySelector('main .card button').click()`)
	var key string
	b.Ask("document.querySelector('#made').value", &key)
	s.faults(b, "api-access-made")
	var again bool
	b.Follow("location.reload()")
	if b.Ask("document.querySelector('#made') !== null", &again); again {
		t.Error("the key is shown again when the page is loaded again")
	}
	if status := s.callWith(key); status != 200 {
		t.Errorf("the new key: %d", status)
	}
	b.Show(origin+"/account/settings/api-access", screens[2])
	var shown bool
	if b.Ask(fmt.Sprintf("document.documentElement.outerHTML.includes(%q)", key), &shown); shown {
		t.Error("the key is shown twice")
	}
	var right float64
	if b.Ask(`document.querySelector('.act summary').getBoundingClientRect().right`, &right); right > 390 {
		t.Errorf("Revoke ends at %v of 390", right)
	}
	b.Follow(`document.querySelector('button[aria-label^="Revoke made here"]').click()`)
	s.at(b, "/account/settings/api-access")
	if status := s.callWith(key); status != 401 {
		t.Errorf("the revoked key: %d", status)
	}

	// By keyboard alone: the first stop leads to the content, and every page is a
	// link away.
	b.Show(origin+"/account", screens[0])
	var focused string
	for range 2 {
		for _, kind := range []string{"rawKeyDown", "keyUp"} {
			b.Do("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}, nil)
		}
		if focused == "" {
			b.Ask("document.activeElement.textContent + ' at ' + document.activeElement.getBoundingClientRect().left", &focused)
			if focused != "Skip to the content at 0" {
				t.Errorf("the first stop is %q", focused)
			}
		}
	}
	if b.Ask("document.activeElement.textContent + ' ' + getComputedStyle(document.activeElement).outlineStyle", &focused); focused != "Overview solid" {
		t.Errorf("the second stop is %q", focused)
	}
	s.ahead.Add(int64(16 * time.Minute))
	b.Show(origin+"/account/ledger", screens[0])
	s.at(b, "/account/sign-in?ended")
	s.quiet(b, origin)
}

// TestLists: what the filters of lists show, and the pages they are on.
func TestLists(t *testing.T) {
	s := serve(t)
	s.fill()
	c, _ := s.signIn(s.key)
	for _, x := range []struct {
		path   string
		status int
		shows  []string
		hides  []string
	}{
		{"/account", 200, []string{"days left at this pace", "Spent in " + time.Now().UTC().Format("January")}, nil},
		{"/account/ledger", 200, []string{"<td>grant</td>", "<td>capture</td>", "24,995"}, []string{"Older entries"}},
		{"/account/ledger?kind=grant", 200, []string{"<td>grant</td>"}, []string{"<td>capture</td>"}},
		{"/account/ledger?operation=ip_to_company", 200, []string{"<td>ip_to_company</td>", "Spent on ip_to_company</span><strong>1,046</strong>"}, []string{"<td>enrichment</td>"}},
		{"/account/ledger?kind=grant&operation=enrichment", 200, []string{"No entry is like that."}, nil},
		{"/account/ledger?before=2", 200, []string{"<td>grant</td>"}, []string{"<td>capture</td>"}},
		{"/account/ledger?before=x", 404, nil, nil},
		{"/account/activity", 200, []string{"2 completed, 24 credits", "1 failed", "1 queued, 100 credits reserved", "Latest single-record calls"}, nil},
		{"/account/activity?status=failed", 200, []string{`tag failed`}, []string{`tag completed`, "Latest single-record calls"}},
		{"/account/activity?status=cancelled", 200, []string{"No search is in this state."}, nil},
		{"/account/activity?status=x", 404, nil, nil},
		{"/account/deliveries?state=dead", 200, []string{`<span class="tag dead">failed</span>`}, []string{"tag delivered"}},
	} {
		a := s.ask(c, "GET", x.path, nil)
		if a.status != x.status {
			t.Errorf("%s: %d", x.path, a.status)
		}
		for _, want := range x.shows {
			if !strings.Contains(a.body, want) {
				t.Errorf("%s does not show %q", x.path, want)
			}
		}
		for _, no := range x.hides {
			if strings.Contains(a.body, no) {
				t.Errorf("%s shows %q", x.path, no)
			}
		}
	}
	for range 150 {
		_, err := s.store.ChangeCredits(t.Context(), state.CreditChange{Organization: s.organization.ID, Credits: 1, At: time.Now()})
		s.must(err)
	}
	a := s.ask(c, "GET", "/account/ledger?kind=grant", nil)
	_, after, _ := strings.Cut(a.body, `before=`)
	last, _, _ := strings.Cut(after, `"`)
	if a = s.ask(c, "GET", "/account/ledger?kind=grant&before="+last, nil); strings.Count(a.body, "<td>grant</td>") != 51 || strings.Contains(a.body, "Older entries") {
		t.Errorf("the second page of grants has %d", strings.Count(a.body, "<td>grant</td>"))
	}
}
