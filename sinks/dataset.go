// Package sinks writes datasets: Parquet parts, rejects, manifest. A dataset
// is published file by file, each whole or not at all, and _SUCCESS last: a
// reader that waits for _SUCCESS never sees half of one.
package sinks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/freshdir"
	"github.com/leadetl/leadetl/internal/hashlanes"
)

const (
	manifestName  = "_manifest.json"
	successName   = "_SUCCESS"
	rejectsFolder = "_rejects"
)

// partName is the only form of name a part or its rejects have.
var partName = regexp.MustCompile(`^part-\d{5,}\.parquet$`)

// ErrForeign says that the output folder holds files no dataset has.
var ErrForeign = errors.New("folder holds other files")

// ErrCorrupt says that a file of the dataset is not what was recorded.
var ErrCorrupt = errors.New("differs from what was recorded")

// Dataset is an output folder, held by this process alone until Close.
type Dataset struct {
	dir   string
	made  freshdir.Made
	lock  *filelock.Lock
	pages pagePool
}

// Open makes the folder if need be and takes hold of it. Another process
// working there is filelock.ErrLocked; files that belong to no dataset are
// ErrForeign, and none of them is touched.
func Open(dir string) (*Dataset, error) {
	if strings.Contains(dir, "://") {
		return nil, fmt.Errorf("%s: this version writes to local folders only", dir)
	}
	made, err := freshdir.Make(dir, 0o755)
	if err != nil {
		return nil, err
	}
	lock, err := filelock.Folder(dir)
	if err != nil {
		return nil, err
	}
	d := &Dataset{dir: dir, made: made, lock: lock}
	if _, err := d.files(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

// Close lets go of the folder. What Open made and nothing was written to goes
// again: a run that was refused leaves nothing behind.
func (d *Dataset) Close() error {
	d.made.RemoveEmpty()
	return d.lock.Close()
}

// Dir is the folder as it was given to Open.
func (d *Dataset) Dir() string { return d.dir }

// files lists the dataset's files by name relative to the folder, temporary
// ones included.
func (d *Dataset) files() ([]string, error) {
	var names, foreign []string
	for _, folder := range []string{"", rejectsFolder} {
		entries, err := os.ReadDir(filepath.Join(d.dir, folder))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			name := filepath.Join(folder, e.Name())
			switch {
			case name == rejectsFolder && e.IsDir():
			case e.Type().IsRegular() && isDatasetFile(folder, e.Name()):
				names = append(names, name)
			default:
				foreign = append(foreign, name)
			}
		}
	}
	if len(foreign) > 0 {
		more := ""
		if len(foreign) > 3 {
			foreign, more = foreign[:3], " and more"
		}
		return nil, fmt.Errorf("%s: %w (%s%s); choose an empty or new folder", d.dir, ErrForeign, strings.Join(foreign, ", "), more)
	}
	return names, nil
}

// isDatasetFile reports whether a file of a dataset, under construction or
// not, has this name in this folder.
func isDatasetFile(folder, name string) bool {
	if atomicfile.IsTemp(name) {
		name = atomicfile.FinalName(name)
	}
	return partName.MatchString(name) || folder == "" && (name == manifestName || name == successName)
}

// Empty reports whether the folder holds no published file.
func (d *Dataset) Empty() (bool, error) {
	names, err := d.files()
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(names, func(n string) bool { return !atomicfile.IsTemp(filepath.Base(n)) }), nil
}

// Clear removes every file of the dataset, _SUCCESS first, so that no reader
// takes what remains for a whole.
func (d *Dataset) Clear() error {
	names, err := d.files()
	if err != nil {
		return err
	}
	slices.SortFunc(names, func(a, b string) int { return clearRank(a) - clearRank(b) })
	for _, name := range names {
		if err := os.Remove(filepath.Join(d.dir, name)); err != nil {
			return err
		}
		if clearRank(name) < 2 {
			if err := atomicfile.SyncDir(d.dir); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(filepath.Join(d.dir, rejectsFolder)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return atomicfile.SyncDir(d.dir)
}

func clearRank(name string) int {
	switch name {
	case successName:
		return 0
	case manifestName:
		return 1
	}
	return 2
}

// Part starts the Parquet file of the part with this number.
func (d *Dataset) Part(number int, t Table) (*Writer, error) {
	name := partFile(number)
	return newWriter(filepath.Join(d.dir, name), name, t, &d.pages)
}

// Rejects starts the file of the part's lines that are no row.
func (d *Dataset) Rejects(number int, t Table) (*Writer, error) {
	if err := os.MkdirAll(filepath.Join(d.dir, rejectsFolder), 0o755); err != nil {
		return nil, err
	}
	if err := atomicfile.SyncDir(d.dir); err != nil {
		return nil, err
	}
	name := rejectsFolder + "/" + partFile(number)
	return newWriter(filepath.Join(d.dir, name), name, t, &d.pages)
}

func partFile(number int) string { return fmt.Sprintf("part-%05d.parquet", number) }

// Check reports whether f is still as it was recorded. A file of the same size
// and modification time is trusted; any other is read and its checksum
// compared. What differs, is gone, or cannot be told for want of a checksum is
// ErrCorrupt.
func (d *Dataset) Check(f File) error {
	path := filepath.Join(d.dir, f.Name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is missing: %w", f.Name, ErrCorrupt)
	}
	if err != nil {
		return err
	}
	if info.Size() != f.Bytes {
		return fmt.Errorf("%s has %d bytes, not %d: %w", f.Name, info.Size(), f.Bytes, ErrCorrupt)
	}
	if modified(info).Equal(f.ModifiedAt) {
		return nil
	}
	sum, err := fileSHA256(path)
	if err != nil {
		return err
	}
	if sum != f.SHA256 {
		return fmt.Errorf("%s has another checksum: %w", f.Name, ErrCorrupt)
	}
	return nil
}

// CheckPart checks both files of a part.
func (d *Dataset) CheckPart(p Part) error {
	if err := d.Check(p.File); err != nil {
		return err
	}
	if p.Rejects != nil {
		return d.Check(*p.Rejects)
	}
	return nil
}

func fileSHA256(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// SumLanes is how many files Sum reads side by side at the best.
const SumLanes = 8

// Sum takes the SHA-256 of published files that have none yet, reading them
// back side by side: together they cost a third of what they cost one by one
// on a CPU without SHA instructions (package hashlanes).
func (d *Dataset) Sum(ctx context.Context, files []*File) (err error) {
	readers := make([]io.Reader, len(files))
	for i, f := range files {
		file, err := os.Open(filepath.Join(d.dir, f.Name))
		if err != nil {
			return err
		}
		defer file.Close()
		readers[i] = file
	}
	sums, err := hashlanes.SHA256Streams(ctx, readers)
	if err != nil {
		return fmt.Errorf("checksums of %s: %w", d.dir, err)
	}
	for i, f := range files {
		f.SHA256 = hex.EncodeToString(sums[i][:])
	}
	return nil
}

// Manifest reads the manifest of a finished dataset; nil when the folder
// holds none, or holds one without _SUCCESS.
func (d *Dataset) Manifest() (*Manifest, error) {
	if _, err := os.Stat(filepath.Join(d.dir, successName)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(d.dir, manifestName))
	if err != nil {
		return nil, err
	}
	m := new(Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(d.dir, manifestName), err)
	}
	return m, nil
}

// Publish removes what is not of the manifest (Tidy), writes the manifest and,
// last of all, _SUCCESS.
func (d *Dataset) Publish(m *Manifest) error {
	if err := m.Reconcile(); err != nil {
		return fmt.Errorf("totals do not add up: %w", err)
	}
	if err := d.Tidy(m); err != nil {
		return err
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(d.dir, manifestName), append(data, '\n')); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(d.dir, successName), nil)
}

// Tidy removes the files that are not of the manifest, which a reader of all
// part-*.parquet would take for more rows: parts a killed run left beyond the
// last, temporary files.
func (d *Dataset) Tidy(m *Manifest) error {
	listed := map[string]bool{}
	for _, p := range m.Parts {
		listed[filepath.FromSlash(p.Name)] = true
		if p.Rejects != nil {
			listed[filepath.FromSlash(p.Rejects.Name)] = true
		}
	}
	names, err := d.files()
	if err != nil {
		return err
	}
	for _, name := range names {
		if !listed[name] && clearRank(name) == 2 {
			if err := os.Remove(filepath.Join(d.dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Withdraw makes a finished dataset unfinished: _SUCCESS goes, then the
// manifest. The parts stay.
func (d *Dataset) Withdraw() error {
	for _, name := range []string{successName, manifestName} {
		if err := os.Remove(filepath.Join(d.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := atomicfile.SyncDir(d.dir); err != nil {
			return err
		}
	}
	return nil
}
