package objects

import (
	"context"
	"time"
)

// Beat renews a lock as its clock would.
func (l *Lock) Beat(ctx context.Context) error { return l.renew(ctx, 0) }

// What tests have to pass.
const (
	WholeSize = wholeSize
	ChunkSize = chunkSize
	BlockSize = blockSize
)

// IsDown records a failure of a request that has failed for so long.
func (c *connection) IsDown(failing time.Duration, why error) bool {
	now := time.Now()
	return c.patienceLeft(now, now.Add(-failing), why) <= 0
}

// Judge judges an error of a listing that came without an answer.
func (c *connection) Judge(at Location, err error) error {
	return c.judge(request{"list", "s3:ListBucket", at, 0}, "", err)
}
