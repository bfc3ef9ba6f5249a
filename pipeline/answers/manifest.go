package answers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/format"
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
func dataName(kind string, number int64) string {
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

// listing is what is in the folder of a store.
type listing struct {
	manifests []int64 // in order
	logs      []int64 // in order
	data      []string
	left      []string // temporary files that a kill has left
	older     string   // the file of a store in an older format
}

// olderName is the file of a store in an older format.
const olderName = "answers.sqlite"

func list(in disk.Folder) (l listing, err error) {
	names, err := disk.Names(in)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	for _, name := range names {
		manifest, isManifest := manifestNumber(name)
		log, isLog := logNumber(name)
		switch {
		case name == olderName:
			l.older = name
		case isManifest:
			l.manifests = append(l.manifests, manifest)
		case isLog:
			l.logs = append(l.logs, log)
		case strings.HasSuffix(name, dataSuffix):
			l.data = append(l.data, name)
		case atomicfile.IsTemp(name):
			l.left = append(l.left, name)
		}
	}
	slices.Sort(l.manifests)
	l.manifests = slices.Compact(l.manifests)
	slices.Sort(l.logs)
	return l, err
}

// any reports whether a store was begun in the folder.
func (l listing) any() bool {
	return l.older != "" || len(l.manifests)+len(l.logs)+len(l.data) > 0
}

// newest reads the newest manifest in a folder: ErrNone if no store was begun there.
func newest(in disk.Folder) (*manifest, error) {
	l, err := list(in)
	if err != nil {
		return nil, fault(err)
	}
	if l.older != "" {
		return nil, &format.Error{Where: in.Path(l.older), Found: format.Unknown, Reads: storeFormat, Advice: ExportFirst}
	}
	if len(l.manifests) == 0 {
		if l.any() {
			return nil, fmt.Errorf("stored answers: %w", appendlog.Missing(in.Path(manifestName(1))))
		}
		return nil, fmt.Errorf("%s: %w", in.Path("."), ErrNone)
	}
	return readManifest(in, l.manifests[len(l.manifests)-1])
}

// readManifest reads a manifest, or its copy if it is damaged.
func readManifest(in disk.Folder, number int64) (*manifest, error) {
	m, err := readManifestIn(in, manifestName(number))
	if errors.Is(err, appendlog.ErrDamaged) {
		again, other := readManifestIn(in, copyName(number))
		if other == nil {
			return again, nil
		}
	}
	return m, err
}

func readManifestIn(in disk.Folder, name string) (*manifest, error) {
	sealed, err := in.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("stored answers: %w", appendlog.Missing(in.Path(name)))
	}
	if err != nil {
		return nil, fault(err)
	}
	m := &manifest{}
	text, err := appendlog.Unseal(name, sealed)
	if err == nil {
		if err = json.Unmarshal(text, m); err != nil {
			err = fmt.Errorf("%w: %w", appendlog.ErrDamaged, err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("stored answers: %s: %w", in.Path(name), err)
	}
	return m, format.Check(in.Path(name), m.Format, storeFormat, ExportFirst)
}

// write makes a manifest the newest one. The copy is there first.
func (m *manifest) write(in disk.Folder) error {
	text, err := json.Marshal(m)
	for _, name := range []string{copyName(m.Number), manifestName(m.Number)} {
		var sealed []byte
		if err == nil {
			sealed, err = appendlog.Seal(name, text)
		}
		if err == nil {
			err = writeSecret(in, name, sealed)
		}
	}
	return err
}

// writeSecret writes a small file that only its owner can read.
func writeSecret(in disk.Folder, name string, content []byte) error {
	f, err := atomicfile.CreateIn(in, name, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(content); err != nil {
		return errors.Join(err, f.Abort())
	}
	return f.Commit()
}
