package lease_test

import (
	"context"
	"errors"
	"testing"

	"github.com/leadetl/leadetl/internal/lease"
)

var errLost = errors.New("lost")

// one is a lease that may be lost.
type one struct {
	lost     bool
	released int
}

func (o *one) Renew(context.Context) error { return o.Release() }

func (o *one) Release() error {
	o.released++
	if o.lost {
		return errLost
	}
	return nil
}

// Renewing ends at a lease that is lost; releasing does not.
func TestAll(t *testing.T) {
	for _, f := range []struct {
		name        string
		act         func(lease.All) error
		first, last int // calls
	}{
		{"renew", func(a lease.All) error { return a.Renew(t.Context()) }, 1, 0},
		{"release", lease.All.Release, 1, 1},
	} {
		first, lost, last := &one{}, &one{lost: true}, &one{}
		err := f.act(lease.All{first, lost, last})
		if !errors.Is(err, errLost) || first.released != f.first || last.released != f.last {
			t.Errorf("%s: %v, %d and %d calls; want %d and %d", f.name, err, first.released, last.released, f.first, f.last)
		}
		if err := f.act(nil); err != nil {
			t.Errorf("%s none: %v", f.name, err)
		}
	}
}
