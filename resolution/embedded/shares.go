package embedded

import (
	"runtime"

	"golang.org/x/sync/errgroup"
)

// minShare is how many leads are looked up before a second processor is worth
// starting; one takes some fifty microseconds.
const minShare = 32

// inShares runs do over consecutive shares of n, one a processor, and waits for
// all of them.
func inShares(n int, do func(from, to int) error) error {
	shares := max(1, min(runtime.GOMAXPROCS(0), n/minShare))
	var g errgroup.Group
	for k := range shares {
		g.Go(func() error { return do(n*k/shares, n*(k+1)/shares) })
	}
	return g.Wait()
}
