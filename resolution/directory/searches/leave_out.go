package searches

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/leadetl/leadetl/internal/keyed"
)

// LeaveOut reports whether a lead must not be found, in pages and counts. It gets the key of a
// profile or of an email; the other one is empty. It is called from many goroutines.
type LeaveOut func(ctx context.Context, networkURL, emailKey string) (bool, error)

// excluded are the leads of a file that must not be found.
type excluded struct {
	mu    sync.Mutex
	known bool
	leads bitset // nil without any
}

// leftOut calls f.LeaveOut for every lead, once.
func (f *File) leftOut(ctx context.Context) (bitset, error) {
	if f.LeaveOut == nil {
		return nil, nil
	}
	f.excluded.mu.Lock()
	defer f.excluded.mu.Unlock()
	if f.excluded.known {
		return f.excluded.leads, nil
	}
	leads, err := f.markedLeads(ctx, f.LeaveOut)
	if err != nil {
		return nil, err
	}
	f.excluded.known, f.excluded.leads = true, leads
	return leads, nil
}

// leaveOutError is an error of LeaveOut. It says nothing about the file of searches, even if it
// is keyed.ErrDamaged.
type leaveOutError struct{ error }

// markedLeads returns the leads for which leaveOut is true, by their keys or the email of any of
// their searches.
func (f *File) markedLeads(ctx context.Context, leaveOut LeaveOut) (bitset, error) {
	who := func(ctx context.Context, networkURL, emailKey string) (bool, error) {
		yes, err := leaveOut(ctx, networkURL, emailKey)
		if err != nil {
			err = leaveOutError{err}
		}
		return yes, err
	}
	leads, err := marked(ctx, len(f.leadIDs), func(ctx context.Context, lead uint32) (bool, error) {
		key := f.leadKeys.At(lead)
		if key[0] == leadByProfile {
			return who(ctx, string(key[1:]), "")
		}
		return who(ctx, "", string(key[1:]))
	})
	if err != nil {
		return nil, err
	}
	emails, err := marked(ctx, f.emails.Len(), func(ctx context.Context, email uint32) (bool, error) {
		key := f.emails.At(email)
		if len(key) == 0 {
			return false, nil // searches without an email
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

// marked returns the codes below n for which is is true.
func marked(ctx context.Context, n int, is func(ctx context.Context, code uint32) (bool, error)) (bitset, error) {
	set := make(bitset, (n+63)/64)
	group, ctx := errgroup.WithContext(ctx)
	share := (len(set)/runtime.GOMAXPROCS(0) + 1) * 64 // a goroutine writes whole words of the set
	for from := 0; from < n; from += share {
		group.Go(func() (err error) {
			defer keyed.Guard(&err, debug.SetPanicOnFault(true))
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
