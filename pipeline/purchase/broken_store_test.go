package purchase

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
)

var errStore = errors.New("the disk is gone")

// brokenStore is a store, one use of which fails: the first, second or later of a method.
type brokenStore struct {
	*answers.Store
	what string
	uses map[string]int
}

func (s brokenStore) use(method string) error {
	if s.uses[method]++; fmt.Sprint(method, s.uses[method]) == s.what {
		return errStore
	}
	return nil
}

func (s brokenStore) Lookup(ctx context.Context, of answers.Scope, keys []string, f answers.Freshness, bodies bool, into []answers.Found) ([]answers.Found, error) {
	found, err := s.Store.Lookup(ctx, of, keys, f, bodies, into)
	return found, errors.Join(err, s.use("Lookup"))
}

func (s brokenStore) Find(ctx context.Context, h answers.Hash) (answers.OpenCall, error) {
	if err := s.use("Find"); err != nil {
		return answers.OpenCall{}, err
	}
	return s.Store.Find(ctx, h)
}

func (s brokenStore) Intent(ctx context.Context, q answers.Question, send answers.Send) (answers.Call, error) {
	if err := s.use("Intent"); err != nil {
		return answers.Call{}, err
	}
	return s.Store.Intent(ctx, q, send)
}

func (s brokenStore) Place(ctx context.Context, q answers.Question, a answers.Answer, placed func()) error {
	if err := s.use("Place"); err != nil {
		return err
	}
	return s.Store.Place(ctx, q, a, placed)
}

func (s brokenStore) Park(ctx context.Context, q answers.Question, p answers.Parking) error {
	if err := s.use("Park"); err != nil {
		return err
	}
	return s.Store.Park(ctx, q, p)
}

func (s brokenStore) Fail(ctx context.Context, q answers.Question, f answers.Failure) error {
	if err := s.use("Fail"); err != nil {
		return err
	}
	return s.Store.Fail(ctx, q, f)
}

func (s brokenStore) Keep(ctx context.Context, q answers.Question, body []byte) error {
	if err := s.use("Keep"); err != nil {
		return err
	}
	return s.Store.Keep(ctx, q, body)
}

func (s brokenStore) SetKeyWindow(ctx context.Context, of answers.Scope, window time.Duration) error {
	if err := s.use("SetKeyWindow"); err != nil {
		return err
	}
	return s.Store.SetKeyWindow(ctx, of, window)
}

// TestBrokenStore: whatever the store cannot do, the run ends with its error, and no row gets
// an answer that is not stored.
func TestBrokenStore(t *testing.T) {
	const (
		phone, page       = resolution.NetworkToPhone, resolution.KeywordToLead
		found             = `{"lead":{"phone":"+12025550100"}}`
		pending, pageMade = `{"resolution":{"id":"res_1","status":"queued"}}`, `{"resolution":{"id":"res_1","status":"completed"},"lead":{"leads":[{"lead_id":"a"}]}}`
	)
	unread := &resolution.CallError{Class: resolution.Protocol, Status: 200, Sent: true, Body: []byte("<html>")}
	said := &resolution.CallError{Class: resolution.Limited, Status: 429, Sent: true, KeyWindow: time.Hour}
	refused := &resolution.CallError{Class: resolution.Invalid, Status: 400, Sent: true}
	over := &resolution.CallError{Class: resolution.Unavailable, Status: 200, Sent: true, Over: true}
	gone := &resolution.CallError{Class: resolution.Invalid, Status: 404, Sent: true, General: true}
	for _, c := range []struct {
		what      string
		operation resolution.Operation
		body      string
		err       error
		looked    string // what a look finds
		lookErr   error
	}{
		{"Lookup1", phone, found, nil, "", nil},
		{"Intent1", phone, found, nil, "", nil},
		{"Place1", phone, found, nil, "", nil},
		{"Fail1", phone, "", unread, "", nil},
		{"Place1", phone, "", refused, "", nil},
		{"SetKeyWindow1", phone, "", said, "", nil},
		{"Park1", phone, pending, nil, "", nil},
		{"Park1", page, pending, nil, pageMade, nil},
		{"Find1", page, pending, nil, pageMade, nil},
		{"Find2", page, pending, nil, pending, nil},
		{"Place1", page, pending, nil, pageMade, nil},
		{"Keep1", page, pending, nil, "", unread},
		{"Place1", page, pending, nil, "", over},
		{"Fail1", page, pending, nil, "", gone},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, _ := openIn(t)
			b := buyerFrom(t, c.operation, store, answering(func(asked string) (int, string, error) {
				if asked == "res_1" {
					return 200, c.looked, c.lookErr
				}
				return 200, c.body, c.err
			}), func(r *Remote) {
				r.Answers, r.Keys = brokenStore{store, c.what, map[string]int{}}, NewKeyWindow(DefaultKeyWindow)
			})
			if a, err := ask(t, b, "network.example/in/a"); !errors.Is(err, errStore) || !reflect.ValueOf(a).IsZero() {
				t.Errorf("%s of %s: %s %s, %v; want the error", c.what, c.operation, a.Outcome, a.Reason, err)
			}
		})
	}
}
