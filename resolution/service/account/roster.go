// Package account knows who may call and what they have: organizations with
// their keys, secrets, credits and stored bytes, and what they may do with
// their own account.
//
// The one thing to know before using it: a known balance may admit a call, and
// never refuses one. Only the store takes credits.
package account

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// RefreshEvery is how often the credentials are read again if they changed, and
// so how long a revoked key may still be accepted.
const RefreshEvery = 250 * time.Millisecond

// members is everybody who may call, as of one moment. It is immutable.
type members struct {
	version  int64
	keys     map[[32]byte]Caller // by hash
	accounts map[string]*Account // by public id
	byID     map[int64]*Account
	secrets  map[int64][]signingSecret // by organization, the current one first
	unread   int                       // callback secrets that could not be opened
}

type signingSecret struct {
	secret  callback.Secret
	expires time.Time // zero: never
}

// RosterState stores the callers and their credits.
type RosterState interface {
	// CredentialsVersion rises with every change to Credentials.
	CredentialsVersion(ctx context.Context) (int64, error)
	Credentials(ctx context.Context) (state.Credentials, error)
	Balance(ctx context.Context, organization int64) (state.Balance, error)
	// KeyLeft is how many credits a key may still spend, if it has a limit.
	KeyLeft(ctx context.Context, key int64) (left int64, limited bool, err error)
}

// Roster keeps the current members, so that identifying a caller needs no
// database. It is safe for concurrent use.
type Roster struct {
	state   RosterState
	pepper  credential.Pepper
	now     func() time.Time
	log     *slog.Logger
	current atomic.Pointer[members]
	mu      sync.Mutex // one refresh at a time
	doubts  *rate.Limiter
}

// NewRoster makes a roster that knows nobody until it is refreshed.
func NewRoster(s RosterState, pepper credential.Pepper, now func() time.Time, log *slog.Logger) *Roster {
	r := &Roster{state: s, pepper: pepper, now: now, log: log, doubts: rate.NewLimiter(20, 20)}
	r.current.Store(&members{version: -1})
	return r
}

// Refresh reads the credentials if they changed.
func (r *Roster) Refresh(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	version, err := r.state.CredentialsVersion(ctx)
	if err != nil || version == r.current.Load().version {
		return err
	}
	c, err := r.state.Credentials(ctx)
	if err != nil {
		return err
	}
	r.current.Store(r.read(c))
	return nil
}

// Check returns an error if the pepper opens no callback secret at all. Such a
// pepper belongs to another service, so no API key would match either.
func (r *Roster) Check() error {
	if m := r.current.Load(); m.unread > 0 && len(m.secrets) == 0 {
		return fmt.Errorf("%w: callback secrets are not sealed under this pepper", resolution.ErrInvalid)
	}
	return nil
}

// ByKey returns the caller of a key that is not revoked, by its hash. An expired
// key has its caller too.
func (r *Roster) ByKey(hash [32]byte) (Caller, bool) {
	c, found := r.current.Load().keys[hash]
	return c, found && c.Key.Revoked.IsZero()
}

// ByPublic returns the account of a public id, nil without one.
func (r *Roster) ByPublic(id string) *Account { return r.current.Load().accounts[id] }

// ByID returns the account of an organization, nil without one.
func (r *Roster) ByID(organization int64) *Account { return r.current.Load().byID[organization] }

// Owner returns the account that owns the keys of a, itself unless a is of test keys.
func (r *Roster) Owner(a *Account) *Account {
	if owner := r.ByID(a.Owner); owner != nil {
		return owner
	}
	return a
}

// Doubt refreshes the roster before credentials are refused, because they may be
// new. Every bad key calls it, so its rate is limited. Above the limit, a new
// key waits for the next periodic refresh.
func (r *Roster) Doubt(ctx context.Context) error {
	if !r.doubts.AllowN(r.now(), 1) {
		return nil
	}
	return r.Refresh(ctx)
}

// read makes the members and keeps the accounts of the previous ones. A callback
// secret that cannot be opened is left out and logged. Only the callbacks of its
// organization wait then, until it has a new secret.
func (r *Roster) read(c state.Credentials) *members {
	before := r.current.Load()
	next := &members{
		version:  c.Version,
		keys:     make(map[[32]byte]Caller, len(c.Keys)),
		accounts: make(map[string]*Account, len(c.Organizations)),
		byID:     make(map[int64]*Account, len(c.Organizations)),
		secrets:  make(map[int64][]signingSecret, len(c.Organizations)),
	}
	for _, o := range c.Organizations {
		a := before.byID[o.ID]
		if a == nil {
			a = newAccount(o)
		}
		a.organization.Store(&o)
		next.byID[o.ID] = a
		if !a.IsTest() { // tokens are not for tests
			next.accounts[o.Public] = a
		}
	}
	limited := map[int64]bool{}
	for i, k := range c.Keys { // a key comes after the one that made it
		limited[k.ID] = k.Limit != 0 || limited[k.Maker]
		next.keys[k.Hash] = Caller{next.byID[k.Organization], &c.Keys[i], limited[k.ID]}
	}
	for _, sealed := range c.Secrets {
		secret, err := r.open(sealed)
		if err != nil {
			next.unread++
			public := ""
			if a := next.byID[sealed.Organization]; a != nil {
				public = a.Public
			}
			r.log.Error("a callback secret cannot be used; admin secret rotate makes another", "secret", sealed.ID, "organization", public, "error", err)
			continue
		}
		next.secrets[sealed.Organization] = append(next.secrets[sealed.Organization], signingSecret{secret, sealed.Expires})
	}
	return next
}

func (r *Roster) open(sealed state.Secret) (callback.Secret, error) {
	plain, err := r.pepper.Open(sealed.Sealed)
	if err != nil {
		return callback.Secret{}, errors.New("it is not sealed under this pepper")
	}
	return callback.ParseSecret(string(plain))
}

// NewSecret makes a callback secret and seals it.
func (r *Roster) NewSecret() []byte { return r.pepper.Seal([]byte(callback.NewSecret().Reveal())) }

// Names returns the public ids of all organizations by their ID, as of now. A
// test organization has the public id of the organization that owns the test keys.
func (r *Roster) Names(ctx context.Context) (map[int64]string, error) {
	if err := r.Refresh(ctx); err != nil {
		return nil, err
	}
	names := map[int64]string{}
	m := r.current.Load()
	for id, a := range m.byID {
		if owner := m.byID[a.Owner]; owner != nil {
			names[id] = owner.Public
		}
	}
	return names, nil
}

// Credited records an organization's available credits.
func (r *Roster) Credited(organization, available int64) {
	if a := r.ByID(organization); a != nil {
		a.Available.Store(available)
	}
}

// CallbackSecrets returns the secrets that sign an organization's callbacks: one,
// or two during a rotation.
func (r *Roster) CallbackSecrets(organization int64) []callback.Secret {
	var valid []callback.Secret
	now, m := r.now(), r.current.Load()
	if a := m.byID[organization]; a != nil {
		organization = a.Owner
	}
	for _, s := range m.secrets[organization] {
		if s.expires.IsZero() || now.Before(s.expires) {
			valid = append(valid, s.secret)
		}
	}
	return valid
}

// FinishedCallback returns the callback of a finished job, nil when none was
// requested. It echoes the request, so that the receiver can recognize it.
func (r *Roster) FinishedCallback(job *state.Job, at time.Time) (*state.Callback, error) {
	if job.CallbackURL == "" {
		return nil, nil
	}
	e := wire.Finished(job)
	a := r.ByID(job.Organization)
	e.Test = a != nil && a.IsTest()
	e.CallbackURL, e.Payload = job.CallbackURL, job.Payload
	return wire.NewCallback(state.Callback{
		Organization: job.Organization, Resolution: job.ID, Receiver: job.Receiver, URL: job.CallbackURL, Due: at,
	}, e.Bytes(), job.Operation, job.Status)
}
