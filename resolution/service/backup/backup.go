// Package backup copies the state of a service while it runs, and restores
// copies.
//
// The one thing to know before using it: a copy does not contain the pepper,
// which is needed to check the hashed keys and to open the sealed secrets.
package backup

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	driversqlite "modernc.org/sqlite"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/internal/progress"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
)

// ErrExists means that a backup would replace a file.
var ErrExists = errors.New("there is a file of this name already; name another")

// Write copies the state in dir to a new file, which only its owner can read. A
// service may run meanwhile: the copy is the state of one moment. The file gets
// its name when it is complete, on disk, and checked as a restore checks it. It returns its size in bytes.
//
// Errors: sqlite.ErrNoState, sqlite.ErrEmpty, ErrExists, state.ErrDamaged.
func Write(ctx context.Context, dir, file string) (size int64, err error) {
	source, err := sqlite.Administer(dir, false) // fails if dir holds no state
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := absent(file); err != nil {
		return 0, err
	}
	// Two backups with the same name must not share a temporary file.
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*.tmp")
	if err != nil {
		return 0, err
	}
	defer func() {
		closing := f.Close()
		if errors.Is(closing, fs.ErrClosed) {
			closing = nil
		}
		if err != nil {
			err = errors.Join(err, closing, os.Remove(f.Name()))
		}
	}()
	if err = copyDatabase(ctx, filepath.Join(dir, sqlite.DatabaseName), f.Name()); err == nil {
		err = check(ctx, f.Name())
	}
	if err != nil {
		return 0, fmt.Errorf("back up %s: %w", dir, err)
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if err := errors.Join(f.Sync(), f.Close(), absent(file)); err != nil {
		return 0, err
	}
	if err := os.Rename(f.Name(), file); err != nil {
		return 0, err
	}
	return info.Size(), disk.Dir(filepath.Dir(file)).Sync()
}

// Name is the file name of a backup in a folder of backups.
func Name(at time.Time) string { return prefix + at.UTC().Format(timeInName) + suffix }

// Names of backups sort by time.
const prefix, timeInName, suffix = "service-", "20060102T150405.000Z", ".sqlite"

// Keep removes all but the newest n backups in a folder. Other files stay.
func Keep(folder string, n int) error {
	files, err := os.ReadDir(folder) // sorted
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f fs.DirEntry) bool {
		at, named := strings.CutPrefix(strings.TrimSuffix(f.Name(), suffix), prefix)
		_, err := time.Parse(timeInName, at)
		return !named || err != nil || f.Name() != prefix+at+suffix || !f.Type().IsRegular()
	})
	for _, f := range files[:max(0, len(files)-n)] {
		err = errors.Join(err, os.Remove(filepath.Join(folder, f.Name())))
	}
	return err
}

// absent returns ErrExists when there is a file.
func absent(file string) error {
	_, err := os.Lstat(file)
	if err == nil {
		return fmt.Errorf("%s: %w", file, ErrExists)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// pagesAtOnce is how many pages are copied between checks of the context.
const pagesAtOnce = 1024

// copyDatabase copies a database into the existing empty file target with the
// backup interface of SQLite. Changes that others make meanwhile are not in the
// copy and do not restart it, because it reads in one transaction. The copy needs
// no file beside it.
// Source: sqlite.org/backup.html.
func copyDatabase(ctx context.Context, source, target string) (err error) {
	if source, err = filepath.Abs(source); err != nil {
		return err
	}
	if target, err = filepath.Abs(target); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", groupcommit.URI(source, "query_only(1)"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var tables int
	if _, err := c.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	if err := c.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil { // the transaction begins
		return err
	}
	var pages, pageSize int64
	if err := c.QueryRowContext(ctx, "SELECT page_count, page_size FROM pragma_page_count, pragma_page_size").Scan(&pages, &pageSize); err != nil {
		return err
	}
	progress.Of(ctx).Expect(pages * pageSize)
	return c.Raw(func(source any) error { return copyPages(ctx, source, groupcommit.URI(target), pages, pageSize) })
}

// copyPages copies from a connection of the driver to a database.
func copyPages(ctx context.Context, source any, target string, pages, pageSize int64) error {
	from, ok := source.(interface {
		NewBackup(string) (*driversqlite.Backup, error)
	})
	if !ok {
		return errors.New("the driver of SQLite makes no backups")
	}
	b, err := from.NewBackup(target)
	if err != nil {
		return err
	}
	for more := true; more; {
		step := min(pages, pagesAtOnce)
		if more, err = b.Step(pagesAtOnce); err == nil {
			progress.Of(ctx).Done(step * pageSize)
			pages -= step
			err = ctx.Err()
		}
		if err != nil {
			return errors.Join(err, b.Finish())
		}
	}
	to, err := b.Commit()
	if err != nil {
		return err
	}
	// The copied pages are in WAL mode, but there is no log file next to the
	// copy.
	_, err = to.(driver.ExecerContext).ExecContext(context.WithoutCancel(ctx), "PRAGMA journal_mode = DELETE", nil)
	return errors.Join(err, to.Close())
}
