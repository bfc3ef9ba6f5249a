package directory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/searches"
)

// keepRetired is how long replaced searches are kept: 24 hours, for which a search finds
// the same leads again, and an hour more for slow callers.
const keepRetired = 25 * time.Hour

// retired is a file of searches that was replaced.
type retired struct {
	entry
	Retired time.Time `json:"retired"` // UTC, when it was replaced
}

// edition names the data of an entry. It is the same for the same rows in any import.
func (e entry) edition() string { return e.Content[:min(32, len(e.Content))] }

// noEdition is the edition of a directory without searches.
const noEdition = "none"

// retire keeps the searches of the previous manifest of this directory if m has others,
// and drops those that were kept for keepRetired.
func (m *manifest) retire(before manifest, now time.Time) {
	kept := slices.Clone(before.Retired)
	present, replaced := m.Kinds[Searches], before.Kinds[Searches]
	if replaced.columnar() && replaced.File != present.File {
		kept = append(kept, retired{replaced, now.UTC()})
	}
	seen := map[string]bool{present.edition(): true}
	m.Retired = nil
	for _, r := range slices.Backward(kept) { // of the same edition, the later
		if r.columnar() && now.Sub(r.Retired) <= keepRetired && !seen[r.edition()] {
			seen[r.edition()] = true
			m.Retired = append(m.Retired, r)
		}
	}
	slices.Reverse(m.Retired)
}

// Editions are the keyword searches of a directory: the present ones, and those that imports have
// replaced since yesterday.
type Editions struct {
	dir      string
	name     string // of the present ones
	present  *searches.File
	kept     []retired
	leaveOut searches.LeaveOut

	mu    sync.Mutex
	files map[string]*searches.File // of kept, opened when they are first needed
}

// Edition names the present searches. It is the same for the same searches in any
// directory.
func (e *Editions) Edition() string { return cmp.Or(e.name, noEdition) }

// LeaveOut makes searches skip the leads for which who is true. Call it before the first search.
func (e *Editions) LeaveOut(who searches.LeaveOut) {
	e.leaveOut = who
	if e.present != nil {
		e.present.LeaveOut = who
	}
}

// Find is searches.File.Find in q.Edition. Without searches it finds nothing.
//
// Errors: resolution.ErrNoEdition, and resolution.ErrUnavailable for a damaged file.
func (e *Editions) Find(ctx context.Context, q resolution.KeywordSearch, skip int64, limit int) (found []searches.Found, total int64, err error) {
	f, err := e.of(ctx, q)
	if f == nil || err != nil {
		return nil, 0, err
	}
	return f.Find(ctx, q, skip, limit)
}

// Sample is searches.File.Sample in q.Edition.
func (e *Editions) Sample(ctx context.Context, q resolution.KeywordSearch, most int) (found []searches.Found, total int64, err error) {
	f, err := e.of(ctx, q)
	if f == nil || err != nil {
		return nil, 0, err
	}
	return f.Sample(ctx, q, most)
}

// of returns the searches of the edition of q; nil if it has none.
func (e *Editions) of(ctx context.Context, q resolution.KeywordSearch) (*searches.File, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch q.Edition {
	case noEdition:
		return nil, nil
	case "", e.Edition():
		return e.present, nil
	}
	return e.retired(q.Edition)
}

// retired returns the searches of an edition that was replaced.
func (e *Editions) retired(name string) (*searches.File, error) {
	i := slices.IndexFunc(e.kept, func(r retired) bool { return r.edition() == name })
	if i < 0 {
		return nil, resolution.ErrNoEdition
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if f := e.files[name]; f != nil {
		return f, nil
	}
	f, err := searches.Open(disk.Dir(e.dir), e.kept[i].File)
	if errors.Is(err, fs.ErrNotExist) { // a later import removed it
		return nil, resolution.ErrNoEdition
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", resolution.ErrUnavailable, err)
	}
	if e.files == nil {
		e.files = map[string]*searches.File{}
	}
	f.LeaveOut = e.leaveOut
	e.files[name] = f
	return f, nil
}

// close closes the files that were replaced.
func (e *Editions) close() (errs []error) {
	for _, f := range e.files {
		errs = append(errs, f.Close())
	}
	return errs
}
