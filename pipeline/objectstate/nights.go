package objectstate

import (
	"context"
	"errors"
	"io/fs"

	"github.com/leadetl/leadetl/internal/objects"
)

// Nights is the object with the finished datasets of a job, under STATE/nights/.
type Nights struct {
	state *State
	ctx   context.Context // never cancelled
	at    objects.Location
}

// Nights returns the object with a name. It reads nothing yet.
func (s *State) Nights(ctx context.Context, name string) *Nights {
	return &Nights{state: s, ctx: context.WithoutCancel(ctx), at: s.at.Below(name)}
}

// String is its URI.
func (n *Nights) String() string { return n.at.String() }

// Get reads it. It is empty without one.
func (n *Nights) Get() ([]byte, error) {
	data, err := n.state.getListed(n.ctx, n.at)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return data, err
}

// Update replaces it by what change makes of it. Nil leaves it as it is. Of two processes at
// the same moment the later one wins. What no read and no list shows may exist still: it is created
// only, and else the error is objects.ErrLate.
func (n *Nights) Update(change func(data []byte) ([]byte, error)) error {
	data, err := n.Get()
	if err != nil {
		return err
	}
	none := len(data) == 0
	if data, err = change(data); err != nil || data == nil {
		return err
	}
	content := objects.ContentOf(data, "application/json")
	if !none {
		_, err = n.state.store.Put(n.ctx, n.at, content)
		return err
	}
	return n.state.created(n.at, n.state.store.Create(n.ctx, n.at, content))
}
