package directory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/transforms/orgtype"
)

// KindStat describes one imported kind.
type KindStat struct {
	Kind   Kind
	Source string // base name of the imported file
	File   string // name in the folder of the directory
	Rows   int64  // imported lines; networks of an MMDB
	// Keys counts the distinct profile keys, domains, ranges, keywords or addresses.
	// A range with a narrower one inside is split, so there may be more than Rows.
	Keys     int64
	Bytes    int64
	Imported time.Time // UTC
	// OrgTypes are the kinds that the import named for words of org_type, and UnknownWords
	// the words that are no known kind, most rows first.
	OrgTypes     map[string]string
	UnknownWords []orgtype.Count
}

// Stat describes the imported kinds, in the order of Kinds.
func (d *Directory) Stat() []KindStat {
	var stats []KindStat
	for _, k := range Kinds {
		if e, ok := d.manifest.Kinds[k]; ok {
			stats = append(stats, KindStat{Kind: k, Source: e.Source, File: e.File, Rows: e.Rows, Keys: e.Keys,
				Bytes: e.Bytes, Imported: e.Imported, OrgTypes: e.OrgTypes, UnknownWords: e.UnknownWords})
		}
	}
	return stats
}

// Verify reads everything and joins the problems: damaged regions of files, rows that no
// look-up finds, and wrong counts. It takes as long as reading all files twice.
func (d *Directory) Verify(ctx context.Context) error {
	var errs []error
	for _, k := range Kinds {
		e, ok := d.manifest.Kinds[k]
		if !ok {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := e.verify(ctx, d.dir, d.files[k]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", k, e.File, err))
		}
	}
	if e := d.manifest.Joins; e != nil {
		if err := e.verify(ctx, d.dir, d.files[joins]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", joins, e.File, err))
		}
	}
	for _, r := range d.manifest.Retired {
		// A later import may have removed it.
		if err := checkSum(filepath.Join(d.dir, r.File), r.SHA256); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("retired %s: %s: %w", Searches, r.File, err))
		}
	}
	return errors.Join(errs...)
}

// CheckAll reads the files of kinds, and reports damage that look-ups may not come
// upon. Of each file that takes as long as reading it.
func (d *Directory) CheckAll(kinds ...Kind) error {
	if slices.Contains(kinds, Companies) {
		kinds = append(kinds[:len(kinds):len(kinds)], joins)
	}
	for _, k := range kinds {
		if f := d.files[k]; f != nil {
			if err := damaged(k, f.CheckAll()); err != nil {
				return err
			}
		}
	}
	return nil
}

// verify reads the whole open file of an entry in dir.
func (e entry) verify(ctx context.Context, dir string, f file) error {
	keys, rows, err := f.Verify(ctx) // which names the damaged region
	if err != nil {
		return err
	}
	if rows < 0 {
		rows = e.Rows
	}
	return errors.Join(same("keys", keys, e.Keys), same("rows", rows, e.Rows), checkSum(filepath.Join(dir, e.File), e.SHA256))
}

func same(what string, got, want int64) error {
	if got != want {
		return fmt.Errorf("%w: %d %s, the import counted %d", keyed.ErrDamaged, got, what, want)
	}
	return nil
}

func checkSum(path, want string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return fmt.Errorf("%w: its checksum differs from that of the import", keyed.ErrDamaged)
	}
	return nil
}
