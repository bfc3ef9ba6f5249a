package embedded

import (
	"runtime"

	"golang.org/x/sync/errgroup"
)

// minShare is the least number of leads for each processor. A lead takes about 50
// microseconds.
const minShare = 32

// inShares calls do for consecutive shares of n, one on each processor, and waits for all.
func inShares(n int, do func(from, to int) error) error {
	shares := max(1, min(runtime.GOMAXPROCS(0), n/minShare))
	var g errgroup.Group
	for k := range shares {
		g.Go(func() error { return do(n*k/shares, n*(k+1)/shares) })
	}
	return g.Wait()
}
