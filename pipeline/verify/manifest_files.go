package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/sinks"
)

var hexSHA256 = regexp.MustCompile(`^[0-9a-f]{64}$`)

// manifest compares the manifest with the files of the dataset.
func (c *checker) manifest(ctx context.Context) error {
	names, err := c.dataset.List(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", sinks.ErrNoDataset, err)
	}
	if err != nil {
		return err
	}
	m, err := sinks.ReadManifest(c.dataset)
	broken, _ := errors.AsType[*sinks.ManifestError](err)
	if err != nil && broken == nil {
		return err
	}
	if err := c.success(); err != nil {
		return err
	}
	if broken != nil {
		c.found.report(Failure{File: sinks.ManifestName, Problem: "not readable: " + broken.Err.Error()})
		return nil
	}
	c.result.Manifest = m
	if err := m.Reconcile(); err != nil {
		c.found.report(Failure{File: sinks.ManifestName, Problem: err.Error()})
	}
	c.rules, c.ruled = c.options.Rules(m)
	if c.ruled {
		c.schema()
	} else {
		c.found.report(Failure{File: sinks.ManifestName, Problem: fmt.Sprintf("the rules of operation %q, schema version %d, are not known to this version", m.Operation, m.SchemaVersion)})
	}
	c.listed()
	c.strangers(names)
	for _, column := range m.Schema {
		c.result.Columns = append(c.result.Columns, ColumnFacts{Column: column})
	}
	return nil
}

// success compares the manifest with its checksum in _SUCCESS, which a listing may lack.
func (c *checker) success() error {
	err := sinks.CheckFinished(c.dataset)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.found.report(Failure{Problem: sinks.SuccessName + " is missing: the run did not finish"})
	case errors.Is(err, sinks.ErrCorrupt):
		c.found.report(Failure{File: sinks.ManifestName, Problem: "its SHA-256 differs from the one in " + sinks.SuccessName})
	default:
		return err
	}
	return nil
}

// listed checks the names and checksums in the manifest. A file with a wrong name is
// never opened.
func (c *checker) listed() {
	m := c.result.Manifest
	for i := range m.Parts {
		p := &m.Parts[i]
		if m.PartitionBy == "" {
			c.entry(p.File, fmt.Sprintf("part-%05d.parquet", i), fmt.Sprintf("part %d of the manifest", i+1))
		} else {
			c.parted(p, fmt.Sprintf("part-%05d.parquet", i), fmt.Sprintf("part %d of the manifest", i+1))
		}
		for n, f := range p.Beside() {
			if *f != nil {
				c.entry(**f, fmt.Sprintf("%s/part-%05d.parquet", beside[n].folder, i), fmt.Sprintf("%s of part %d of the manifest", beside[n].holds, i+1))
			}
		}
	}
	for i, f := range c.changes() {
		c.entry(f, fmt.Sprintf("%s/part-%05d.parquet", sinks.ChangesFolder, i), fmt.Sprintf("file %d of the changes in the manifest", i+1))
	}
	if len(m.Parts) == 0 {
		c.found.report(Failure{File: sinks.ManifestName, Problem: "it lists no parts; a dataset without rows has one empty part"})
	}
}

// beside are the files of sinks.Part.Beside.
var beside = [...]struct{ folder, holds string }{
	{sinks.RejectsFolder, "rejects"}, {sinks.SuppressedFolder, "suppressed ids"}, {sinks.AskedFolder, "answers of resolvers"},
}

// changes returns the files of the changes.
func (c *checker) changes() []sinks.File {
	if changes := c.result.Manifest.Changes; changes != nil {
		return changes.Files
	}
	return nil
}

// changesIntact compares the files of the changes with their sizes and checksums. Package
// changes compares their rows with both datasets.
func (c *checker) changesIntact(ctx context.Context) error {
	for _, f := range c.changes() {
		if !safeName(f.Name) {
			continue // it has a failure already
		}
		opened, err := c.intact(ctx, f)
		if opened != nil {
			err = errors.Join(err, opened.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parted checks the entries of a part whose rows are partitioned by a column.
func (c *checker) parted(p *sinks.Part, want, which string) {
	before := ""
	for _, f := range p.Files {
		folder, base := path.Split(f.Name)
		switch {
		case !sinks.IsPartitionFolder(c.result.Manifest.PartitionBy, strings.TrimSuffix(folder, "/")):
			c.found.report(Failure{File: sinks.ManifestName, Problem: fmt.Sprintf("a file of %s is not in a folder of a value of %s", which, c.result.Manifest.PartitionBy)})
			c.entry(f, f.Name, "a file of "+which)
		case f.Name <= before:
			c.found.report(Failure{File: sinks.ManifestName, Problem: fmt.Sprintf("the files of %s are not sorted by name, or one is listed twice", which)})
			c.entry(f, f.Name, "a file of "+which)
		default:
			c.entry(f, strings.TrimSuffix(f.Name, base)+want, "a file of "+which)
		}
		before = f.Name
	}
	if p.Name != want {
		c.found.report(Failure{File: sinks.ManifestName, Problem: fmt.Sprintf("%s should be called %s", which, want)})
	}
}

func (c *checker) entry(f sinks.File, want, which string) {
	if f.Name != want {
		c.found.report(Failure{File: sinks.ManifestName, Problem: fmt.Sprintf("%s should be called %s", which, want)})
	}
	if !hexSHA256.MatchString(f.SHA256) {
		c.found.report(Failure{File: sinks.ManifestName, Problem: which + " has no SHA-256"})
	}
	c.result.Files++
	c.result.Bytes += f.Bytes
}

// strangers looks for files that readers of the folder would load as rows. Readers
// ignore names that begin with "_" or ".", so those are allowed, but not unknown files
// in the hidden folders of datasets.
func (c *checker) strangers(names []string) {
	known := map[string]bool{}
	for _, p := range c.result.Manifest.Parts {
		for _, f := range p.All() {
			known[f.Name] = true
		}
	}
	for _, f := range c.changes() {
		known[f.Name] = true
	}
	for _, name := range names {
		if known[name] || isHidden(path.Base(name)) || isHiddenFolder(name) {
			continue
		}
		c.found.report(Failure{File: name, Problem: "unexpected file; readers would load it as data"})
	}
}

func isHidden(base string) bool { return base[0] == '_' || base[0] == '.' }

// isHiddenFolder reports whether a file is in a folder that readers ignore, except those of
// datasets.
func isHiddenFolder(name string) bool {
	folders := strings.Split(path.Dir(name), "/")
	return !slices.Contains(sinks.HiddenFolders, folders[0]) && slices.ContainsFunc(folders, func(f string) bool { return f != "." && isHidden(f) })
}

// intact opens a file and compares its size and checksum. If they differ, it adds a
// failure and returns nil.
func (c *checker) intact(ctx context.Context, f sinks.File) (*sinks.OpenFile, error) {
	opened, err := c.dataset.Open(f.Name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, sinks.ErrCorrupt) {
		c.found.report(Failure{File: f.Name, Problem: "it is missing"})
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	problem := ""
	if opened.Size != f.Bytes {
		problem = fmt.Sprintf("it has %d bytes; the manifest says %d", opened.Size, f.Bytes)
	} else if sum, err := sha256Of(ctx, opened); err != nil {
		return nil, errors.Join(err, opened.Close())
	} else if sum != f.SHA256 {
		problem = "its SHA-256 differs from the manifest"
	}
	if problem == "" {
		return opened, nil
	}
	c.found.report(Failure{File: f.Name, Problem: problem})
	return nil, opened.Close()
}

func sha256Of(ctx context.Context, f *sinks.OpenFile) (string, error) {
	h := sha256.New()
	buffer := make([]byte, 1<<20)
	for from := int64(0); from < f.Size; from += int64(len(buffer)) {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if _, err := io.CopyBuffer(h, io.NewSectionReader(f, from, int64(len(buffer))), buffer); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
