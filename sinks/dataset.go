// Package sinks writes datasets: Parquet parts, rejects, manifest. A dataset
// is published file by file, each whole or not at all, and _SUCCESS last: a
// reader that waits for _SUCCESS never sees half of one.
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

// The types that datasets are made of.
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

// The codecs every warehouse reads.
const (
	Snappy       = parquet.Snappy
	Zstd         = parquet.Zstd
	Uncompressed = parquet.Uncompressed
)

// The names of files beside the parts.
const (
	ManifestName   = place.ManifestName
	SuccessName    = place.SuccessName
	RejectsFolder  = place.RejectsFolder
	ReportName     = place.ReportName
	ReportPageName = place.ReportPageName
)

// ErrCorrupt says that a file of the dataset is not what was recorded.
var ErrCorrupt = place.ErrCorrupt

// ErrForeign says that the output folder holds files no dataset has.
var ErrForeign = errors.New("folder holds other files")

// ErrNested says that the output folder lies in the folder of another dataset, or
// the other way round: readers of the outer folder would read both.
var ErrNested = errors.New("a dataset cannot lie in the folder of another one")

// ParseCompression finds the codec called name.
func ParseCompression(name string) (Compression, error) { return parquet.ParseCompression(name) }

// Dataset is an output folder, held by this process alone until Close. It is
// local, or a prefix of keys on S3.
type Dataset struct {
	place place.Place
	pages parquet.PagePool
}

// Open makes the folder if need be and takes hold of it. Another process
// working there is filelock.ErrLocked; files that belong to no dataset are
// ErrForeign, another dataset above or below is ErrNested, and nothing of either
// is touched.
func Open(ctx context.Context, uri string, o Options) (*Dataset, error) {
	p, err := place.Open(ctx, uri, o)
	if err != nil {
		return nil, err
	}
	d := &Dataset{place: p}
	if err = d.refuseEnclosed(); err == nil {
		err = d.refuseForeign()
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return d, nil
}

// Close gives the folder back. A folder that Open made is removed if it is still
// empty, so that a refused run leaves nothing behind.
func (d *Dataset) Close() error { return d.place.Close() }

// Dir is the folder as it was given to Open; of one on S3, its URI in one
// form.
func (d *Dataset) Dir() string { return d.place.URI() }

// refuseEnclosed keeps a run from writing below another dataset.
func (d *Dataset) refuseEnclosed() error {
	above, err := d.place.Enclosing()
	if err != nil || above == "" {
		return err
	}
	return fmt.Errorf("%s: %w: it lies in the dataset %s; choose a folder outside that", d.Dir(), ErrNested, above)
}

// refuseForeign keeps a run from mixing its files with those of others. It is
// called before a run writes; files that appear later are left alone.
func (d *Dataset) refuseForeign() error {
	_, foreign, err := d.place.Files()
	if err != nil || len(foreign) == 0 {
		return err
	}
	folders := slices.DeleteFunc(slices.Clone(foreign), func(name string) bool { return path.Dir(name) == RejectsFolder })
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

// Empty reports whether the folder holds no published file. A report does not
// count.
func (d *Dataset) Empty() (bool, error) {
	names, _, err := d.place.Files()
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(names, func(n string) bool {
		return !atomicfile.IsTemp(path.Base(n)) && !place.IsReport(n) && !strings.HasSuffix(n, "/")
	}), nil
}

// Rejects starts the file of the part's malformed lines.
func (d *Dataset) Rejects(number int, t Table) (*Writer, error) {
	return newWriter(d.place, place.RejectsFolder+"/"+partFile(number), t, &d.pages, fileBuffer)
}

func partFile(number int) string { return fmt.Sprintf("part-%05d.parquet", number) }

// Check reports whether f is still as it was recorded (see place.Place). A file
// that differs or is missing is ErrCorrupt.
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

// SumLanes is how many files Sum reads side by side at most.
const SumLanes = place.SumLanes

// Sum takes the SHA-256 of published files that have none yet.
func (d *Dataset) Sum(ctx context.Context, files []*File) error { return d.place.Sum(ctx, files) }
