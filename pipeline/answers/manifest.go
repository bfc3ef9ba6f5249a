package answers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/internal/store"
)

// storeFormat is the number of the format of a store: of manifests, of all that they name, and of
// the log. It grows with every change of any of them. The numbers below are taken.
const storeFormat = 6

// ExportFirst is the advice about a state in another format.
const ExportFirst = "with the program that wrote it, finish its runs and write its answers to a file with leadetl answers export; " +
	"then read them into a new state with leadetl answers import"

// RunsFormat is the number of the format of what a state keeps beside answers: journals and the
// files beside them, runs in windows, and nights. It grows with every change of any of them.
// The numbers below are taken.
const RunsFormat = 3

// MarkedFolders are the folders of a state that have this format.
var MarkedFolders = []string{"runs", "nights"}

// StateMark is the mark of a state, but for how it is read and written.
func StateMark(where string) format.Mark {
	return format.Mark{Where: where, Reads: RunsFormat, Advice: ExportFirst}
}

// manifest says which files of a store count. The one with the highest number does. It is never
// changed.
type manifest struct {
	Format    int       `json:"format"`
	Number    int64     `json:"number"` // 0: there is no manifest yet
	CreatedAt time.Time `json:"created_at"`
	Writer    string    `json:"writer,omitempty"` // that of Place
	// Files are those with answers, older generations first. Files of one generation share no
	// question, and are in the order of their hashes.
	Files []fileRecord `json:"files"`
	// Calls has all calls without an answer; nil without one.
	Calls *fileRecord `json:"calls,omitempty"`
	// LastFile is the number of the last file that was named, LastGeneration that of the last
	// generation.
	LastFile       int64 `json:"last_file"`
	LastGeneration int64 `json:"last_generation"`
	// Log is where the log goes on behind the changes that are in files.
	Log logState `json:"log"`
	// Runs and Days are what was paid; kept when answers are forgotten.
	Runs []runTotal    `json:"runs"`
	Days []DaySpending `json:"days"`
}

// logState is where a log goes on. While it is open, a file of the log with that number exists.
type logState struct {
	Number int64  `json:"number"` // of the next record
	Before uint32 `json:"before"` // the checksum of the last one
	Open   bool   `json:"open"`
}

func (l logState) position() appendlog.Position {
	return appendlog.Position{Number: l.Number, Before: l.Before}
}

// fileRecord is what a manifest says about a file.
type fileRecord struct {
	Name       string           `json:"name"`
	Generation int64            `json:"generation,omitempty"`
	First      Hash             `json:"first"`
	Last       Hash             `json:"last"`
	Rows       int64            `json:"rows"`
	Bytes      int64            `json:"bytes"`
	Checksum   uint32           `json:"checksum"`         // of keyed.File
	Scopes     []tallyOf        `json:"scopes,omitempty"` // of answers
	Runs       map[string]int64 `json:"runs,omitempty"`   // calls of each
}

// tallyOf counts the answers of a scope in a file.
type tallyOf struct {
	Scope
	Outcomes map[Outcome]int64 `json:"outcomes"`
	Credits  int64             `json:"credits"`
}

// MarshalText is the hash in hex.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText has written.
func (h *Hash) UnmarshalText(text []byte) (err error) {
	*h, err = ParseHash(string(text))
	return err
}

// A manifest is there twice, so that no damage of one sector makes it unreadable.
const (
	manifestPrefix = "manifest-"
	manifestSuffix = ".json"
	copySuffix     = ".copy"
)

func manifestName(number int64) string {
	return fmt.Sprintf("%s%010d%s", manifestPrefix, number, manifestSuffix)
}

func copyName(number int64) string {
	return fmt.Sprintf("%s%010d%s", manifestPrefix, number, copySuffix)
}

// manifestNumber returns the number of a manifest or its copy by its name.
func manifestNumber(name string) (number int64, is bool) {
	digits := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(name, manifestPrefix), manifestSuffix), copySuffix)
	number, err := strconv.ParseInt(digits, 10, 64)
	return number, err == nil && (name == manifestName(number) || name == copyName(number))
}

// dataName is the name of a file of answers or calls.
func (p Place) dataName(kind string, number int64) string {
	if p.writer != "" {
		kind += "-" + p.writer
	}
	return fmt.Sprintf("%s-%010d%s", kind, number, dataSuffix)
}

const dataSuffix = ".keyed"

// clone returns a copy that is published after m.
func (m *manifest) clone() *manifest {
	next := *m
	next.Format, next.Number, next.CreatedAt = storeFormat, m.Number+1, time.Now().UTC().Truncate(time.Millisecond)
	next.Files, next.Runs, next.Days = slices.Clone(m.Files), slices.Clone(m.Runs), slices.Clone(m.Days)
	return &next
}

// generations returns the files of each generation, older ones first.
func (m *manifest) generations() (all [][]fileRecord) {
	for i, f := range m.Files {
		if i == 0 || m.Files[i-1].Generation != f.Generation {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], f)
	}
	return all
}

// names reports whether the manifest names a file.
func (m *manifest) names(name string) bool {
	return m.Calls != nil && m.Calls.Name == name || slices.ContainsFunc(m.Files, func(f fileRecord) bool { return f.Name == name })
}

// setRun sets the total of a run.
func (m *manifest) setRun(r runTotal) {
	i := slices.IndexFunc(m.Runs, func(other runTotal) bool { return other.Name == r.Name })
	if i < 0 {
		m.Runs = append(m.Runs, r)
	} else {
		m.Runs[i] = r
	}
}

// addDay adds what was paid on a day.
func (m *manifest) addDay(of dayOf, more Spending) {
	m.Days = addDay(m.Days, DaySpending{of.Day, of.Scope, more})
}

// addDay adds to a list in order.
func addDay(days []DaySpending, more DaySpending) []DaySpending {
	i, found := slices.BinarySearchFunc(days, more, DaySpending.Compare)
	if !found {
		return slices.Insert(days, i, more)
	}
	days[i].Spending = days[i].Plus(more.Spending)
	return days
}

// add adds what a generation of the log has changed, but for its answers and calls.
func (m *manifest) add(g *generation) {
	for _, r := range g.runs {
		m.setRun(r)
	}
	for day, spent := range g.days {
		m.addDay(day, spent)
	}
	slices.SortFunc(m.Runs, func(a, b runTotal) int { return strings.Compare(a.Name, b.Name) })
	m.Log.Number, m.Log.Before = g.end.Number, g.end.Before
}

// addGeneration adds the files of a new generation.
func (m *manifest) addGeneration(files []fileRecord) {
	if len(files) == 0 {
		return
	}
	m.LastGeneration++
	for i := range files {
		files[i].Generation = m.LastGeneration
	}
	m.Files = append(m.Files, files...)
}

// listing is what is in a place, but for the log.
type listing struct {
	manifests []int64 // in order
	data      []store.Info
	left      []store.Info // temporary files that a kill has left
	log       bool         // there is a log
	older     string       // the file or folder of a store in an older format
}

// olderNames are files and folders of stores in older formats.
var olderNames = []string{"answers.sqlite", "v/"}

func (p Place) list(ctx context.Context) (l listing, err error) {
	entries, err := p.Entries(ctx, "")
	if store.IsMissing(err) {
		return l, nil
	}
	for _, info := range entries {
		manifest, isManifest := manifestNumber(info.Name)
		_, isLog := logNumber(info.Name)
		switch {
		case slices.Contains(olderNames, info.Name):
			l.older = info.Name
		case isManifest:
			l.manifests = append(l.manifests, manifest)
		case isLog || info.Name == logFolder+"/":
			l.log = true
		case strings.HasSuffix(info.Name, dataSuffix):
			l.data = append(l.data, info)
		case store.IsUnfinished(info.Name):
			l.left = append(l.left, info)
		}
	}
	slices.Sort(l.manifests)
	l.manifests = slices.Compact(l.manifests)
	return l, err
}

// any reports whether a store was begun in the place.
func (l listing) any() bool {
	return l.older != "" || l.log || len(l.manifests)+len(l.data) > 0
}

// newest reads the newest manifest of a place: ErrNone if no store was begun there. A list may lack the newest
// ones, so it looks for those behind the last.
func newest(ctx context.Context, p Place) (m *manifest, err error) {
	var l listing
	err = p.Await(ctx, manifestPrefix, store.Always, func() error {
		if l, err = p.list(ctx); err != nil {
			return err
		}
		if len(l.manifests) == 0 {
			m, err = readManifest(ctx, p, 1)
			if store.IsMissing(err) && (!l.any() || p.isShared() && len(l.data) == 0) { // a process that was killed may have begun the log
				err = fmt.Errorf("%s: %w", p, ErrNone)
			}
		} else {
			m, err = readManifest(ctx, p, l.manifests[len(l.manifests)-1])
		}
		for err == nil {
			var next *manifest
			if next, err = readManifest(ctx, p, m.Number+1); err == nil {
				m = next
			}
		}
		if m != nil && store.IsMissing(err) {
			return nil
		}
		return err
	})
	switch {
	case l.older != "":
		return nil, &format.Error{Where: p.Path(l.older), Found: format.Unknown, Reads: storeFormat, Advice: ExportFirst}
	case store.IsMissing(err) && !errors.Is(err, appendlog.ErrDamaged):
		err = fmt.Errorf("stored answers: %w", appendlog.Missing(p.Path(manifestName(1))))
	}
	if err != nil {
		return nil, fault(err)
	}
	return m, nil
}

// readManifest reads a manifest, or its copy if it is missing or damaged.
func readManifest(ctx context.Context, p Place, number int64) (*manifest, error) {
	m, err := readManifestFile(ctx, p, manifestName(number))
	if store.IsMissing(err) || errors.Is(err, appendlog.ErrDamaged) {
		again, other := readManifestFile(ctx, p, copyName(number))
		if other == nil || store.IsMissing(err) {
			return again, other
		}
	}
	return m, err
}

func readManifestFile(ctx context.Context, p Place, name string) (*manifest, error) {
	text, err := store.ReadSealed(ctx, p, name)
	if err != nil {
		return nil, fmt.Errorf("stored answers: %w", err)
	}
	m := &manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("stored answers: %s: %w: %w", p.Path(name), appendlog.ErrDamaged, err)
	}
	return m, format.Check(p.Path(name), m.Format, storeFormat, ExportFirst)
}

// write makes a manifest the newest one. The copy is there first: who creates it is the only one that writes this
// number. If this process has tried before, and cannot know how that ended, the manifest gets the next number.
func (m *manifest) write(ctx context.Context, p Place) error {
	for {
		text, err := json.Marshal(m)
		if err == nil {
			err = store.CreateSealed(ctx, p, copyName(m.Number), text)
		}
		if err == nil {
			return store.CreateSealed(ctx, p, manifestName(m.Number), text)
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		other, err := readManifestFile(ctx, p, copyName(m.Number))
		if err != nil {
			return err
		}
		if other.Writer != m.Writer {
			return fmt.Errorf("%s: %w", p, store.ErrFenced)
		}
		m.Number++
	}
}

// published are the files of a place that count, and those that are made to count.
type published struct {
	in         Place
	options    Options
	publishing sync.Mutex // held while the manifest changes
	manifest   *manifest
	filesMu    sync.RWMutex    // held for writing while files is replaced
	files      *fileSet        // of the manifest
	lastFile   int64           // the number of the last file that was named; under publishing
	making     map[string]bool // files that are made and in no manifest yet; under publishing
	merging    chan struct{}   // closed at the end of a merge; nil before the first
}

// readNewest reads the newest manifest, if there is one.
func (s *published) readNewest(ctx context.Context) error {
	m, err := newest(ctx, s.in)
	switch {
	case err == nil:
		s.manifest = m
	case !errors.Is(err, ErrNone):
		return err
	}
	return nil
}

// acquire returns the files that count now. The caller releases them.
func (s *published) acquire() (*fileSet, error) {
	s.filesMu.RLock()
	defer s.filesMu.RUnlock()
	if s.files == nil {
		return nil, errClosed
	}
	s.files.users.Add(1)
	return s.files, nil
}

// newest returns the manifest that counts now.
func (s *published) newest() *manifest {
	s.filesMu.RLock()
	defer s.filesMu.RUnlock()
	return s.manifest
}

// nameData reserves the name of a file of answers or calls that is made.
func (s *published) nameData(kind string) string {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	s.lastFile = max(s.lastFile, s.manifest.LastFile) + 1
	name := s.in.dataName(kind, s.lastFile)
	s.making[name] = true
	return name
}

// publish makes a manifest with a change to it the newest one. made are files that were made for
// it. Until a manifest has been published, the files of the one before it stay.
func (s *published) publish(ctx context.Context, made []fileRecord, change func(next *manifest) error) error {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	defer func() {
		for _, f := range made {
			delete(s.making, f.Name)
		}
	}()
	next := s.manifest.clone()
	next.Writer = s.in.writer
	if err := change(next); err != nil {
		return err
	}
	next.LastFile = max(s.lastFile, next.LastFile)
	opened, err := openFiles(ctx, s.in, next, s.files)
	if err != nil {
		return err
	}
	if err := next.write(ctx, s.in); err != nil {
		return errors.Join(fault(err), opened.release())
	}
	s.filesMu.Lock()
	before := s.files
	s.manifest, s.files = next, opened
	s.filesMu.Unlock()
	_ = before.release() // closing what was read cannot lose anything
	if err := s.sweep(ctx, keptUnnamed); errors.Is(err, store.ErrFenced) {
		return err
	}
	return nil // the next sweep removes what stays
}

// publishWith is publish of files of answers that were made, with the open calls as they are behind a
// generation.
func (s *published) publishWith(ctx context.Context, files []fileRecord, behind *generation, change func(next *manifest)) error {
	calls, err := s.writeCalls(ctx, behind)
	if err != nil {
		s.unmake(files)
		return err
	}
	made := slices.Clone(files)
	if calls != nil {
		made = append(made, *calls)
	}
	return s.publish(ctx, made, func(next *manifest) error {
		next.Calls = calls
		change(next)
		return nil
	})
}

// keptManifests is how many manifests stay in a shared place: who began to read earlier may need one, and a
// list that is late must not make a place look empty.
const keptManifests = 100

// sweep removes manifests and files that do not count any more, and what a kill has left; in a shared place, only
// those that are older than kept. The error is store.ErrFenced if another process has published a newer
// manifest. The caller holds publishing.
func (s *published) sweep(ctx context.Context, kept time.Duration) error {
	l, err := s.in.list(ctx)
	if err != nil {
		return err
	}
	most, since := int64(0), time.Time{} // files that are newer stay; zero: none do, whatever the clock of the place says
	if s.in.isShared() {
		if n := len(l.manifests); n > 0 && l.manifests[n-1] > s.manifest.Number {
			return fmt.Errorf("%s: %w", s.in.Path(manifestName(l.manifests[n-1])), store.ErrFenced)
		}
		if kept > 0 {
			most, since = keptManifests, time.Now().Add(-kept)
		}
	}
	var gone []string
	for _, info := range slices.Concat(l.left, l.data) {
		final := info.Name
		if store.IsUnfinished(info.Name) {
			final = atomicfile.FinalName(info.Name)
		}
		if strings.HasSuffix(final, dataSuffix) && !s.making[final] && !s.manifest.names(info.Name) && (since.IsZero() || !info.ModTime.After(since)) {
			gone = append(gone, info.Name)
		}
	}
	for _, number := range l.manifests {
		if number < s.manifest.Number-most {
			gone = append(gone, manifestName(number), copyName(number))
		}
	}
	return s.in.Remove(ctx, gone...)
}
