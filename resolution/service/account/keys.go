package account

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// Scope is the scope that lets a key read and change the account of its
// organization.
const Scope = "account"

// Scopes returns the scopes that a key can have: operations, and Scope.
func Scopes() []string {
	names := append(resolution.OperationNames(), Scope)
	slices.Sort(names)
	return names
}

// KeyState stores keys.
type KeyState interface {
	FindKey(ctx context.Context, organization int64, public string) (state.Key, error)
	MadeKeys(ctx context.Context, key int64) ([]state.Key, error)
	AddKey(ctx context.Context, k state.Key) (state.Key, error)
	RevokeKey(ctx context.Context, public string, made bool, now time.Time) error
	KeyLeft(ctx context.Context, key int64) (left int64, limited bool, err error)
}

// Keys makes and revokes API keys. Pages and commands call it, so that each right
// is checked in one place. A key gives away at most what it has: its operations, its
// networks, its time, and what is left of its credits. All fields are required.
type Keys struct {
	State  KeyState
	Pepper credential.Pepper
	Now    func() time.Time
}

// maxKeyLife is the longest life of a key that expires.
const maxKeyLife = 3650 * 24 * time.Hour

// NewKey is what somebody wants a key to be. Empty fields are not limited, or as
// in the key that makes it.
type NewKey struct {
	Organization int64
	Test         bool
	Label        string
	Operations   []string
	Networks     []netip.Prefix
	Life         time.Duration
	Limit        int64
	MakesKeys    *bool // nil: if nothing else limits the key
}

// Make makes a key, and returns it with its record. by is the key that makes it, nil
// for an operator. A refusal is a *wire.Problem, whose fields name those of NewKey
// in lower case; the errors of AddKey come as they are.
func (s Keys) Make(ctx context.Context, by *state.Key, asked NewKey) (key string, made state.Key, err error) {
	now := s.Now()
	k := state.Key{
		Organization: asked.Organization, Test: asked.Test, Label: asked.Label, Created: now, Limit: asked.Limit}
	for _, o := range asked.Operations {
		if !slices.Contains(k.Operations, o) {
			k.Operations = append(k.Operations, o)
		}
	}
	for _, n := range asked.Networks {
		k.Networks = append(k.Networks, n.Masked())
	}
	var p problems
	p.refuse(asked.Life < 0 || asked.Life > maxKeyLife, "life", "A key expires after 1 to 3,650 days, or never.")
	p.refuse(asked.Limit < 0, "limit", "A spending limit is a number of credits, at least 1.")
	p.refuse(slices.ContainsFunc(k.Operations, func(o string) bool { return !slices.Contains(Scopes(), o) }), "operations", "There is no such operation.")
	if asked.Life > 0 {
		k.Expires = now.Add(asked.Life)
	}
	if by != nil {
		if err := s.within(ctx, *by, &k, &p); err != nil {
			return "", state.Key{}, err
		}
	}
	if len(p) > 0 {
		return "", state.Key{}, wire.Invalid(p)
	}
	if k.MakesKeys = !k.Narrowed(); asked.MakesKeys != nil {
		k.MakesKeys = *asked.MakesKeys
	}
	key = credential.NewKey(k.Test).Reveal()
	k.Hash, k.Hint = s.Pepper.Hash(key), credential.Hint(key)
	made, err = s.State.AddKey(ctx, k)
	return key, made, err
}

type problems []request.Problem

func (p *problems) refuse(wrong bool, field, why string) {
	if wrong {
		*p = append(*p, request.Problem{Pointer: "/" + field, Code: "out_of_range", Detail: why})
	}
}

// within keeps a new key within what its maker has, and gives it that where nothing else
// is asked for.
func (s Keys) within(ctx context.Context, by state.Key, k *state.Key, p *problems) error {
	if !by.MakesKeys {
		return errMakesNone
	}
	k.Maker = by.ID
	p.refuse(by.Test && !k.Test, "test", "A test key makes test keys only.")
	if len(k.Operations) == 0 {
		k.Operations = by.Operations
	}
	p.refuse(slices.ContainsFunc(k.Operations, func(o string) bool { return !by.May(o) }), "operations", "A key can only allow operations that the key which makes it may call.")
	if len(k.Networks) == 0 {
		k.Networks = by.Networks
	}
	p.refuse(slices.ContainsFunc(k.Networks, func(n netip.Prefix) bool { return !contains(by, n) }), "networks", "A key can only allow networks that the key which makes it may be used from.")
	if k.Expires.IsZero() {
		k.Expires = by.Expires
	}
	p.refuse(!by.Expires.IsZero() && k.Expires.After(by.Expires), "life", "A key expires no later than the key which makes it: "+by.Expires.UTC().Format("2006-01-02 15:04")+" UTC.")
	left, limited, err := s.State.KeyLeft(ctx, by.ID)
	if err != nil || !limited {
		return err
	}
	if k.Limit == 0 {
		k.Limit = left
	}
	p.refuse(left == 0, "limit", "The key which makes it has no credits left to spend.")
	p.refuse(left > 0 && k.Limit > left, "limit", "A key may spend at most what is left of the limit of the key which makes it: "+strconv.FormatInt(left, 10)+" credits.")
	return nil
}

// contains reports whether a key may be used from all of a network.
func contains(k state.Key, n netip.Prefix) bool {
	return len(k.Networks) == 0 || slices.ContainsFunc(k.Networks, func(p netip.Prefix) bool { return p.Bits() <= n.Bits() && p.Contains(n.Addr()) })
}

var (
	errMakesNone = wire.Refuse(wire.Forbidden, "This API key may not make keys. A key that may has the right since it was made; by default one that nothing limits.")
	errNotYours  = wire.Refuse(wire.Forbidden, "This API key may only revoke itself and the keys that it made. A key that may make keys, and that nothing limits, revokes all.")
	errNoKey     = &wire.Problem{Kind: wire.NotFound, Detail: "There is no such key.", Cause: state.ErrNotFound}
)

// Revoke revokes a key of an organization, of any if organization is 0, and with made
// the keys that it made. by is the key that asks for it, nil for an operator. It
// returns the keys made by the revoked one that stay valid.
func (s Keys) Revoke(ctx context.Context, by *state.Key, organization int64, public string, made bool) (stay []state.Key, err error) {
	k, err := s.State.FindKey(ctx, organization, public)
	if errors.Is(err, state.ErrNotFound) || err == nil && by != nil && by.Test && !k.Test { // test keys must not manage live ones
		return nil, errNoKey
	}
	if err == nil && by != nil {
		err = s.mayRevoke(ctx, *by, k)
	}
	if err != nil {
		return nil, err
	}
	if err := s.State.RevokeKey(ctx, k.Public, made, s.Now()); err != nil {
		return nil, err
	}
	all, err := s.State.MadeKeys(ctx, k.ID)
	return slices.DeleteFunc(all, func(m state.Key) bool { return !m.Valid(s.Now()) }), err
}

// mayRevoke refuses a key that would take away more than it can give.
func (s Keys) mayRevoke(ctx context.Context, by, k state.Key) error {
	if k.ID == by.ID || by.MakesKeys && !by.Narrowed() {
		return nil
	}
	theirs, err := s.State.MadeKeys(ctx, by.ID)
	if err == nil && !slices.ContainsFunc(theirs, func(m state.Key) bool { return m.ID == k.ID }) {
		return errNotYours
	}
	return err
}
