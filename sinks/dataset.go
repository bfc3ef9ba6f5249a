// Package sinks writes datasets: Parquet parts, rejects, manifest. A dataset
// is published file by file, each whole or not at all, and _SUCCESS last: a
// reader that waits for _SUCCESS never sees half of one.
package sinks

import (
	"errors"
	"fmt"
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
)

// ManifestName is the file that says what a dataset holds.
const ManifestName = "_manifest.json"

const (
	successName   = "_SUCCESS"
	rejectsFolder = "_rejects"
)

// partName is the only form of name a part or its rejects have.
var partName = regexp.MustCompile(`^part-\d{5,}\.parquet$`)

// ErrForeign says that the output folder holds files no dataset has.
var ErrForeign = errors.New("folder holds other files")

// ErrCorrupt says that a file of the dataset is not what was recorded.
var ErrCorrupt = errors.New("not as it was recorded")

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
	if err := d.refuseForeign(); err != nil {
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

// files lists what is in the folder by name relative to it: the dataset's own
// files, those under construction included, and everything else.
func (d *Dataset) files() (own, foreign []string, err error) {
	for _, folder := range []string{"", rejectsFolder} {
		entries, err := os.ReadDir(filepath.Join(d.dir, folder))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		for _, e := range entries {
			name := filepath.Join(folder, e.Name())
			switch {
			case name == rejectsFolder && e.IsDir():
			case e.Type().IsRegular() && isDatasetFile(folder, e.Name()):
				own = append(own, name)
			default:
				foreign = append(foreign, name)
			}
		}
	}
	return own, foreign, nil
}

// refuseForeign keeps a run from mixing its files with somebody else's. It is
// asked before a run writes; what comes into the folder later is left alone.
func (d *Dataset) refuseForeign() error {
	_, foreign, err := d.files()
	if err != nil || len(foreign) == 0 {
		return err
	}
	more := ""
	if len(foreign) > 3 {
		foreign, more = foreign[:3], " and more"
	}
	return fmt.Errorf("%s: %w (%s%s); choose an empty or new folder", d.dir, ErrForeign, strings.Join(foreign, ", "), more)
}

// isDatasetFile reports whether a file of a dataset, under construction or
// not, has this name in this folder.
func isDatasetFile(folder, name string) bool {
	if atomicfile.IsTemp(name) {
		name = atomicfile.FinalName(name)
	}
	return partName.MatchString(name) || folder == "" && (name == ManifestName || name == successName || isReport(name))
}

// Empty reports whether the folder holds no published file; a report alone is
// none.
func (d *Dataset) Empty() (bool, error) {
	names, _, err := d.files()
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(names, func(n string) bool { return !atomicfile.IsTemp(filepath.Base(n)) && !isReport(n) }), nil
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

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
