package dashboard

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/account"
	"github.com/leadetl/leadetl/resolution/service/admission"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// OperatorState is what operators see and change.
type OperatorState interface {
	Organizations(ctx context.Context) ([]state.Account, error)
	FindOrganization(ctx context.Context, nameOrPublic string) (state.Organization, error)
	keyReader
	LatestEntries(ctx context.Context, organization int64, which state.Entries, limit int) (entries []state.Entry, older int64, err error)
	UsageOfAll(ctx context.Context, from, to time.Time) ([]state.Usage, error)
	CreateOrganization(ctx context.Context, name string, credits int64, sealedSecret []byte, now time.Time) (state.Organization, error)
	Balance(ctx context.Context, organization int64) (state.Balance, error)
	ChangeCredits(ctx context.Context, c state.CreditChange) (state.Balance, error)
	RenameOrganization(ctx context.Context, organization int64, name string) error
	SuspendOrganization(ctx context.Context, organization int64, from time.Time) error
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
	Desk *account.Desk
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
	all, err := o.State.Organizations(ctx)
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
	return notPossible(err)
}

func (o *Operator) makeKey(v *visit) error {
	found, err := o.named(v)
	if err != nil {
		return err
	}
	return o.showNewKey(v, found, v.r.PostForm.Get("label"))
}

// showNewKey makes a live key without limits, and shows it this once.
func (o *Operator) showNewKey(v *visit, of state.Organization, label string) error {
	key, made, err := o.Desk.Keys.Make(v.r.Context(), nil, account.NewKey{Organization: of.ID, Label: label})
	if err != nil {
		return notPossible(err)
	}
	if _, err := o.Desk.Roster.Names(v.r.Context()); err != nil {
		return err
	}
	o.Log.Info("key made on the pages of operators", "organization", of.Public, "key", made.Public)
	return v.redirectOnce("/operator/one?id="+of.Public, madeKey{key, made.Public})
}

// notPossible answers what a form asked for and the state refuses.
func notPossible(err error) error {
	if too, is := errors.AsType[*state.InsufficientError](err); is {
		return wire.Insufficient(too)
	}
	if errors.Is(err, resolution.ErrInvalid) || errors.Is(err, state.ErrExists) {
		return wire.Refuse(wire.ValidationError, "That is not possible: the name is taken, too long or empty, or the number is out of bounds.")
	}
	return err
}

type oneOrganization struct {
	Organization state.Organization
	Balance      state.Balance
	keyList
	Entries []state.Entry
	New     madeKey
}

// named returns the organization that a request names by its public id.
func (o *Operator) named(v *visit) (state.Organization, error) {
	found, err := o.State.FindOrganization(v.r.Context(), v.r.FormValue("id"))
	if errors.Is(err, state.ErrNotFound) {
		err = wire.Refuse(wire.NotFound, "There is no such organization.")
	}
	return found, err
}

func (o *Operator) organization(v *visit) error {
	found, err := o.named(v)
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

// change changes the organization that a form names, updates the service, and
// shows the organization again.
func (o *Operator) change(v *visit, what string, change func(state.Organization) error) error {
	found, err := o.named(v)
	if err == nil {
		err = change(found)
	}
	if err != nil {
		return notPossible(err)
	}
	if _, err := o.Desk.Roster.Names(v.r.Context()); err != nil {
		return err
	}
	o.Log.Info("changed on the pages of operators", "organization", found.Public, "what", what)
	return redirect(v.w, v.r, "/operator/one?id="+found.Public)
}

func (o *Operator) credits(v *visit) error {
	credits, err := strconv.ParseInt(v.r.PostForm.Get("credits"), 10, 64)
	if err != nil || credits == 0 {
		return wire.Refuse(wire.ValidationError, "Give a number of credits other than 0; a negative one takes them back.")
	}
	return o.change(v, "credits", func(found state.Organization) error {
		b, err := o.State.ChangeCredits(v.r.Context(), state.CreditChange{Organization: found.ID, Credits: credits, Note: v.r.PostForm.Get("note"), At: o.Now()})
		if err == nil {
			o.Desk.Roster.Credited(found.ID, b.Available)
		}
		return err
	})
}

func (o *Operator) rename(v *visit) error {
	return o.change(v, "name", func(found state.Organization) error {
		return o.State.RenameOrganization(v.r.Context(), found.ID, v.r.PostForm.Get("name"))
	})
}

func (o *Operator) suspend(v *visit) error {
	var from time.Time
	if v.r.PostForm.Get("resume") == "" {
		from = o.Now()
	}
	return o.change(v, "suspension", func(found state.Organization) error {
		return o.State.SuspendOrganization(v.r.Context(), found.ID, from)
	})
}

func (o *Operator) revoke(v *visit) error {
	return o.change(v, "key", func(found state.Organization) error {
		form := v.r.PostForm
		_, err := o.Desk.Keys.Revoke(v.r.Context(), nil, found.ID, form.Get("key"), form.Get("made") != "")
		return err
	})
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
