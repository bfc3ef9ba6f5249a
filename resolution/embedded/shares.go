package embedded

import (
	"runtime"

	"golang.org/x/sync/errgroup"
)

// minShare is the least number of leads for each processor. A lead takes about 10
// microseconds.
const minShare = 32

// inShares calls do for consecutive shares of all, one on each processor, and returns the results
// in their order, at least one.
func inShares[T, R any](all []T, do func([]T) (R, error)) ([]R, error) {
	n := len(all)
	results := make([]R, max(1, min(runtime.GOMAXPROCS(0), n/minShare)))
	var g errgroup.Group
	for k := range results {
		g.Go(func() (err error) {
			results[k], err = do(all[n*k/len(results) : n*(k+1)/len(results)])
			return err
		})
	}
	return results, g.Wait()
}
