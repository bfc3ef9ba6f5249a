// Package sinks writes datasets: Parquet parts, rejects and manifest. Each file is
// published whole or not at all, and _SUCCESS last. So a reader that waits for _SUCCESS
// never sees an incomplete dataset.
package sinks

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/sinks/parquet"
	"github.com/leadetl/leadetl/sinks/place"
	"github.com/leadetl/leadetl/sinks/schema"
)

// The types of the files of datasets.
type (
	Column      = schema.Column
	Partition   = schema.Partition
	File        = place.File
	OpenFile    = place.OpenFile
	Options     = place.Options
	Table       = parquet.Table
	Sizer       = parquet.Sizer
	Compression = parquet.Compression
)

// The codecs that every warehouse reads.
const (
	Snappy       = parquet.Snappy
	Zstd         = parquet.Zstd
	Uncompressed = parquet.Uncompressed
)

// The names of files beside the parts.
const (
	ManifestName     = place.ManifestName
	SuccessName      = place.SuccessName
	RejectsFolder    = place.RejectsFolder
	ChangesFolder    = place.ChangesFolder
	SuppressedFolder = place.SuppressedFolder
	AskedFolder      = place.AskedFolder
	ReportName       = place.ReportName
	ReportPageName   = place.ReportPageName
)

// HiddenFolders are the folders of a dataset whose files are not data to readers of it.
var HiddenFolders = place.HiddenFolders

// HasNoRows reports whether this is the name of a file of a dataset that has no rows, such as the manifest.
func HasNoRows(name string) bool {
	return name == ManifestName || name == SuccessName || name == place.ComparisonName || place.IsReport(name)
}

// ErrCorrupt says that a file of the dataset differs from its record.
var ErrCorrupt = place.ErrCorrupt

// LateError says that the store does not show a file of the dataset that was written.
type LateError = place.LateError

// ErrForeign says that the output folder has files that belong to no dataset.
var ErrForeign = errors.New("folder holds other files")

// ErrNested says that the output folder is inside the folder of another dataset, or the
// other way round. Readers of the outer folder would read both.
var ErrNested = errors.New("a dataset cannot lie in the folder of another one")

// ParseCompression returns the codec with a name.
func ParseCompression(name string) (Compression, error) { return parquet.ParseCompression(name) }

// Dataset is an output folder, local or a prefix of keys on S3. This process holds it
// alone until Close.
type Dataset struct {
	Reader
	pages parquet.PagePool
}

// Open locks the folder, and makes it if it is missing. The error is filelock.ErrLocked
// if another process has locked it, ErrForeign for files that belong to no dataset, and
// ErrNested for another dataset above or below. Then Open changes nothing.
func Open(ctx context.Context, uri string, o Options) (*Dataset, error) {
	p, err := place.Open(ctx, uri, o)
	if err != nil {
		return nil, err
	}
	d := &Dataset{Reader: Reader{p}}
	if err = d.refuseEnclosed(); err == nil {
		err = d.refuseForeign()
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return d, nil
}

// Close releases the folder. It removes a folder that Open made if it is still empty, so
// that a refused run leaves nothing.
func (d *Dataset) Close() error { return d.place.Close() }

// Refresh makes the next Check see what other processes have written to a shared
// dataset.
func (d *Dataset) Refresh() { d.place.Refresh() }

// refuseEnclosed keeps a run from writing below another dataset.
func (d *Dataset) refuseEnclosed() error {
	above, err := d.place.Enclosing()
	if err != nil || above == "" {
		return err
	}
	return fmt.Errorf("%s: %w: it lies in the dataset %s; choose a folder outside that", d.Dir(), ErrNested, above)
}

// refuseForeign keeps a run from mixing its files with others. It is called before a run
// writes; files that appear later are left alone.
func (d *Dataset) refuseForeign() error {
	_, foreign, err := d.place.Files()
	if err != nil || len(foreign) == 0 {
		return err
	}
	folders := slices.DeleteFunc(slices.Clone(foreign), func(name string) bool { return isHidden(path.Dir(name)) })
	if inside, err := d.place.Inside(folders); err != nil {
		return err
	} else if inside != "" {
		return fmt.Errorf("%s: %w: it holds the dataset %s; choose a folder beside that", d.Dir(), ErrNested, inside)
	}
	more := ""
	if len(foreign) > 3 {
		foreign, more = foreign[:3], " and more"
	}
	return fmt.Errorf("%s: %w (%s%s); choose an empty or new folder", d.Dir(), ErrForeign, strings.Join(foreign, ", "), more)
}

// Empty reports whether the folder has no published file, except a report.
func (d *Dataset) Empty() (bool, error) {
	names, _, err := d.place.Files()
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(names, func(n string) bool {
		return !atomicfile.IsTemp(path.Base(n)) && !place.IsReport(n) && !strings.HasSuffix(n, "/")
	}), nil
}

// Folders are the folders of partitions that hold files, such as dt=2026-11-20.
func (d *Dataset) Folders() ([]string, error) {
	names, _, err := d.place.Files()
	var folders []string
	for _, name := range names {
		for folder := path.Dir(name); folder != "." && !isHidden(folder); folder = path.Dir(folder) {
			if !slices.Contains(folders, folder) {
				folders = append(folders, folder)
			}
		}
	}
	return folders, err
}

// Nested is ErrNested for a dataset that is not finished, in a folder of this one.
func (d *Dataset) Nested(folder string) error {
	return fmt.Errorf("%s: %w: it holds the unfinished dataset %s; choose a folder beside that, or finish it first", d.Dir(), ErrNested, d.place.Path(folder))
}

func isHidden(folder string) bool { return slices.Contains(HiddenFolders, folder) }

// Beside returns what starts the files in a hidden folder, those beside parts with their numbers; in "" those of a
// comparison.
func (d *Dataset) Beside(folder string) func(number int, t Table) (*Writer, error) {
	return func(number int, t Table) (*Writer, error) {
		return newWriter(d.place, path.Join(folder, partFile(number)), t, &d.pages)
	}
}

// FilePatterns returns patterns of the names of the files with rows that a dataset
// has. partitioned says that rows are partitioned by a column.
func FilePatterns(partitioned bool) []string {
	const part = "part-[0-9][0-9][0-9][0-9][0-9].parquet"
	patterns := []string{part}
	if partitioned {
		patterns[0] = "*=*/" + part
	}
	for _, folder := range HiddenFolders {
		patterns = append(patterns, folder+"/"+part)
	}
	return patterns
}

func partFile(number int) string { return fmt.Sprintf("part-%05d.parquet", number) }

// Check compares a file with its record (see place.Place). A file that differs or is
// missing is ErrCorrupt.
func (d *Dataset) Check(f File) error { return d.place.Check(f) }

// CheckPart checks all files of a part.
func (d *Dataset) CheckPart(p Part) error {
	for _, f := range p.All() {
		if err := d.Check(f); err != nil {
			return err
		}
	}
	return nil
}

// CheckFiles checks files that this run has recorded or found whole.
func (d *Dataset) CheckFiles(files []File) error {
	for _, f := range files {
		if err := d.Check(f); err != nil {
			return changedMeanwhile(d.Dir(), err)
		}
	}
	return nil
}

// changedMeanwhile explains ErrCorrupt of a file that this run has recorded or found whole.
func changedMeanwhile(dir string, err error) error {
	if _, late := errors.AsType[*LateError](err); !late && errors.Is(err, ErrCorrupt) {
		err = fmt.Errorf("%s: %w; something else changed the dataset during the run; run the same command to make the file again", dir, err)
	}
	return err
}

// Discard removes a damaged file of an unfinished dataset, so that the next run makes its part again. The error is
// ErrCorrupt.
func (d *Dataset) Discard(name string, damage error) error {
	err := fmt.Errorf("%s: %s: %w: %w; it is removed: run the same command to make it again", d.Dir(), name, ErrCorrupt, damage)
	return errors.Join(err, d.place.Remove(name))
}

// SumLanes is how many files Sum reads side by side at most.
const SumLanes = place.SumLanes

// Sum takes the SHA-256 of published files.
func (d *Dataset) Sum(ctx context.Context, files []*File) error {
	return changedMeanwhile(d.Dir(), d.place.Sum(ctx, files))
}
