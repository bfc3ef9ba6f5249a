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

// Live is an Engine that follows the imports into a directory. Each look-up uses one version
// of the data, the newest.
type Live struct {
	dir     string // "" for an engine without a directory
	options Options
	log     *slog.Logger

	present atomic.Pointer[generation] // nil when closed
	mu      sync.Mutex                 // guards the fields below, and changes of present
	told    string                     // the last logged problem
}

var (
	_ resolution.Resolver = (*Live)(nil)
	_ resolution.Searcher = (*Live)(nil)
)

// pollInterval is how often Run checks for an import.
const pollInterval = time.Second

// errClosed is the error after Close.
var errClosed = errors.Join(resolution.ErrUnavailable, errors.New("the reference data is closed"))

// Follow opens the directory in dir, as directory.Open does. An empty dir gives an engine
// without a directory. Run follows imports. Close the Live after use.
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

// Run checks every second whether an import has replaced the directory, until ctx ends. If
// the new directory cannot be opened, Run logs that once and keeps the old one.
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

// refresh opens a newer directory, if there is one.
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
			l.log.Error("the new reference data cannot be opened, the one before stays", "error", err)
		}
		return
	}
	l.told = ""
	l.present.Store(newGeneration(d, l.options))
	l.log.Info("directory replaced by an import", "fingerprint", d.Fingerprint())
	l.closed(old.leave())
}

// closed logs an error of closing an old directory.
func (l *Live) closed(err error) {
	if err != nil {
		l.log.Warn("close the reference data before", "error", err)
	}
}

// Close refuses later look-ups with resolution.ErrUnavailable. The directory is closed after
// the last running look-up.
func (l *Live) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.present.Swap(nil); old != nil {
		return old.leave()
	}
	return nil
}

// Fingerprint returns that of the present directory; "" without one.
func (l *Live) Fingerprint() (f string) {
	l.with(func(e *Engine) error {
		if e.directory != nil {
			f = e.directory.Fingerprint()
		}
		return nil
	})
	return f
}

// errNoDirectory is the answer to what needs a directory.
var errNoDirectory = errors.Join(resolution.ErrUnavailable, errors.New("there is no directory"))

// Offers returns an error if an operation can never be answered: without a directory only
// emails can.
func (l *Live) Offers(o resolution.Operation) error {
	if l.dir == "" && o.Identifier() != resolution.Email {
		return errNoDirectory
	}
	return nil
}

// NewBatch returns memory for the look-ups of an operation on one record. Each use of it has
// the present version of the data.
func (l *Live) NewBatch(op resolution.Operation) resolution.Batch {
	return &liveBatch{live: l, operation: op}
}

// liveBatch is a batch of the engine that was the present one when it was used last.
type liveBatch struct {
	live      *Live
	operation resolution.Operation
	engine    *Engine
	batch     resolution.Batch
}

// Resolve answers keys; see resolution.Batch.
func (b *liveBatch) Resolve(ctx context.Context, of resolution.Questions, limit int, to *resolution.Answers) (n int, err error) {
	err = b.live.with(func(e *Engine) error {
		if b.engine != e {
			b.engine, b.batch = e, e.NewBatch(b.operation)
		}
		n, err = b.batch.Resolve(ctx, of, limit, to)
		return err
	})
	return n, err
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
		if !g.enter() { // it was replaced meanwhile
			continue
		}
		defer func() { l.closed(g.leave()) }()
		return do(g.Engine)
	}
}

// generation is an open directory with the number of its users: look-ups, and Live while it
// is the present one. The last user closes it.
type generation struct {
	*Engine
	users atomic.Int64
}

func newGeneration(d *directory.Directory, o Options) *generation {
	g := &generation{Engine: New(d, o)}
	g.users.Store(1)
	return g
}

// enter keeps the directory open until leave. It returns false if it is closed already.
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
