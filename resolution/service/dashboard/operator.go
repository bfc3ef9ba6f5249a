package dashboard

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution/service/account"
	"github.com/leadetl/leadetl/resolution/service/admission"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// OperatorState is what operators see and change.
type OperatorState interface {
	keyReader
	LatestEntries(ctx context.Context, organization int64, which state.Entries, limit int) (entries []state.Entry, older int64, err error)
	UsageOfAll(ctx context.Context, from, to time.Time) ([]state.Usage, error)
	CreateOrganization(ctx context.Context, name string, credits int64, sealedSecret []byte, now time.Time) (state.Organization, error)
	Balance(ctx context.Context, organization int64) (state.Balance, error)
	Deliveries(ctx context.Context, organization int64, state, before string, limit int) ([]state.Delivery, error)
	Stats(ctx context.Context) (state.Stats, error)
}

// Operator has the pages of operators. All are required, except Key: without it there are no pages.
type Operator struct {
	State OperatorState
	Key   secret.Text // the x-sys-key
	Now   func() time.Time
	Log   *slog.Logger

	Gate *admission.Gate
	account.Office
	// Limits and Prices are the settings of the service.
	Limits, Prices []Setting

	sessions *sessions
	byKey    *session // of clients that send the system key with every request
}

type Setting struct{ Name, Value string }

// NewOperator makes the pages of o. The internal listener speaks plain HTTP, so
// the cookie is not limited to HTTPS.
func NewOperator(of Operator) *Operator {
	o := &of
	o.sessions = &sessions{cookie: "leadetl-operator", now: o.Now}
	o.byKey = &session{csrf: "-"}
	return o
}

func (o *Operator) actions() map[string]action {
	return map[string]action{
		"":             {http.MethodGet, o.organizations},
		"/new":         {http.MethodPost, o.create},
		"/one/key":     {http.MethodPost, o.makeKey},
		"/queues":      {http.MethodGet, o.queues},
		"/replay":      {http.MethodPost, o.replay},
		"/limits":      {http.MethodGet, o.limits},
		"/one":         {http.MethodGet, o.organization},
		"/one/credits": {http.MethodPost, o.credits},
		"/one/rename":  {http.MethodPost, o.rename},
		"/one/suspend": {http.MethodPost, o.suspend},
		"/one/revoke":  {http.MethodPost, o.revoke},
	}
}

// Serve answers a request to a path below /operator. If it returns an error, the
// caller still has to answer it.
func (o *Operator) Serve(w http.ResponseWriter, r *http.Request, path string) error {
	if o.Key.Empty() {
		return wire.ErrNothingHere
	}
	secure(w.Header())
	err := checkForm(w, r)
	switch {
	case err != nil:
	case path == "/sign-in":
		err = o.signIn(w, r)
	default:
		err = o.serveVisit(w, r, path)
	}
	return failed(w, r, o.Log, "/operator", err)
}

// serveVisit answers a signed-in user, or a client that sends the system key
// with every request. The latter needs no token in forms, because no other site
// can send the key.
func (o *Operator) serveVisit(w http.ResponseWriter, r *http.Request, path string) error {
	if given := r.Header.Get("X-Sys-Key"); given != "" {
		if !o.Key.Equal(secret.New(given)) {
			return o.Gate.CountSystemKey(wire.Refuse(wire.InvalidCredentials, "The header x-sys-key does not hold the system key."))
		}
		return serve(o.actions(), path, &visit{w, r, o.byKey, account.Caller{}, nil})
	}
	x := o.sessions.of(r)
	if x == nil {
		return redirect(w, r, "/operator/sign-in"+o.sessions.whyNone(r))
	}
	if r.Method == http.MethodPost && !x.isForm(r) {
		return errNotAForm
	}
	if path == "/sign-out" && r.Method == http.MethodPost {
		o.sessions.end(w, r)
		return redirect(w, r, "/operator/sign-in")
	}
	return serve(o.actions(), path, &visit{w, r, x, account.Caller{}, nil})
}

func (o *Operator) signIn(w http.ResponseWriter, r *http.Request) error {
	p := &page{Title: "Sign in as operator", Base: "/operator"}
	if r.URL.RawQuery == "ended" {
		p.Notice = "Sign in with the system key."
	}
	if r.Method != http.MethodPost {
		return write(w, "operator-sign-in", http.StatusOK, p)
	}
	if !o.Key.Equal(secret.New(strings.TrimSpace(r.PostFormValue("key")))) {
		refused := wire.AsProblem(o.Gate.CountSystemKey(wire.Refuse(wire.InvalidCredentials, "That is not the system key.")))
		p.Notice, p.Problem = "", refused.Detail
		return write(w, "operator-sign-in", refused.Kind.Status, p)
	}
	if !o.sessions.start(w, account.Caller{}) {
		return wire.Refuse(wire.Unavailable, "Too many people are signed in. Try again in a few minutes.")
	}
	o.Log.Info("an operator signed in")
	return redirect(w, r, "/operator")
}

func (v *visit) operate(name, title, current string, content any) error {
	return write(v.w, name, http.StatusOK, &page{
		Title: title, Base: "/operator", Current: current, Name: "Operator", CSRF: v.session.csrf, Content: content,
	})
}

type organizations struct {
	All   []state.Account
	Chart *chart
	Days  int
	By    []use // organization
}

func (o *Operator) organizations(v *visit) error {
	ctx := v.r.Context()
	all, err := o.Of.Organizations(ctx)
	if err != nil {
		return err
	}
	if err := o.Desk.StoreRequests(ctx); err != nil {
		return err
	}
	today := o.Now().UTC().Truncate(24 * time.Hour)
	from := today.AddDate(0, 0, 1-overviewDays)
	used, err := o.State.UsageOfAll(ctx, from, today)
	if err != nil {
		return err
	}
	names := map[int64]string{}
	for _, a := range all {
		names[a.Organization.ID] = a.Organization.Name
	}
	content := organizations{All: all, Days: overviewDays}
	content.By = most(sums(used, func(u state.Usage) string { return cmp.Or(names[u.Organization], "deleted") }), "other organizations")
	largest := map[string]bool{} // the others share a colour
	for _, u := range content.By[:min(len(content.By), colors-1)] {
		largest[u.Name] = true
	}
	for i, u := range used {
		if used[i].Operation = cmp.Or(names[u.Organization], "deleted"); !largest[used[i].Operation] {
			used[i].Operation = "others"
		}
	}
	content.Chart = spending(used, from, overviewDays, "organization")
	return v.operate("operator", "Organizations", "", content)
}

// create makes an organization, and shows it with its first key.
func (o *Operator) create(v *visit) error {
	form := v.r.PostForm
	var credits int64
	var err error
	if text := form.Get("credits"); text != "" {
		if credits, err = strconv.ParseInt(text, 10, 64); err != nil || credits < 0 {
			return wire.Refuse(wire.ValidationError, "Give a number of credits, or leave it empty.")
		}
	}
	made, err := o.State.CreateOrganization(v.r.Context(), form.Get("name"), credits, o.Desk.Roster.NewSecret(), o.Now())
	if err == nil {
		o.Log.Info("created on the pages of operators", "organization", made.Public)
		return o.showNewKey(v, made, "first")
	}
	return account.Refused(err)
}

func (o *Operator) makeKey(v *visit) error {
	found, err := o.Find(v.r.Context(), v.r.FormValue("id"))
	if err != nil {
		return err
	}
	return o.showNewKey(v, found, v.r.PostForm.Get("label"))
}

// showNewKey makes a live key without limits, and shows it this once.
func (o *Operator) showNewKey(v *visit, of state.Organization, label string) error {
	key, made, err := o.Desk.Keys.Make(v.r.Context(), nil, account.NewKey{Organization: of.ID, Label: label})
	if err != nil {
		return account.Refused(err)
	}
	if _, err := o.Desk.Roster.Names(v.r.Context()); err != nil {
		return err
	}
	o.Log.Info("key made on the pages of operators", "organization", of.Public, "key", made.Public)
	return v.redirectOnce("/operator/one?id="+of.Public, madeKey{key, made.Public})
}

type oneOrganization struct {
	Organization state.Organization
	Balance      state.Balance
	keyList
	Entries []state.Entry
	New     madeKey
}

func (o *Operator) organization(v *visit) error {
	found, err := o.Find(v.r.Context(), v.r.FormValue("id"))
	if err != nil {
		return err
	}
	one := oneOrganization{Organization: found}
	one.New, _ = v.noted().(madeKey)
	if one.Balance, err = o.State.Balance(v.r.Context(), found.ID); err != nil {
		return err
	}
	if one.keyList, err = keysOf(v.r, o.State, found.ID, false, o.Now()); err != nil {
		return err
	}
	if one.Entries, _, err = o.State.LatestEntries(v.r.Context(), found.ID, state.Entries{}, listed/2); err != nil {
		return err
	}
	return v.operate("operator-organization", found.Name, "/one", one)
}

// changed shows an organization again after a form has changed it.
func (o *Operator) changed(v *visit, what string, of state.Organization, err error) error {
	if err != nil {
		return err
	}
	o.Log.Info("changed on the pages of operators", "organization", of.Public, "what", what)
	return redirect(v.w, v.r, "/operator/one?id="+of.Public)
}

func (o *Operator) credits(v *visit) error {
	credits, err := strconv.ParseInt(v.r.PostForm.Get("credits"), 10, 64)
	if err != nil || credits == 0 {
		return wire.Refuse(wire.ValidationError, "Give a number of credits other than 0; a negative one takes them back.")
	}
	of, err := o.Find(v.r.Context(), v.r.FormValue("id"))
	if err == nil {
		_, err = o.Credit(v.r.Context(), state.CreditChange{Organization: of.ID, Credits: credits, Note: v.r.PostForm.Get("note"), At: o.Now()})
	}
	return o.changed(v, "credits", of, err)
}

func (o *Operator) rename(v *visit) error {
	of, err := o.Rename(v.r.Context(), v.r.FormValue("id"), v.r.PostForm.Get("name"))
	return o.changed(v, "name", of, err)
}

func (o *Operator) suspend(v *visit) error {
	of, err := o.Suspend(v.r.Context(), v.r.FormValue("id"), v.r.PostForm.Get("resume") == "")
	return o.changed(v, "suspension", of, err)
}

func (o *Operator) revoke(v *visit) error {
	form := v.r.PostForm
	of, err := o.Change(v.r.Context(), v.r.FormValue("id"), func(of state.Organization) error {
		_, err := o.Desk.Keys.Revoke(v.r.Context(), nil, of.ID, form.Get("key"), form.Get("made") != "")
		return err
	})
	return o.changed(v, "key", of, err)
}

type queues struct {
	Stats state.Stats
	Now   time.Time
	Dead  []state.Delivery
	Names map[int64]string
}

func (o *Operator) queues(v *visit) error {
	q := queues{Now: o.Now()}
	var err error
	if q.Stats, err = o.State.Stats(v.r.Context()); err != nil {
		return err
	}
	if q.Dead, err = o.State.Deliveries(v.r.Context(), 0, state.Dead, "", 2*listed); err != nil {
		return err
	}
	if q.Names, err = o.Desk.Roster.Names(v.r.Context()); err != nil {
		return err
	}
	return v.operate("operator-queues", "Queues", "/queues", q)
}

func (o *Operator) replay(v *visit) error {
	if err := o.Desk.Replay(v.r.Context(), 0, v.r.PostForm.Get("webhook")); err != nil {
		return err
	}
	return redirect(v.w, v.r, "/operator/queues")
}

func (o *Operator) limits(v *visit) error {
	return v.operate("operator-limits", "Limits and prices", "/limits", map[string][]Setting{"Limits": o.Limits, "Prices": o.Prices})
}
