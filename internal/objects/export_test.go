package objects

import "context"

// Renew renews a lock as its clock would.
func (l *Lock) Renew(ctx context.Context) error { return l.renew(ctx, 0) }

// What tests have to pass.
const (
	WholeSize = wholeSize
	ChunkSize = chunkSize
	BlockSize = blockSize
)
