package directory

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/resolution"
)

// keepRetired is how long replaced searches are kept: the 24 hours for which
// a search finds the same leads again, and an hour for who is late.
const keepRetired = 25 * time.Hour

// retired is a file of searches that an import has replaced.
type retired struct {
	entry
	Retired time.Time `json:"retired"` // UTC, when it was replaced
}

// searchFormat ends the names of files of searches. The format before it was
// SQLite's, which keyword searches cannot be answered from.
const searchFormat = "columns"

func (e entry) searchable() bool { return strings.HasSuffix(e.File, "."+searchFormat) }

// edition names the data of an entry: the same for the same rows, whoever
// imported them and when.
func (e entry) edition() string { return e.Content[:min(32, len(e.Content))] }

// noEdition is the edition of a directory without searches.
const noEdition = "none"

// retire keeps the searches of the manifest before, of the same directory, if m
// has others, and lets those go that have been kept for long enough.
func (m *manifest) retire(before manifest, now time.Time) {
	kept := slices.Clone(before.Retired)
	present, replaced := m.Kinds[Searches], before.Kinds[Searches]
	if replaced.searchable() && replaced.File != present.File {
		kept = append(kept, retired{replaced, now.UTC()})
	}
	seen := map[string]bool{present.edition(): true}
	m.Retired = nil
	for _, r := range slices.Backward(kept) { // of two of one edition the later
		if now.Sub(r.Retired) <= keepRetired && !seen[r.edition()] {
			seen[r.edition()] = true
			m.Retired = append(m.Retired, r)
		}
	}
	slices.Reverse(m.Retired)
}

// Edition names the present searches: the same text for the same searches, in
// any directory.
func (d *Directory) Edition() string {
	return cmp.Or(d.manifest.Kinds[Searches].edition(), noEdition)
}

// errOldSearches says what to do about searches in the format of before.
var errOldSearches = fmt.Errorf("%w: the searches were imported by an earlier program: import the searches again", resolution.ErrUnavailable)

// edition gives the searches an edition names, nil when there are none in it.
func (d *Directory) edition(name string) (*searchFile, error) {
	switch name {
	case noEdition:
		return nil, nil
	case "", d.Edition():
		if e, ok := d.manifest.Kinds[Searches]; ok && !e.searchable() {
			return nil, errOldSearches
		}
		return d.searches, nil
	}
	return d.retired.open(d.dir, d.manifest.Retired, name)
}

// retiredFiles are opened when they are first asked for.
type retiredFiles struct {
	mu    sync.Mutex
	files map[string]*searchFile
}

func (r *retiredFiles) open(dir string, kept []retired, name string) (*searchFile, error) {
	i := slices.IndexFunc(kept, func(e retired) bool { return e.edition() == name })
	if i < 0 {
		return nil, resolution.ErrNoEdition
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.files[name]; f != nil {
		return f, nil
	}
	f, err := openSearches(filepath.Join(dir, kept[i].File))
	if errors.Is(err, fs.ErrNotExist) { // an import since we were opened let it go
		return nil, resolution.ErrNoEdition
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", resolution.ErrUnavailable, err)
	}
	if r.files == nil {
		r.files = map[string]*searchFile{}
	}
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
