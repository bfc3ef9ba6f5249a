package embedded

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
)

// Live is an Engine over a directory that imports replace: it answers from
// the newest there is, and each look-up from one of them.
type Live struct {
	dir     string // "" is an engine without a directory
	options Options
	log     *slog.Logger

	present atomic.Pointer[generation] // nil when closed
	mu      sync.Mutex                 // of what follows, and of changing present
	told    string                     // the trouble that was logged last
}

var (
	_ resolution.Resolver = (*Live)(nil)
	_ resolution.Searcher = (*Live)(nil)
)

// pollInterval is how often Run looks for an import.
const pollInterval = time.Second

// errClosed is what a Live says after Close.
var errClosed = errors.Join(resolution.ErrUnavailable, errors.New("the directory is closed"))

// Follow opens the directory in dir, as directory.Open does. An empty dir is
// an engine without a directory. Close the Live after use; it follows as long
// as Run runs.
func Follow(dir string, o Options, log *slog.Logger) (*Live, error) {
	l := &Live{dir: dir, options: o, log: log}
	var d *directory.Directory
	if dir != "" {
		var err error
		if d, err = directory.Open(dir); err != nil {
			return nil, err
		}
	}
	l.present.Store(newGeneration(d, o))
	return l, nil
}

// Run looks every second whether an import has replaced the directory, until
// ctx is over. A new directory that cannot be opened is logged, once, and the
// one before stays.
func (l *Live) Run(ctx context.Context) error {
	if l.dir == "" {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.refresh()
		case <-ctx.Done():
			return nil
		}
	}
}

// refresh takes a newer directory, if there is one.
func (l *Live) refresh() {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.present.Load()
	if old == nil || !old.directory.Changed() {
		return
	}
	d, err := directory.Open(l.dir)
	if err != nil {
		if l.told != err.Error() {
			l.told = err.Error()
			l.log.Error("the new directory cannot be opened, the one before stays", "error", err)
		}
		return
	}
	l.told = ""
	l.present.Store(newGeneration(d, l.options))
	l.log.Info("directory replaced by an import", "fingerprint", d.Fingerprint())
	l.closed(old.leave())
}

// closed logs what an old directory said on being closed: nobody waits for it.
func (l *Live) closed(err error) {
	if err != nil {
		l.log.Warn("close the directory before", "error", err)
	}
}

// Close ends the look-ups: those under way finish, later ones are
// resolution.ErrUnavailable. The directory is closed when the last finishes.
func (l *Live) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.present.Swap(nil); old != nil {
		return old.leave()
	}
	return nil
}

// Fingerprint is that of the present directory, "" without one.
func (l *Live) Fingerprint() (f string) {
	l.with(func(e *Engine) error {
		if e.directory != nil {
			f = e.directory.Fingerprint()
		}
		return nil
	})
	return f
}

// errNoDirectory answers what only a directory can.
var errNoDirectory = errors.Join(resolution.ErrUnavailable, errors.New("there is no directory"))

// Offers returns why an operation cannot be answered now or later: without a
// directory only emails have an answer.
func (l *Live) Offers(o resolution.Operation) error {
	if l.dir == "" && o != resolution.EmailToHEM {
		return errNoDirectory
	}
	return nil
}

// Resolve is Engine.Resolve.
func (l *Live) Resolve(ctx context.Context, r resolution.Request) (a resolution.Answer, err error) {
	err = l.with(func(e *Engine) error { a, err = e.Resolve(ctx, r); return err })
	return a, err
}

// Edition is Engine.Edition.
func (l *Live) Edition() (edition string) {
	l.with(func(e *Engine) error { edition = e.Edition(); return nil })
	return edition
}

// Search is Engine.Search.
func (l *Live) Search(ctx context.Context, s resolution.KeywordSearch, p resolution.SearchPage) (r resolution.SearchResult, err error) {
	err = l.with(func(e *Engine) error { r, err = e.Search(ctx, s, p); return err })
	return r, err
}

// Count is Engine.Count.
func (l *Live) Count(ctx context.Context, s resolution.KeywordSearch, hems int) (c resolution.SearchCount, err error) {
	err = l.with(func(e *Engine) error { c, err = e.Count(ctx, s, hems); return err })
	return c, err
}

// with runs do on the present engine, which stays open meanwhile.
func (l *Live) with(do func(*Engine) error) error {
	for {
		g := l.present.Load()
		if g == nil {
			return errClosed
		}
		if !g.enter() { // replaced since we loaded it
			continue
		}
		defer func() { l.closed(g.leave()) }()
		return do(g.Engine)
	}
}

// generation is one opened directory and how many use it: its look-ups, and
// Live while it is the present one. Who leaves last closes it.
type generation struct {
	*Engine
	users atomic.Int64
}

func newGeneration(d *directory.Directory, o Options) *generation {
	g := &generation{Engine: New(d, o)}
	g.users.Store(1)
	return g
}

// enter reports whether the directory is open, and keeps it so until leave.
func (g *generation) enter() bool {
	for {
		n := g.users.Load()
		if n == 0 {
			return false
		}
		if g.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (g *generation) leave() error {
	if g.users.Add(-1) > 0 || g.directory == nil {
		return nil
	}
	return g.directory.Close()
}
