package directory

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

// LeaveOut has keyword searches pass by the leads that who says are not to be
// found: neither pages nor counts have them. who gets the key of a profile or
// of an email, the other being empty, and is called from many goroutines.
//
// It is asked about every lead when an edition is first searched, which takes
// seconds for a million leads. LeaveOut comes before the first search.
func (d *Directory) LeaveOut(who func(ctx context.Context, networkURL, emailKey string) (bool, error)) {
	d.leaveOut = who
}

// leftOut are the leads of a file of searches that are not to be found.
type leftOut struct {
	mu    sync.Mutex
	known bool
	leads bitset // nil: none
}

// left finds out, once, which leads of f are not to be found.
func (d *Directory) left(ctx context.Context, f *searchFile) (bitset, error) {
	if d.leaveOut == nil {
		return nil, nil
	}
	f.left.mu.Lock()
	defer f.left.mu.Unlock()
	if f.left.known {
		return f.left.leads, nil
	}
	leads, err := f.markedLeads(ctx, d.leaveOut)
	if err != nil {
		return nil, err
	}
	f.left.known, f.left.leads = true, leads
	return leads, nil
}

// markedLeads are the leads that who says yes to, by their keys or by the email
// of any of their searches.
func (f *searchFile) markedLeads(ctx context.Context, who func(ctx context.Context, networkURL, emailKey string) (bool, error)) (bitset, error) {
	leads, err := marked(ctx, len(f.leadIDs), func(ctx context.Context, lead uint32) (bool, error) {
		key := f.leadKeys.at(lead)
		if key[0] == leadByProfile {
			return who(ctx, string(key[1:]), "")
		}
		return who(ctx, "", string(key[1:]))
	})
	if err != nil {
		return nil, err
	}
	emails, err := marked(ctx, f.emails.len(), func(ctx context.Context, email uint32) (bool, error) {
		key := f.emails.at(email)
		if len(key) == 0 {
			return false, nil // searches without one
		}
		return who(ctx, "", string(key))
	})
	if err != nil {
		return nil, err
	}
	if emails.count() > 0 {
		for row, email := range f.email {
			if emails.has(email) {
				leads.set(f.lead[row])
			}
		}
	}
	return leads, nil
}

// marked are the codes below n that is says yes to.
func marked(ctx context.Context, n int, is func(ctx context.Context, code uint32) (bool, error)) (bitset, error) {
	set := make(bitset, (n+63)/64)
	group, ctx := errgroup.WithContext(ctx)
	share := (len(set)/runtime.GOMAXPROCS(0) + 1) * 64 // a word of the set is one goroutine's
	for from := 0; from < n; from += share {
		group.Go(func() (err error) {
			defer damaged(&err, debug.SetPanicOnFault(true))
			for code := from; code < min(from+share, n); code++ {
				yes, err := is(ctx, uint32(code))
				if err != nil {
					return err
				}
				if yes {
					set.set(uint32(code))
				}
			}
			return ctx.Err()
		})
	}
	return set, group.Wait()
}
