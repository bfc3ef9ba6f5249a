package directory

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/oschwald/maxminddb-golang/v2"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/imports"
)

// copyMMDB takes over an MMDB as it is. It is refused when it is broken or
// when no record has a field we look for: it would answer nothing.
func (im *importer) copyMMDB(ctx context.Context, r *imports.Report) (entry, error) {
	path := im.path(IPRanges, "mmdb")
	if err := copyFile(ctx, r.Source, path); err != nil {
		return entry{}, err
	}
	db, err := maxminddb.Open(path)
	if err != nil {
		return entry{}, fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
	}
	defer db.Close()
	if err := db.Verify(); err != nil {
		return entry{}, fmt.Errorf("%w: the MMDB is broken: %w", resolution.ErrInvalid, err)
	}
	fields := im.options.Fields
	// Each distinct record is looked at once; offsets tell them apart.
	const looks = 100_000
	seen := map[uintptr]bool{}
	answers := false
	for result := range db.Networks(maxminddb.SkipEmptyValues()) {
		r.Rows++
		if r.Rows%1024 == 0 && ctx.Err() != nil {
			return entry{}, ctx.Err()
		}
		if answers || len(seen) == looks || seen[result.Offset()] {
			continue
		}
		seen[result.Offset()] = true
		o, empty := fields.owner(result)
		answers = !empty && o.name+o.domain != ""
	}
	r.Lines = r.Rows
	if !answers {
		return entry{}, fmt.Errorf("%w: no record of this %s database has a name or a domain at %s", resolution.ErrInvalid,
			db.Metadata.DatabaseType, strings.Join(append(append([]string(nil), fields.Name...), fields.Domain...), ", "))
	}
	e, err := describeMMDB(path)
	if err != nil {
		return entry{}, err
	}
	e.Fields = &fields
	e.Rows = r.Rows
	mapping, err := json.Marshal(fields)
	if err != nil {
		return entry{}, err
	}
	sum := imports.NewContent()
	sum.Add(e.SHA256, string(mapping))
	e.Content = sum.Sum()
	return e, nil
}

// owner reads a record of any shape. A field that is there but no string
// counts as not there; empty is true for a record that says nothing.
func (f Fields) owner(result maxminddb.Result) (o owner, empty bool) {
	first := func(paths []string) string {
		for _, path := range paths {
			var s string
			if err := result.DecodePath(&s, keys(path)...); err == nil && strings.TrimSpace(s) != "" {
				return strings.TrimSpace(s)
			}
		}
		return ""
	}
	o.name, o.domain = first(f.Name), first(f.Domain)
	word := first(f.Type)
	o.orgType, _ = orgType(word)
	return o, o.name+o.domain+word == ""
}

func keys(path string) []any {
	var keys []any
	for key := range strings.SplitSeq(path, ".") {
		keys = append(keys, key)
	}
	return keys
}

func copyFile(ctx context.Context, from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
	}
	defer in.Close()
	out, err := atomicfile.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Abort())
	}
	if err := ctx.Err(); err != nil {
		return errors.Join(err, out.Abort())
	}
	return out.Commit()
}

// describeMMDB measures a file that is in place. Keys counts its networks.
func describeMMDB(path string) (entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return entry{}, err
	}
	defer f.Close()
	h := sha256.New()
	size, err := io.Copy(h, bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return entry{}, err
	}
	db, err := maxminddb.Open(path)
	if err != nil {
		return entry{}, err
	}
	defer db.Close()
	networks, err := countNetworks(db)
	return entry{File: filepath.Base(path), Bytes: size, SHA256: hex.EncodeToString(h.Sum(nil)), Keys: networks}, err
}

func countNetworks(db *maxminddb.Reader) (n int64, err error) {
	for result := range db.Networks(maxminddb.SkipEmptyValues()) {
		if err := result.Err(); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
