package worldtest

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/google/uuid"
)

// GuardNames makes random names, such as idempotency keys, follow from the seed and from when
// they are made, until free is called. What else draws random numbers does not change them.
func (w *World) GuardNames() (free func()) {
	uuid.SetRand(&names{world: w})
	return func() { uuid.SetRand(nil) }
}

// names are the random bytes of a world's names.
type names struct {
	world *World

	mu    sync.Mutex
	at    time.Duration
	drawn int // at this moment
}

// Read is that of io.Reader.
func (n *names) Read(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if at := time.Since(n.world.began); at != n.at {
		n.at, n.drawn = at, 0
	}
	for i := 0; i < len(p); i += 8 {
		n.drawn++
		copy(p[i:], binary.LittleEndian.AppendUint64(nil, n.world.Draw("name", n.at, n.drawn)))
	}
	return len(p), nil
}
