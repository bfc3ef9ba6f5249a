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

// Edition names the present searches. It is the same for the same searches in any
// directory.
func (d *Directory) Edition() string {
	return cmp.Or(d.manifest.Kinds[Searches].edition(), noEdition)
}

// edition returns the searches of an edition; nil if it has none.
func (d *Directory) edition(name string) (*searches.File, error) {
	switch name {
	case noEdition:
		return nil, nil
	case "", d.Edition():
		return d.searches, nil
	}
	return d.retired.open(d.dir, d.manifest.Retired, name, d.leaveOut)
}

// LeaveOut makes keyword searches skip the leads for which who is true. Call it before the
// first search.
func (d *Directory) LeaveOut(who searches.LeaveOut) {
	d.leaveOut = who
	if d.searches != nil {
		d.searches.LeaveOut = who
	}
}

// FindSearches is searches.File.Find in q.Edition. Without searches it finds nothing.
//
// Errors: resolution.ErrNoEdition, and resolution.ErrUnavailable for a damaged file.
func (d *Directory) FindSearches(ctx context.Context, q resolution.KeywordSearch, skip int64, limit int) (found []searches.Found, total int64, err error) {
	f, err := d.searchable(ctx, q)
	if f == nil || err != nil {
		return nil, 0, err
	}
	return f.Find(ctx, q, skip, limit)
}

// SampleSearches is searches.File.Sample in q.Edition.
func (d *Directory) SampleSearches(ctx context.Context, q resolution.KeywordSearch, most int) (found []searches.Found, total int64, err error) {
	f, err := d.searchable(ctx, q)
	if f == nil || err != nil {
		return nil, 0, err
	}
	return f.Sample(ctx, q, most)
}

// searchable returns the file of the edition of q; nil if it has no searches.
func (d *Directory) searchable(ctx context.Context, q resolution.KeywordSearch) (*searches.File, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return d.edition(q.Edition)
}

// retiredFiles are opened when they are first needed.
type retiredFiles struct {
	mu    sync.Mutex
	files map[string]*searches.File
}

func (r *retiredFiles) open(dir string, kept []retired, name string, leaveOut searches.LeaveOut) (*searches.File, error) {
	i := slices.IndexFunc(kept, func(e retired) bool { return e.edition() == name })
	if i < 0 {
		return nil, resolution.ErrNoEdition
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.files[name]; f != nil {
		return f, nil
	}
	f, err := searches.Open(disk.Dir(dir), kept[i].File)
	if errors.Is(err, fs.ErrNotExist) { // a later import removed it
		return nil, resolution.ErrNoEdition
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", resolution.ErrUnavailable, err)
	}
	if r.files == nil {
		r.files = map[string]*searches.File{}
	}
	f.LeaveOut = leaveOut
	r.files[name] = f
	return f, nil
}

func (r *retiredFiles) Close() error {
	var errs []error
	for _, f := range r.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
