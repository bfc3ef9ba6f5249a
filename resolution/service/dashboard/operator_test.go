package dashboard_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/internal/testkit/browsertest"
	"github.com/leadetl/leadetl/resolution/service"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// operate asks the internal listener.
func (s *served) operate(c *http.Client, method, path string, form url.Values, headers ...string) answer {
	s.Helper()
	public := s.public
	s.public = s.internal
	defer func() { s.public = public }()
	return s.ask(c, method, path, form, headers...)
}

func (s *served) operator() *http.Client {
	jar, err := cookiejar.New(nil)
	s.must(err)
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func TestOperatorPagesNeedTheSystemKey(t *testing.T) {
	s := serve(t, func(o *service.Options) { o.Limits.FailedAuth.Events, o.Limits.FailedAuth.Burst = 4, 4 })
	closed := serve(t, func(o *service.Options) { o.SystemKey = secret.Text{} })
	off := serve(t, func(o *service.Options) { o.Dashboard = false })
	for _, c := range []struct {
		name    string
		to      *served
		path    string
		headers []string
		status  int
	}{
		{"with the key", s, "/operator", []string{"X-Sys-Key", "system"}, 200},
		{"with another", s, "/operator", []string{"X-Sys-Key", "systen"}, 401},
		{"with none", s, "/operator", nil, 303},
		{"an unknown page", s, "/operator/nothing", []string{"X-Sys-Key", "system"}, 404},
		{"an unknown organization", s, "/operator/one?id=org_0", []string{"X-Sys-Key", "system"}, 404},
		{"without a system key", closed, "/operator", nil, 404},
		{"without --dashboard", off, "/operator", []string{"X-Sys-Key", "system"}, 404},
	} {
		if a := c.to.operate(c.to.operator(), "GET", c.path, nil, c.headers...); a.status != c.status {
			t.Errorf("%s: %d, want %d", c.name, a.status, c.status)
		}
	}
	if a := s.ask(s.visitor(), "GET", "/operator", nil, "X-Sys-Key", "system"); a.status != 404 {
		t.Errorf("on the public listener: %d", a.status)
	}
	for _, want := range []int{401, 401, 401, 429} {
		if a := s.operate(s.operator(), "POST", "/operator/sign-in", url.Values{"key": {"x"}}); a.status != want || a.header.Get("Set-Cookie") != "" {
			t.Errorf("a wrong key: %d, want %d", a.status, want)
		}
	}
	c := s.operator()
	a := s.operate(c, "POST", "/operator/sign-in", url.Values{"key": {"system"}})
	if cookie := a.header.Get("Set-Cookie"); a.status != 303 || !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") {
		t.Errorf("sign in: %d, %s", a.status, cookie)
	}
	if a := s.operate(c, "POST", "/operator/one/credits", url.Values{"id": {s.organization.Public}, "credits": {"5"}}); a.status != 403 {
		t.Errorf("a form without a token: %d", a.status)
	}
	if a := s.operate(c, "POST", "/operator/one/credits", url.Values{"id": {s.organization.Public}, "credits": {"5"}}, "Origin", "https://evil.example"); a.status != 403 {
		t.Errorf("a form from elsewhere: %d", a.status)
	}
	s.ahead.Add(int64(16 * time.Minute))
	if a := s.operate(c, "GET", "/operator", nil); a.status != 303 {
		t.Errorf("after the session: %d", a.status)
	}
}

func TestOperatorChangesOrganizations(t *testing.T) {
	s := serve(t)
	s.fill()
	keys, err := s.store.Keys(t.Context(), state.KeyChoice{Organization: s.organization.ID})
	s.must(err)
	before, err := s.store.Balance(t.Context(), s.organization.ID)
	s.must(err)
	id := s.organization.Public
	for _, c := range []struct {
		path   string
		form   url.Values
		status int
	}{
		{"/operator/one/credits", url.Values{"id": {id}, "credits": {"500"}, "note": {"invoice 17"}}, 303},
		{"/operator/one/credits", url.Values{"id": {id}, "credits": {"-100"}}, 303},
		{"/operator/one/credits", url.Values{"id": {id}, "credits": {"-1000000"}}, 400},
		{"/operator/one/credits", url.Values{"id": {id}, "credits": {"0"}}, 400},
		{"/operator/one/rename", url.Values{"id": {id}, "name": {"New Name"}}, 303},
		{"/operator/one/rename", url.Values{"id": {id}, "name": {" "}}, 400},
		{"/operator/one/suspend", url.Values{"id": {id}}, 303},
		{"/operator/one/suspend", url.Values{"id": {id}, "resume": {"yes"}}, 303},
		{"/operator/one/suspend", url.Values{"id": {id}}, 303},
		{"/operator/one/revoke", url.Values{"id": {id}, "key": {keys[0].Public}}, 303},
		{"/operator/one/revoke", url.Values{"id": {id}, "key": {"key_0"}}, 404},
		{"/operator/new", url.Values{"name": {"Second"}, "credits": {"70"}}, 303},
		{"/operator/new", url.Values{"name": {"Second"}}, 400},
		{"/operator/new", url.Values{"name": {"Third"}, "credits": {"-1"}}, 400},
		{"/operator/one/key", url.Values{"id": {id}, "label": {"second"}}, 303},
		{"/operator/one/key", url.Values{"id": {"org_0"}, "label": {"second"}}, 404},
		{"/operator/replay", url.Values{"webhook": {"msg_00000000000000000000000000000002"}}, 303},
	} {
		if a := s.operate(s.operator(), "POST", c.path, c.form, "X-Sys-Key", "system"); a.status != c.status {
			t.Errorf("%s %v: %d, want %d", c.path, c.form, a.status, c.status)
		}
	}
	made := s.operate(s.operator(), "POST", "/operator/one/key", url.Values{"id": {id}, "label": {"third"}}, "X-Sys-Key", "system").header.Get("Location")
	for i, shown := range []bool{true, false} {
		if a := s.operate(s.operator(), "GET", made, nil, "X-Sys-Key", "system"); a.status != 200 || strings.Contains(a.body, "lrk_live_") != shown {
			t.Errorf("page %d after a key was made: %d, want the key: %t", i, a.status, shown)
		}
	}
	found, err := s.store.FindOrganization(t.Context(), "New Name")
	s.must(err)
	after, err := s.store.Balance(t.Context(), s.organization.ID)
	s.must(err)
	if found.Suspended.IsZero() || after.Available != before.Available+400 {
		t.Errorf("%+v, %+v", found, after)
	}
	if status := s.callWith(s.key); status != 403 {
		t.Errorf("a call of the suspended organization: %d", status)
	}
	if status := s.callWith(s.test); status != 401 {
		t.Errorf("a call with the revoked key: %d", status)
	}
}

func TestOperatorInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	b := browsertest.Start(t)
	s := serve(t)
	s.fill()
	origin := s.internal.URL
	b.Show(origin+"/operator", screens[0])
	s.look(b, origin, map[string]string{"operator-sign-in": "/operator/sign-in"})
	b.Follow(`document.querySelector('#key').value = 'system'; document.querySelector('main button').click()`)
	s.at(b, "/operator")
	s.look(b, origin, map[string]string{
		"operator": "/operator", "operator-organization": "/operator/one?id=" + s.organization.Public, "operator-queues": "/operator/queues", "operator-limits": "/operator/limits",
	})
	b.Show(origin+"/operator/one?id="+s.organization.Public, screens[0])
	b.Follow(`document.querySelector('#credits').value = '7000'; document.querySelector('#note').value = 'invoice 18'; document.querySelector('form[action$=credits] button').click()`)
	var text string
	if b.Ask("document.querySelector('main').textContent", &text); !strings.Contains(text, "invoice 18") || !strings.Contains(text, "+7000") {
		t.Errorf("the grant is not in the ledger: %s", text)
	}
	b.Show(origin+"/operator", screens[0])
	b.Follow(`document.querySelector('#name').value = 'Made Here'; document.querySelector('#credits').value = '70'; document.querySelector('form[action$=new] button').click()`)
	var key string
	b.Ask("document.querySelector('#made').value", &key)
	s.faults(b, "operator-made")
	if status := s.callWith(key); status != 200 {
		t.Errorf("the first key of a new organization: %d", status)
	}
	s.quiet(b, origin)
}

// Pages have a rate of their own for each organization, which all its sessions
// share.
func TestPagesAreLimited(t *testing.T) {
	s := serve(t)
	first, _ := s.signIn(s.key) // loads a page
	second, _ := s.signIn(s.key)
	limited := 0
	for i := range 80 {
		c := first
		if i%2 == 0 {
			c = second
		}
		if a := s.ask(c, "GET", "/account/ledger", nil); a.status == http.StatusTooManyRequests {
			limited++
		} else if a.status != http.StatusOK {
			t.Fatalf("%d", a.status)
		}
	}
	if limited == 0 || limited > 22 {
		t.Errorf("%d of 82 pages were refused, want those beyond 60 at once", limited)
	}
	if status := s.callWith(s.key); status != http.StatusOK {
		t.Errorf("a call of the organization meanwhile: %d", status)
	}
}
