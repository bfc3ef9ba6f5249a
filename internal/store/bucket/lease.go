package bucket

import (
	"context"
	"errors"
	"path"

	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/store"
)

// leased is the lease of a bucket: a lock in the folder of the state against processes of this
// machine, and an object against other machines.
type leased struct {
	*objects.Lock
	ctx    context.Context // never cancelled
	bucket *Bucket
	work   *workFolder // nil without a folder of a state
	shared bool
}

// Lease is that of store.Store. Who takes the lease of the store itself aborts the uploads that a killed
// process has left.
func (b *Bucket) Lease(ctx context.Context, folder string, holder store.Holder) (_ lease.Lease, err error) {
	ctx = context.WithoutCancel(ctx)
	l := &leased{ctx: ctx, bucket: b, shared: holder.Shared}
	if folder == "" && b.options.State != nil {
		if l.work, err = openWorkFolder(b.options.State, b.String()); err != nil {
			return nil, err
		}
		if holder.Name == "" {
			holder.Name = l.work.holder
		}
	}
	take := b.objects.Lock
	if l.shared {
		take = b.objects.Share
	}
	if l.Lock, err = take(ctx, b.at.Below(path.Join(folder, LockName)), holder.Holder); err != nil {
		if l.work != nil {
			err = errors.Join(err, l.work.close(store.IsMissing(err)))
		}
		return nil, err
	}
	if folder != "" {
		return l, nil
	}
	b.mu.Lock()
	b.leased = l
	b.mu.Unlock()
	l.abortUploads()
	return l, nil
}

// abortUploads aborts the unfinished uploads of killed processes: those that the store
// lists, and those that are recorded here. If that is not allowed, a lifecycle rule of
// the bucket can do it. Of a shared store, listed uploads may be those of others.
func (l *leased) abortUploads() {
	if l.shared || l.work == nil {
		return
	}
	err := l.bucket.objects.AbortUploads(l.ctx, l.bucket.at, l.bucket.options.Ours)
	if err := errors.Join(err, l.work.abortRecorded(l.ctx, l.bucket)); err != nil {
		l.bucket.objects.Log().Warn("unfinished uploads of earlier runs may be left in the bucket", "reason", err.Error())
	}
}

// Release is that of lease.Lease.
func (l *leased) Release() error {
	b := l.bucket
	if b.objects.SentInPieces() && l.Renew(l.ctx) == nil { // else they may be those of who took over
		l.abortUploads()
	}
	b.mu.Lock()
	if b.leased == l {
		b.leased = nil
	}
	b.mu.Unlock()
	err := l.Lock.Release()
	if l.work == nil {
		return err
	}
	if err != nil {
		b.objects.Log().Warn("the lock of "+b.String()+" could not be removed; the next run with the same --state takes it over", "reason", err.Error())
	}
	return l.work.close(err == nil)
}
