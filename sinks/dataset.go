// Package sinks writes datasets: Parquet parts, rejects, manifest. A dataset
// is published file by file, each whole or not at all, and _SUCCESS last: a
// reader that waits for _SUCCESS never sees half of one.
package sinks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/objects"
)

// ManifestName is the file that says what a dataset holds.
const ManifestName = "_manifest.json"

const (
	successName   = "_SUCCESS"
	rejectsFolder = "_rejects"
)

// partName is the only form of name a part or its rejects have.
var partName = regexp.MustCompile(`^part-\d{5,}\.parquet$`)

// partitionFolder is the form of a folder of the rows with one value of a
// column.
var partitionFolder = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*=[^/]+$`)

// ErrForeign says that the output folder holds files no dataset has.
var ErrForeign = errors.New("folder holds other files")

// ErrCorrupt says that a file of the dataset is not what was recorded.
var ErrCorrupt = errors.New("not as it was recorded")

// Dataset is an output folder, held by this process alone until Close. It is
// local, or a prefix of keys on S3.
type Dataset struct {
	place place
	pages pagePool
}

// Options are what a dataset on S3 takes. The zero value does for local
// folders.
type Options struct {
	Objects *objects.Store // nil refuses s3:// URIs
	// StateDir keeps parts under construction, and who holds which dataset.
	StateDir string
	// Look says that nothing will be written: nothing is locked on S3.
	Look bool
}

// Open makes the folder if need be and takes hold of it. Another process
// working there is filelock.ErrLocked; files that belong to no dataset are
// ErrForeign, and none of them is touched.
func Open(ctx context.Context, uri string, o Options) (*Dataset, error) {
	p, err := openPlace(ctx, uri, o)
	if err != nil {
		return nil, err
	}
	d := &Dataset{place: p}
	if err := d.refuseForeign(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return d, nil
}

func openPlace(ctx context.Context, uri string, o Options) (place, error) {
	if objects.Is(uri) {
		return openBucket(ctx, uri, o)
	}
	return openFolder(uri)
}

// readablePlace is a place that nothing is written to.
func readablePlace(ctx context.Context, uri string, o Options) (place, error) {
	if objects.Is(uri) {
		return openBucket(ctx, uri, o)
	}
	return &folder{dir: uri}, nil
}

// Close lets go of the folder. What Open made and nothing was written to goes
// again: a run that was refused leaves nothing behind.
func (d *Dataset) Close() error { return d.place.close() }

// Dir is the folder as it was given to Open; of one on S3, its URI in one
// form.
func (d *Dataset) Dir() string { return d.place.uri() }

// refuseForeign keeps a run from mixing its files with somebody else's. It is
// asked before a run writes; what comes into the folder later is left alone.
func (d *Dataset) refuseForeign() error {
	_, foreign, err := d.place.files()
	if err != nil || len(foreign) == 0 {
		return err
	}
	more := ""
	if len(foreign) > 3 {
		foreign, more = foreign[:3], " and more"
	}
	return fmt.Errorf("%s: %w (%s%s); choose an empty or new folder", d.Dir(), ErrForeign, strings.Join(foreign, ", "), more)
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
	names, _, err := d.place.files()
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(names, func(n string) bool {
		return !atomicfile.IsTemp(path.Base(n)) && !isReport(n) && !strings.HasSuffix(n, "/")
	}), nil
}

// Rejects starts the file of the part's lines that are no row.
func (d *Dataset) Rejects(number int, t Table) (*Writer, error) {
	return newWriter(d.place, rejectsFolder+"/"+partFile(number), t, &d.pages, fileBuffer)
}

func partFile(number int) string { return fmt.Sprintf("part-%05d.parquet", number) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
