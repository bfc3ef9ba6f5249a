package backup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// Restored says what a restore did.
type Restored struct {
	// Replaced is the file with the previous state, "" if there was none.
	Replaced string
	// Unread is why the previous state could not be compared, nil if it was.
	Unread error
	Changes
}

// Restore puts a backup into the state folder dir, and creates the folder if
// there is none. It keeps the previous state in the folder, and compares the
// two. If it is killed at any moment, one of the two states is in place and
// complete.
//
// Errors: filelock.ErrLocked while a service or an administrator has the state
// open, resolution.ErrInvalid for a file that is not a backup, and
// *format.Error for one that another version of the program wrote.
func Restore(ctx context.Context, file, dir string, now time.Time) (r Restored, err error) {
	if err := readable(file); err != nil {
		return Restored{}, err
	}
	if dir, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return Restored{}, err
	}
	lock, err := filelock.Folder(dir)
	if err != nil {
		return Restored{}, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	made := filepath.Join(dir, ".restore") // a killed restore may have left it
	if err := errors.Join(os.RemoveAll(made), os.Mkdir(made, 0o700)); err != nil {
		return Restored{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(made)) }()
	if err := prepare(ctx, file, made); err != nil {
		return Restored{}, err
	}
	path := filepath.Join(dir, sqlite.DatabaseName)
	fresh := filepath.Join(made, sqlite.DatabaseName)
	if _, err := os.Lstat(path); err == nil {
		r.Replaced = filepath.Join(dir, "replaced-"+now.UTC().Format(timeInName)+".sqlite")
		if r.Unread, err = keep(ctx, path, r.Replaced); err != nil {
			return Restored{}, err
		}
		if r.Unread == nil {
			r.Changes, r.Unread = compare(ctx, fresh, path, now)
		}
	}
	// SQLite would apply the log of a damaged state to the new one.
	for _, log := range logs {
		if err := remove(path + log); err != nil {
			return Restored{}, err
		}
	}
	if err := os.Rename(fresh, path); err != nil {
		return Restored{}, err
	}
	return r, disk.Dir(dir).Sync()
}

// readable returns why a file cannot be read, in more detail than SQLite.
func readable(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "open", Path: file, Err: syscall.EISDIR}
	}
	return errors.Join(err, f.Close())
}

// prepare copies a backup into the folder made, and checks it.
func prepare(ctx context.Context, file, made string) error {
	fresh := filepath.Join(made, sqlite.DatabaseName)
	if err := groupcommit.Create(fresh); err != nil {
		return err
	}
	err := copyDatabase(ctx, file, fresh)
	if err == nil {
		err = check(ctx, fresh)
	}
	switch {
	case groupcommit.Is(err, sqlite3.SQLITE_NOTADB):
		err = fmt.Errorf("%w: it is not a database of SQLite", resolution.ErrInvalid)
	case groupcommit.Is(err, sqlite3.SQLITE_CORRUPT), errors.Is(err, state.ErrDamaged):
		err = fmt.Errorf("%w: it is damaged", resolution.ErrInvalid)
	}
	if err != nil {
		return fmt.Errorf("%s is not a whole backup of a service: %w", file, err)
	}
	s, err := sqlite.Administer(made, false)
	if other, ok := errors.AsType[*format.Error](err); ok {
		return format.Check(file, other.Found, other.Reads, "restore it with the program that wrote it")
	}
	if err != nil {
		return err
	}
	return s.Close()
}

// check checks a whole database for damage, and for the tables of a state.
func check(ctx context.Context, path string) (err error) {
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	if err := sqlite.Verify(ctx, path); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", groupcommit.URI(path, "query_only(1)"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var tables int
	const wanted = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('organizations', 'ledger', 'keys', 'outbox')"
	if err := db.QueryRowContext(ctx, wanted).Scan(&tables); err != nil {
		return err
	}
	if tables != 4 {
		return fmt.Errorf("%w: it holds no organizations", resolution.ErrInvalid)
	}
	return nil
}

// logs are the suffixes of the files that SQLite puts next to a database.
// Source: sqlite.org/tempfiles.html.
var logs = []string{"-wal", "-shm", "-journal"}

func remove(file string) error {
	if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// keep renames the state that will be replaced, and makes it one file. A state that
// is damaged, or was written by another version, stays as it is, with its logs; unread says why. The error is
// filelock.ErrLocked if a process has the state open.
func keep(ctx context.Context, path, replaced string) (unread, err error) {
	// Link first: opening a damaged database may remove its log.
	if err := os.Link(path, replaced); err != nil {
		return nil, err
	}
	for _, log := range logs {
		if err := os.Link(path+log, replaced+log); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	unread, err = settle(ctx, filepath.Dir(path))
	if unread != nil {
		return unread, nil
	}
	for _, log := range logs {
		err = errors.Join(err, remove(replaced+log))
	}
	if errors.Is(err, filelock.ErrLocked) {
		err = errors.Join(err, remove(replaced))
	}
	return nil, err
}

// settle merges the logs of a state into one file.
func settle(ctx context.Context, dir string) (unread, err error) {
	s, unread := sqlite.Administer(dir, false)
	if unread == nil {
		unread = s.Close()
	}
	c, err := groupcommit.Connect(filepath.Join(dir, sqlite.DatabaseName))
	if err == nil {
		defer func() { unread = errors.Join(unread, c.Close()) }()
		// Only the last connection can change the mode. No other process has the
		// state open.
		_, err = c.ExecContext(ctx, "PRAGMA journal_mode = DELETE")
	}
	if groupcommit.Is(err, sqlite3.SQLITE_BUSY) || groupcommit.Is(err, sqlite3.SQLITE_LOCKED) {
		return nil, fmt.Errorf("%s: %w", dir, filelock.ErrLocked)
	}
	return errors.Join(unread, err), nil
}
