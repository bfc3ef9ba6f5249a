// Package dashboard shows an organization its account in a browser, at /account,
// and operators all organizations, at /operator of the internal listener.
//
// The one thing to know before using it: a page is one answer without scripts
// and without further files, and every form carries a token of its session.
package dashboard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/resolution/service/account"
	"github.com/leadetl/leadetl/resolution/service/admission"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// State is what pages show and forms change.
type State interface {
	keyReader
	Balance(ctx context.Context, organization int64) (state.Balance, error)
	Usage(ctx context.Context, organization int64, from, to time.Time) ([]state.Usage, error)
	Jobs(ctx context.Context, organization int64, status state.Status, before uuid.UUID, limit int) ([]state.Job, error)
	Deliveries(ctx context.Context, organization int64, state, before string, limit int) ([]state.Delivery, error)
	Ledger(ctx context.Context, organization, after int64, limit int) ([]state.Entry, error)
	LatestEntries(ctx context.Context, organization int64, which state.Entries, limit int) (entries []state.Entry, older int64, err error)
	Spent(ctx context.Context, organization int64) ([]state.Usage, error)
	Searches(ctx context.Context, organization int64) ([]state.Searches, error)
}

// Account are the pages of an organization. All fields are required.
type Account struct {
	State State
	Now   func() time.Time
	Log   *slog.Logger

	Gate *admission.Gate // of signed-in callers too
	Desk *account.Desk

	pages    *limit.Buckets // that an organization loads
	sessions *sessions
}

// pageRate is how often an organization may load pages.
var pageRate = limit.Rate{Events: 120, Per: time.Minute, Burst: 60}

// New makes the dashboard of a.
func New(a Account) *Account {
	a.pages = limit.New(pageRate)
	a.sessions = &sessions{cookie: "__Host-leadetl-account", secure: true, now: a.Now}
	return &a
}

// visit is a request of a signed-in user.
type visit struct {
	w       http.ResponseWriter
	r       *http.Request
	session *session
	caller  account.Caller
	owner   *account.Account // whose keys and callback secrets are shown: for a test key, the organization that owns it; otherwise the same
}

// action handles a request to one path.
type action struct {
	method string
	do     func(v *visit) error
}

func (a *Account) actions() map[string]action {
	return map[string]action{
		"":                     {http.MethodGet, a.overview},
		"/settings/api-access": {http.MethodGet, a.apiAccess},
		"/settings/keys":       {http.MethodPost, a.makeKey},
		"/settings/revoke":     {http.MethodPost, a.revokeKey},
		"/activity":            {http.MethodGet, a.activity},
		"/activity/cancel":     {http.MethodPost, a.cancel},
		"/deliveries":          {http.MethodGet, a.deliveries},
		"/deliveries/replay":   {http.MethodPost, a.replay},
		"/deliveries/secret":   {http.MethodPost, a.secret},
		"/ledger":              {http.MethodGet, a.ledger},
		"/ledger.csv":          {http.MethodGet, a.ledgerFile},
	}
}

// Serve answers a request to a path below /account. If it returns an error, the
// caller still has to answer it.
func (a *Account) Serve(w http.ResponseWriter, r *http.Request, path string) error {
	secure(w.Header())
	err := checkForm(w, r)
	switch {
	case err != nil:
	case path == "/sign-in":
		err = a.signIn(w, r)
	default:
		err = a.serveVisit(w, r, path)
	}
	return failed(w, r, a.Log, "/account", err)
}

func (a *Account) serveVisit(w http.ResponseWriter, r *http.Request, path string) error {
	x := a.sessions.of(r)
	if x == nil {
		return redirect(w, r, "/account/sign-in"+a.sessions.whyNone(r))
	}
	caller, err := a.Gate.SignedIn(r, x.caller)
	if p, is := errors.AsType[*wire.Problem](err); is && p.Kind.Status < 500 {
		a.sessions.end(w, r)
		return redirect(w, r, "/account/sign-in?ended")
	}
	if err != nil {
		return err
	}
	owner := a.Desk.Roster.Owner(caller.Account)
	err = a.admit(owner)
	if err != nil {
		return err
	}
	if r.Method == http.MethodPost && !x.isForm(r) {
		return errNotAForm
	}
	if path == "/sign-out" && r.Method == http.MethodPost {
		a.sessions.end(w, r)
		return redirect(w, r, "/account/sign-in")
	}
	return serve(a.actions(), path, &visit{w, r, x, caller, owner})
}

// admit refuses pages beyond the rate of an organization.
func (a *Account) admit(owner *account.Account) error {
	d := a.pages.Take(owner.Public, a.Now())
	if d.Allowed {
		return nil
	}
	p := wire.Refuse(wire.RateLimited, "The organization loads pages faster than %s. Wait a moment.", d.Rate)
	p.RetryAfter = d.RetryAfter
	return p
}

// serve calls the action of a path.
func serve(actions map[string]action, path string, v *visit) error {
	act, known := actions[path]
	switch {
	case !known:
		return wire.ErrNothingHere
	case v.r.Method != act.method && (v.r.Method != http.MethodHead || act.method != http.MethodGet):
		return wire.NotAllowed(act.method)
	}
	return act.do(v)
}

var errNotAForm = wire.Refuse(wire.Forbidden, "The form is not one of this session, or too old. Go back, load the page again, and send it once more.")

// maxForm bounds a form, in bytes.
const maxForm = 64 << 10

// checkForm refuses forms of other sites. Source: developer.mozilla.org, Sec-Fetch-Site.
func checkForm(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		return nil
	}
	if http.NewCrossOriginProtection().Check(r) != nil {
		return wire.Refuse(wire.Forbidden, "The form was sent from another site.")
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return wire.Unreadable(r, err)
	}
	return nil
}

// signIn shows the form for a key, and starts a session if the key is valid.
func (a *Account) signIn(w http.ResponseWriter, r *http.Request) error {
	p := &page{Title: "Sign in", Base: "/account", Current: "/sign-in"}
	if r.URL.RawQuery == "ended" {
		p.Notice = "Your session has ended. Sign in again."
	}
	if r.Method != http.MethodPost {
		if a.sessions.of(r) != nil {
			return redirect(w, r, "/account")
		}
		return write(w, "sign-in", http.StatusOK, p)
	}
	caller, err := a.Gate.SignIn(r, strings.TrimSpace(r.PostFormValue("key")))
	if problem, is := errors.AsType[*wire.Problem](err); is && problem.Kind.Status < 500 {
		if p.Problem, p.Notice = problem.Detail, ""; problem.Kind == wire.InvalidCredentials {
			p.Problem = "Unknown API key. Was it copied whole, and is it not revoked?"
		}
		return write(w, "sign-in", problem.Kind.Status, p)
	}
	if err != nil {
		return err
	}
	if !a.sessions.start(w, caller) {
		return wire.Refuse(wire.Unavailable, "Too many people are signed in. Try again in a few minutes.")
	}
	a.Log.Info("signed in to the dashboard", "organization", a.Desk.Roster.Owner(caller.Account).Public, "key", caller.Key.Public)
	return redirect(w, r, "/account")
}

// redirectOnce answers a form with a redirect to a page that shows content, once:
// loading that page again neither sends the form again nor shows the content.
func (v *visit) redirectOnce(to string, content any) error {
	separator := "?"
	if strings.Contains(to, "?") {
		separator = "&"
	}
	return redirect(v.w, v.r, to+separator+"shown="+v.session.keep(content))
}

// noted returns what a form left for this page, once.
func (v *visit) noted() any {
	if v.r.Method != http.MethodGet {
		return nil
	}
	return v.session.take(v.r.URL.Query().Get("shown"))
}

func redirect(w http.ResponseWriter, r *http.Request, to string) error {
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// page has the fields that all pages use.
type page struct {
	Title   string
	Base    string // /account or /operator
	Current string // path below Base
	Name    string // of the organization; empty before the sign-in
	Test    bool
	CSRF    string
	Notice  string // message of success
	Problem string // message of failure
	Content any
}

// show answers with a page of an account.
func (v *visit) show(name, title, current string, content any) error {
	return v.showWith(name, http.StatusOK, &page{Title: title, Current: current, Content: content})
}

func (v *visit) showWith(name string, status int, p *page) error {
	p.Base, p.Name, p.Test, p.CSRF = "/account", v.owner.Name(), v.caller.Account.IsTest(), v.session.csrf
	return write(v.w, name, status, p)
}

//go:embed page
var files embed.FS

var style = func() string {
	text, err := files.ReadFile("page/page.css")
	if err != nil {
		panic(err) // the templates are embedded, so every test would fail
	}
	return string(text)
}()

// templates are the pages by name. They are parsed when the first page is shown,
// because parsing takes a twentieth of the time of a short command.
var templates = sync.OnceValue(func() map[string]*template.Template {
	layout := template.Must(template.New("layout.html").Funcs(template.FuncMap{
		"style":  func() template.CSS { return template.CSS(style) },
		"number": figures.Grouped,
		"moment": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
		"iso":    func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"words":  func(s string) string { return strings.ReplaceAll(s, "_", " ") },
		"id":     request.FormatID,
		"is":     func(t time.Time) bool { return !t.IsZero() },
		"join":   strings.Join,
		"long":   func(n int) int64 { return int64(n) },
		"keys": func(page any, csrf, at, revoke, id string) any {
			return map[string]any{"Page": page, "CSRF": csrf, "At": at, "Revoke": revoke, "ID": id}
		},
		"signed": func(n int64) string {
			if n == 0 {
				return ""
			}
			return fmt.Sprintf("%+d", n)
		},
		"table": func(title, head string, rows []use) any {
			return map[string]any{"Title": title, "Head": head, "Rows": rows, "Long": len(rows) > 12}
		},
		"choice": func(link, chosen, which, name string) any {
			return map[string]any{"Link": link + which, "Chosen": chosen == which, "Name": name}
		},
	}).ParseFS(files, "page/layout.html"))
	all := map[string]*template.Template{}
	for _, name := range []string{
		"sign-in", "failure", "overview", "api-access", "activity", "deliveries", "ledger",
		"operator-sign-in", "operator", "operator-organization", "operator-queues", "operator-limits",
	} {
		all[name] = template.Must(template.Must(layout.Clone()).ParseFS(files, "page/"+name+".html"))
	}
	return all
})

// write answers with a page.
func write(w http.ResponseWriter, name string, status int, p *page) error {
	var b bytes.Buffer
	if err := templates()[name].ExecuteTemplate(&b, "layout.html", p); err != nil {
		return err
	}
	wire.WriteBody(w, status, wire.HTMLType, b.Bytes())
	return nil
}

// secure sets the headers of every page. A page may only send forms and use its
// own style, which is allowed by its hash.
func secure(h http.Header) {
	sum := sha256.Sum256([]byte(style))
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+
		"'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// failed answers with a page that shows the error.
func failed(w http.ResponseWriter, r *http.Request, log *slog.Logger, base string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return err
	}
	p := wire.AsProblem(err)
	if p.Kind.Status >= 500 {
		log.Error("page failed", "error", err)
	}
	if p.Allow != "" {
		w.Header().Set("Allow", p.Allow)
	}
	wire.SetRetryAfter(w.Header(), p.RetryAfter)
	return write(w, "failure", p.Kind.Status, &page{Title: p.Kind.Title, Base: base, Problem: p.Detail})
}
