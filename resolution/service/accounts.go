package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
	"golang.org/x/time/rate"
)

// rosterEvery is how often the credentials are read again if they changed, and
// so how long a revoked key may still be accepted.
const rosterEvery = 250 * time.Millisecond

// roster is everybody who may call, as of one moment. It is immutable.
type roster struct {
	version  int64
	keys     map[[32]byte]rosterKey // by hash
	accounts map[string]*account    // by public id
	byID     map[int64]*account
	secrets  map[int64][]rosterSecret // by organization, the current one first
	unread   int                      // callback secrets that could not be opened
}

type rosterKey struct {
	account *account
	record  *state.Key
}

type rosterSecret struct {
	secret  callback.Secret
	expires time.Time // zero: never
}

// rosters keeps the current roster, so that identifying a caller needs no
// database.
type rosters struct {
	state   accountState
	pepper  credential.Pepper
	now     func() time.Time
	log     *slog.Logger
	present atomic.Pointer[roster]
	mu      sync.Mutex // one refresh at a time
	doubts  *rate.Limiter
}

func newRosters(s accountState, pepper credential.Pepper, now func() time.Time, log *slog.Logger) *rosters {
	r := &rosters{state: s, pepper: pepper, now: now, log: log, doubts: rate.NewLimiter(20, 20)}
	r.present.Store(&roster{version: -1})
	return r
}

// refresh reads the credentials if they changed.
func (r *rosters) refresh(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	version, err := r.state.CredentialsVersion(ctx)
	if err != nil || version == r.present.Load().version {
		return err
	}
	c, err := r.state.Credentials(ctx)
	if err != nil {
		return err
	}
	r.present.Store(r.read(c))
	return nil
}

// check returns an error if the pepper opens no callback secret at all. Such a
// pepper belongs to another service, so no API key would match either.
func (r *rosters) check() error {
	if p := r.present.Load(); p.unread > 0 && len(p.secrets) == 0 {
		return fmt.Errorf("%w: callback secrets are not sealed under this pepper", resolution.ErrInvalid)
	}
	return nil
}

// moveTestKey makes a key one of the test keys of its organization.
func (r *rosters) moveTestKey(ctx context.Context, hash [32]byte) (rosterKey, error) {
	if err := r.state.MoveTestKey(ctx, r.present.Load().keys[hash].record.Public, r.now()); err != nil {
		return rosterKey{}, err
	}
	err := r.refresh(ctx)
	return r.present.Load().keys[hash], err
}

// doubt refreshes the roster before credentials are refused, because they may be
// new. Every bad key calls it, so its rate is limited. Above the limit, a new
// key waits for the next periodic refresh.
func (r *rosters) doubt(ctx context.Context) error {
	if !r.doubts.AllowN(r.now(), 1) {
		return nil
	}
	return r.refresh(ctx)
}

// read makes a roster and keeps the accounts of the previous one. A callback
// secret that cannot be opened is left out and logged. Only the callbacks of its
// organization wait then, until it has a new secret.
func (r *rosters) read(c state.Credentials) *roster {
	before := r.present.Load()
	next := &roster{
		version:  c.Version,
		keys:     make(map[[32]byte]rosterKey, len(c.Keys)),
		accounts: make(map[string]*account, len(c.Organizations)),
		byID:     make(map[int64]*account, len(c.Organizations)),
		secrets:  make(map[int64][]rosterSecret, len(c.Organizations)),
	}
	for _, o := range c.Organizations {
		a := before.byID[o.ID]
		if a == nil {
			a = newAccount(o)
		}
		a.suspended.Store(!o.Suspended.IsZero())
		a.name.Store(&o.Name)
		next.byID[o.ID] = a
		if !a.isTest() { // tokens are not for tests
			next.accounts[o.Public] = a
		}
	}
	for i, k := range c.Keys {
		next.keys[k.Hash] = rosterKey{next.byID[k.Organization], &c.Keys[i]}
	}
	for _, sealed := range c.Secrets {
		secret, err := r.open(sealed)
		if err != nil {
			next.unread++
			r.log.Error("a callback secret cannot be used; admin secret rotate makes another", "secret", sealed.ID,
				"organization", next.publicID(sealed.Organization), "error", err)
			continue
		}
		next.secrets[sealed.Organization] = append(next.secrets[sealed.Organization], rosterSecret{secret, sealed.Expires})
	}
	return next
}

func (r *rosters) open(sealed state.Secret) (callback.Secret, error) {
	plain, err := r.pepper.Open(sealed.Sealed)
	if err != nil {
		return callback.Secret{}, errors.New("it is not sealed under this pepper")
	}
	return callback.ParseSecret(string(plain))
}

// names returns the public ids of all organizations by their ID. A test
// organization has the public id of the organization that owns the test keys.
func (r *rosters) names(ctx context.Context) (map[int64]string, error) {
	if err := r.refresh(ctx); err != nil {
		return nil, err
	}
	names := map[int64]string{}
	present := r.present.Load()
	for id, a := range present.byID {
		names[id] = present.publicID(a.owner)
	}
	return names, nil
}

// credited records an organization's available credits.
func (r *rosters) credited(organization, available int64) {
	if a := r.present.Load().byID[organization]; a != nil {
		a.available.Store(available)
	}
}

func (r *roster) publicID(organization int64) string {
	if a := r.byID[organization]; a != nil {
		return a.public
	}
	return ""
}

// callbackSecrets returns the secrets that sign an organization's callbacks: one,
// or two during a rotation.
func (r *rosters) callbackSecrets(organization int64) []callback.Secret {
	var valid []callback.Secret
	now, present := r.now(), r.present.Load()
	if a := present.byID[organization]; a != nil {
		organization = a.owner
	}
	for _, s := range present.secrets[organization] {
		if s.expires.IsZero() || now.Before(s.expires) {
			valid = append(valid, s.secret)
		}
	}
	return valid
}

// account has what requests need to know about an organization. It outlives the
// rosters that contain it.
type account struct {
	id     int64
	public string // org_…
	owner  int64  // id; for the account of test keys, the id of the organization that owns them

	suspended atomic.Bool
	name      atomic.Pointer[string]

	// available is the last known balance, unknownBalance at first. It may be out
	// of date. It may admit a call, because the charge checks again, but it must
	// not refuse one.
	available atomic.Int64
	// asked is true if a call came since the balance was last read.
	asked atomic.Bool

	retained limit.RetainedBytes
}

const unknownBalance = math.MinInt64

func newAccount(o state.Organization) *account {
	a := &account{id: o.ID, public: o.Public, owner: cmp.Or(o.TestOf, o.ID)}
	a.available.Store(unknownBalance)
	return a
}

// isTest reports whether the account has the ledger of test keys.
func (a *account) isTest() bool { return a.owner != a.id }

// isTest reports whether a job was created with a test key.
func (r *rosters) isTest(job *state.Job) bool {
	a := r.present.Load().byID[job.Organization]
	return a != nil && a.isTest()
}

// balance returns the last known balance.
func (s *Service) balance(ctx context.Context, a *account) (int64, error) {
	if known := a.available.Load(); known != unknownBalance {
		return known, nil
	}
	return s.freshBalance(ctx, a)
}

func (s *Service) freshBalance(ctx context.Context, a *account) (int64, error) {
	b, err := s.state.Balance(ctx, a.id)
	if err != nil {
		return 0, err
	}
	a.available.Store(b.Available)
	return b.Available, nil
}

// afford refuses a call that its organization cannot pay for, before anything is
// looked up.
func (s *Service) afford(ctx context.Context, a *account, price int64) error {
	if price == 0 {
		return nil
	}
	has, err := s.balance(ctx, a)
	if err == nil && has < price {
		has, err = s.freshBalance(ctx, a) // credits may have been granted meanwhile
	}
	if err == nil && has < price {
		return wire.Insufficient(price, has)
	}
	return err
}
