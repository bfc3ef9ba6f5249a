package directory

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/freshdir"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/profile"
)

// Import builds the kinds that files names and puts them in place of those in
// dir, all of them or, on any error, none. dir is made when it is missing, and
// goes again when nothing was put in it.
// The Report is filled as far as the import came, also with an error.
//
// Errors: resolution.ErrInvalid when a file cannot be what it should be or
// has too many bad lines, or when dir holds data without the manifest that says
// what they are; resolution.ErrUnavailable when another import of the same
// folder is running.
func Import(ctx context.Context, dir string, files Files, o Options) (Report, error) {
	var report Report
	if err := o.Validate(); err != nil {
		return report, fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
	}
	if files == (Files{}) {
		return report, fmt.Errorf("%w: no file to import", resolution.ErrInvalid)
	}
	made, err := freshdir.Make(dir, 0o755)
	if err != nil {
		return report, err
	}
	lock, err := filelock.Folder(dir)
	if errors.Is(err, filelock.ErrLocked) {
		// The folder is another's now, be it ours by birth.
		return report, fmt.Errorf("%w: import into %s: %w", resolution.ErrUnavailable, dir, err)
	}
	if err != nil {
		made.RemoveEmpty()
		return report, err
	}
	defer func() { // in this order: who gets the lock next finds the folder or none
		made.RemoveEmpty()
		lock.Close()
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
	im := importer{dir: dir, options: o, rules: profile.Rules{Hosts: o.NetworkHosts}, manifest: next}
	report, err = im.run(ctx, files)
	if err != nil {
		// The files already built are named by no manifest.
		err = errors.Join(err, old.sweep(dir))
		if begun {
			err = errors.Join(err, os.Remove(filepath.Join(dir, manifestName)))
		}
		return report, err
	}
	next.retire(old, o.now())
	if err := next.write(dir); err != nil { // the commit point
		return report, err
	}
	return report, next.sweep(dir)
}

// importer is one Import.
type importer struct {
	dir      string
	options  Options
	rules    profile.Rules
	manifest manifest // the next one
}

func (im *importer) run(ctx context.Context, files Files) (Report, error) {
	var report Report
	for _, k := range Kinds {
		path := files.path(k)
		if path == "" {
			continue
		}
		start := im.options.now()
		r := KindReport{Kind: k, Source: path}
		e, err := im.kind(ctx, &r)
		r.Took = im.options.now().Sub(start)
		report.Kinds = append(report.Kinds, r)
		if err != nil {
			return report, fmt.Errorf("import %s from %s: %w", k, path, err)
		}
		e.Source = filepath.Base(path)
		e.Imported = start.UTC().Truncate(time.Second)
		im.manifest.Kinds[k] = e
	}
	// Ranges carry their company, so new companies mean new ranges.
	if e, ok := im.manifest.Kinds[IPRanges]; ok && files.Companies != "" && files.IPRanges == "" && e.Fields == nil {
		rejoined, err := im.rejoinRanges(ctx, e)
		if err != nil {
			return report, fmt.Errorf("join ip-ranges to the new companies: %w", err)
		}
		im.manifest.Kinds[IPRanges] = rejoined
	}
	return report, nil
}

func (im *importer) kind(ctx context.Context, r *KindReport) (entry, error) {
	switch r.Kind {
	case People:
		return im.people(ctx, r)
	case Companies:
		return im.companies(ctx, r)
	case IPRanges:
		return im.ipRanges(ctx, r)
	case Searches:
		return im.searches(ctx, r)
	default:
		return im.visits(ctx, r)
	}
}

// path is where the file of kind k goes in this generation.
func (im *importer) path(k Kind, format string) string {
	return filepath.Join(im.dir, dataFileName(k, im.manifest.Generation, format))
}

// enough refuses a source with too many bad lines.
func (im *importer) enough(r *KindReport) error {
	if float64(r.Bad) > im.options.MaxBadLines*float64(r.Lines) {
		return fmt.Errorf("%w: %d of %d lines are bad, more than %.4g%%; the old data stays",
			resolution.ErrInvalid, r.Bad, r.Lines, 100*im.options.MaxBadLines)
	}
	return nil
}

// seal makes a finished temporary file durable under its name and describes
// it.
func seal(path string) (entry, error) {
	temp := atomicfile.TempName(path)
	f, err := os.OpenFile(temp, os.O_RDWR, 0)
	if err != nil {
		return entry{}, err
	}
	defer f.Close()
	h := sha256.New()
	size, err := io.Copy(h, f)
	if err != nil {
		return entry{}, err
	}
	if err := f.Sync(); err != nil {
		return entry{}, err
	}
	if err := os.Rename(temp, path); err != nil {
		return entry{}, err
	}
	if err := atomicfile.SyncDir(filepath.Dir(path)); err != nil {
		return entry{}, err
	}
	return entry{File: filepath.Base(path), Bytes: size, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}

// content hashes normalised rows: every cell with its length in front, so
// that no two different tables are the same bytes.
type content struct {
	hash hash.Hash
	buf  []byte
}

func newContent() *content { return &content{hash: sha256.New()} }

func (c *content) add(cells ...string) {
	c.buf = c.buf[:0]
	for _, cell := range cells {
		c.buf = binary.AppendUvarint(c.buf, uint64(len(cell)))
		c.buf = append(c.buf, cell...)
	}
	c.hash.Write(c.buf)
}

func (c *content) sum() string { return hex.EncodeToString(c.hash.Sum(nil)) }
