package directory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/internal/progress"
	"github.com/leadetl/leadetl/internal/rows"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/resolution/values"
	"github.com/leadetl/leadetl/transforms/orgtype"
	"github.com/leadetl/leadetl/transforms/phone"
)

// Import imports the kinds in files and replaces those in dir: all of them or, after an
// error, none. It makes dir if it is missing, and removes it again if it stays empty. The
// Report is also filled, as far as the import came, with an error.
//
// Errors: resolution.ErrInvalid if a file has the wrong content or too many bad lines, or if
// dir has data without a manifest; resolution.ErrUnavailable while another import of the
// folder runs.
func Import(ctx context.Context, dir string, files Files, o Options) (Report, error) {
	var report Report
	if err := errors.Join(o.Validate(), checkCalled(o, files)); err != nil {
		return report, fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
	}
	if files == (Files{}) {
		return report, fmt.Errorf("%w: no file to import", resolution.ErrInvalid)
	}
	made, err := disk.Dir(dir).Make(0o755)
	if err != nil {
		return report, err
	}
	lock, err := filelock.Folder(dir)
	if errors.Is(err, filelock.ErrLocked) {
		// Another import has the folder now, even if this one made it.
		return report, fmt.Errorf("%w: import into %s: %w", resolution.ErrUnavailable, dir, err)
	}
	if err != nil {
		made.RemoveEmpty()
		return report, err
	}
	defer func() { // in this order, so that the next holder of the lock finds a whole folder or none
		made.RemoveEmpty()
		lock.Release()
	}()

	old, begun, err := readOrBeginManifest(dir)
	if err != nil {
		return report, err
	}
	if err := old.sweep(dir); err != nil {
		return report, err
	}
	next := old
	next.Format = manifestFormat
	next.Generation++
	next.Kinds = maps.Clone(old.Kinds)
	im := importer{dir: dir, options: o, manifest: next}
	report, err = im.run(ctx, files)
	if err == nil {
		next.Joins, err = im.join(ctx, files)
	}
	if err != nil {
		// No manifest names the new files.
		err = errors.Join(err, old.sweep(dir))
		if begun {
			err = errors.Join(err, os.Remove(filepath.Join(dir, manifestName)))
		}
		return report, err
	}
	if next.Retired = nil; !o.DropReplaced {
		next.retire(old, o.Time())
	}
	if err := next.write(dir); err != nil { // the commit point
		return report, err
	}
	return report, next.sweep(dir)
}

// Report counts imported and rejected rows.
type Report struct {
	Kinds []KindReport // in the order of Kinds
}

// KindReport is the report of one kind.
type KindReport struct {
	imports.Report
	Kind Kind
	Took time.Duration
	// UnknownWords are the words of org_type that are no known kind, most rows first.
	UnknownWords []orgtype.Count
}

// importer is one Import.
type importer struct {
	dir      string
	options  Options
	manifest manifest // the next one
}

func (im *importer) run(ctx context.Context, files Files) (Report, error) {
	var report Report
	for _, k := range Kinds {
		path := *files.Of(k)
		if path == "" {
			continue
		}
		start := im.options.Time()
		progress.Of(ctx).Step("importing " + string(k))
		r := imports.Report{Source: path}
		e, err := im.kind(ctx, k, &r)
		report.Kinds = append(report.Kinds, KindReport{Kind: k, Report: r, Took: im.options.Time().Sub(start), UnknownWords: e.UnknownWords})
		if _, named := errors.AsType[*rows.FormatError](err); named {
			return report, fmt.Errorf("import %s: %w", k, err)
		}
		if err != nil {
			return report, fmt.Errorf("import %s from %s: %w", k, path, err)
		}
		e.Source = filepath.Base(path)
		e.Imported = start.UTC().Truncate(time.Second)
		im.manifest.Kinds[k] = e
	}
	return report, nil
}

// kind imports a kind into a file of columns.
func (im *importer) kind(ctx context.Context, k Kind, r *imports.Report) (e entry, err error) {
	o := im.options
	o.Called = calledIn(k, o.Called)
	var result imports.Result
	e, err = im.write(k, func(to imports.File) (err error) {
		if result, err = kinds[k].write(ctx, o, r, to); errors.Is(err, keyed.ErrDamaged) { // it maps no other files
			err = fmt.Errorf("a temporary file in %s cannot be read: %w", im.dir, err)
		}
		return err
	})
	e.Rows, e.Keys, e.Content, e.UnknownWords = r.Rows, result.Keys, result.Content, result.UnknownWords
	switch k {
	case IPRanges:
		e.OrgTypes = o.OrgTypes
	case People:
		e.PhoneRules = phone.Rules
	}
	return e, err
}

// write makes a file of a kind.
func (im *importer) write(k Kind, write func(to imports.File) error) (entry, error) {
	path := filepath.Join(im.dir, dataFileName(k, im.manifest.Generation, values.DirectoryFormat))
	to, err := atomicfile.Create(path, 0o666)
	if err != nil {
		return entry{}, err
	}
	err = write(imports.File{Writer: to, Scratch: im.dir})
	if errors.Is(err, keyed.ErrFull) {
		err = fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
	}
	if err != nil {
		return entry{}, errors.Join(err, to.Abort())
	}
	return seal(to, filepath.Base(path))
}

// seal makes a written file durable under its name, and returns its entry.
func seal(f *atomicfile.File, name string) (entry, error) {
	h := sha256.New()
	size, err := io.Copy(h, io.NewSectionReader(f, 0, math.MaxInt64))
	if err != nil {
		return entry{}, errors.Join(err, f.Abort())
	}
	if err := f.Commit(); err != nil {
		return entry{}, err
	}
	return entry{File: name, Bytes: size, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}
