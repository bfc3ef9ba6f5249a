package objectstate

import (
	"context"

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

// Get reads it; fs.ErrNotExist without one.
func (n *Nights) Get() ([]byte, error) {
	data, _, err := n.state.store.ReadFile(n.ctx, n.at)
	return data, err
}

// Put replaces it.
func (n *Nights) Put(data []byte) error {
	_, err := n.state.store.Put(n.ctx, n.at, objects.ContentOf(data, "application/json"))
	return err
}
