package objects

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/longlock"
)

// LockExpires is how long a lock is valid without renewal. After that, another
// process may take it. The holder renews it four times in this period.
const LockExpires = 2 * time.Minute

// ErrLockLost means that another process took the lock, because its holder did
// not renew it in time.
var ErrLockLost = errors.New("another process took over the dataset, because this one did not renew its lock in time")

// Holder is who holds a lock.
type Holder struct {
	// Name is the same for processes that take over from each other at once. The caller
	// sees to it that only one of them is believed to be alive.
	Name string
	// Term rises with each of them: none takes over from a later one.
	Term int64
	// LostAfter is how long one is silent before the next is started; 0 is LockExpires.
	LostAfter time.Duration
}

// Sure is how long after a sign of life no other process can have taken over.
func (h Holder) Sure() time.Duration { return min(cmp.Or(h.LostAfter, LockExpires), LockExpires) / 2 }

// Lock is an object that locks out other processes, on this machine and on
// others, a lease.Lease. It is renewed until it is released.
type Lock struct {
	store  *Store
	at     Location
	shared bool // with processes of the same holder
	sure   time.Duration

	mu      longlock.Lock
	mine    lockBody
	etag    string
	renewed time.Time
	lost    bool

	ctx  context.Context // never cancelled: the lock is renewed until it is released
	quit context.CancelFunc
	done chan struct{}
}

var _ lease.Lease = (*Lock)(nil)

// lockBody is the content of the lock object.
type lockBody struct {
	Holder  string `json:"holder"`
	Term    int64  `json:"term,omitempty"`
	Process string `json:"process"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Space   string `json:"pid_space,omitempty"` // Machine.Processes
	Since   string `json:"since"`
	Beat    int    `json:"beat"`             // makes each renewal a different object
	Shared  bool   `json:"shared,omitempty"` // other processes hold it too
}

// Lock takes the lock at a location, without waiting. If another process holds
// it, the error is filelock.ErrLocked, with two exceptions: the lock has a holder of
// the same name and no later term, or it was not renewed in time. Lock also finds out
// whether the store supports conditional writes.
func (s *Store) Lock(ctx context.Context, at Location, holder Holder) (*Lock, error) {
	return lock(ctx, s, at, holder, false)
}

// Share takes the lock together with other processes of the same holder, which
// may have taken it with Lock. Each renews it for all. Release does not remove
// it, because others may need it: it expires after the last process, unless one
// takes and releases it with Lock.
func (s *Store) Share(ctx context.Context, at Location, holder Holder) (*Lock, error) {
	return lock(ctx, s, at, holder, true)
}

func lock(ctx context.Context, s *Store, at Location, holder Holder, shared bool) (*Lock, error) {
	ctx = context.WithoutCancel(ctx)
	l := &Lock{mu: longlock.New(), store: s, ctx: ctx, at: at, shared: shared, sure: holder.Sure(), mine: lockBody{
		Holder: holder.Name, Term: holder.Term, Process: uuid.NewString(), Host: s.machine.Host, PID: os.Getpid(), Space: s.machine.Processes, Since: time.Now().UTC().Format(time.RFC3339), Shared: shared,
	}}
	if err := l.take(ctx); err != nil {
		return nil, err
	}
	if err := l.probe(ctx); err != nil {
		return nil, errors.Join(err, l.remove(ctx))
	}
	var beating context.Context
	beating, l.quit = context.WithCancel(ctx)
	l.done = make(chan struct{})
	go l.beat(beating)
	return l, nil
}

// RequireConditions refuses a store that does not support conditional writes, as
// Lock found out.
func (l *Lock) RequireConditions() error {
	if l.store.unconditional.Load() {
		return needsConditions(l.at)
	}
	return nil
}

// started is when this process began. It tells this process from an earlier one
// with the same process number, which is common in containers.
var started = time.Now().UTC().Truncate(time.Second)

// HolderGone returns the holder of a lock whose process ran on this host, among the processes
// that this one sees, and is gone. It returns none if the lock is free, or when its holder may be
// alive: in another container the number of a living process may be free.
func (s *Store) HolderGone(ctx context.Context, at Location) (gone Holder, err error) {
	held, _, err := (&Lock{store: s, at: at}).read(ctx)
	if isGone(err) {
		return gone, nil
	}
	if err != nil || held.Host == "" || held.Host != s.machine.Host || held.Space == "" || held.Space != s.machine.Processes || held.PID <= 0 || held.Shared {
		return gone, err
	}
	holder := Holder{Name: held.Holder, Term: held.Term}
	if held.PID == os.Getpid() {
		if since, err := time.Parse(time.RFC3339, held.Since); err != nil || !since.Before(started) {
			return gone, nil // this process
		}
		return holder, nil
	}
	p, err := os.FindProcess(held.PID)
	if err != nil || errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone) {
		return holder, nil
	}
	return gone, nil
}

// take writes the lock until a read shows that it is ours, or that another
// process holds it.
func (l *Lock) take(ctx context.Context) error {
	for range maxConflicts {
		began, asked := time.Now(), ifAbsent
		held, info, err := l.read(ctx)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case held.Process == l.mine.Process:
			l.etag, l.renewed = info.ETag, info.renewed(began)
			return nil
		case l.shared && held.Holder == l.mine.Holder && info.SeenAt.Sub(info.ModTime) < LockExpires/2: // somebody renews it
			l.etag, l.renewed = info.ETag, info.renewed(began)
			return nil
		case !l.follows(held) && info.SeenAt.Sub(info.ModTime) < LockExpires:
			return fmt.Errorf("%s: %w: process %d on %s, since %s; if it is gone, the lock expires %s after its last renewal, which was %s ago", l.at, filelock.ErrLocked,
				held.PID, cmp.Or(held.Host, "another host"), held.Since, LockExpires, info.SeenAt.Sub(info.ModTime).Round(time.Second))
		default:
			asked = ifMatch(info.ETag)
		}
		if _, err := l.store.write(ctx, l.at, l.next(), asked); err != nil && !errors.Is(err, ErrChanged) && !isGone(err) {
			return err
		}
	}
	return fmt.Errorf("%s: %w", l.at, filelock.ErrLocked)
}

// probe writes the lock on the condition that it does not exist. A store that
// accepts this again and again ignores conditions. It may accept it once: a holder that
// slept may have removed the lock that it believed its own.
func (l *Lock) probe(ctx context.Context) error {
	if l.store.unconditional.Load() {
		return nil
	}
	for range maxConflicts {
		etag, err := l.store.write(ctx, l.at, l.next(), ifAbsent)
		switch {
		case errors.Is(err, ErrChanged):
			return nil
		case err != nil:
			return err
		}
		l.etag = etag
	}
	l.store.warnUnconditional()
	return nil
}

// next returns the lock's content for the next write.
func (l *Lock) next() Content {
	l.mine.Beat++
	data, err := json.Marshal(l.mine)
	if err != nil {
		panic(err) // strings and numbers cannot fail
	}
	return ContentOf(append(data, '\n'), "application/json")
}

func (l *Lock) read(ctx context.Context) (held lockBody, info Info, err error) {
	data, info, err := l.store.ReadFile(ctx, l.at)
	if err != nil {
		return held, info, err
	}
	if json.Unmarshal(data, &held) != nil {
		held = lockBody{} // unknown content: no known holder; it expires
	}
	if info.SeenAt.IsZero() {
		info.SeenAt = time.Now()
	}
	return held, info, nil
}

// follows reports whether this process takes over from another one at once.
func (l *Lock) follows(held lockBody) bool {
	return held.Holder == l.mine.Holder && held.Term <= l.mine.Term
}

// isOurs reports whether a lock is held by this process, or by one that it is
// shared with.
func (l *Lock) isOurs(held lockBody) bool {
	return held.Process == l.mine.Process || l.shared && held.Holder == l.mine.Holder
}

// Release stops the renewals and removes the lock, if we still hold it. A shared
// lock stays.
func (l *Lock) Release() error {
	l.quit()
	<-l.done
	if l.shared {
		return nil
	}
	return l.remove(l.ctx)
}

func (l *Lock) remove(ctx context.Context) error {
	held, _, err := l.read(ctx)
	switch {
	case isGone(err):
		return nil
	case err != nil:
		return err
	case held.Process != l.mine.Process:
		return nil
	}
	return l.store.Remove(ctx, l.at)
}
