package directsql

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver
	sqlite3 "modernc.org/sqlite/lib"
)

// database makes a database of one table.
func database(t *testing.T) (path string, db *sql.DB) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "a b.sqlite")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	const made = `PRAGMA journal_mode = WAL; CREATE TABLE t(id INTEGER PRIMARY KEY, hash BLOB, name ANY) STRICT;
		INSERT INTO t VALUES (1, x'0102', 'Zoë'), (2, x'0304', x'ff00'), (-3, x'', ''), (4, NULL, NULL), (5, x'05', 17)`
	if _, err := db.Exec(made); err != nil {
		t.Fatal(err)
	}
	return path, db
}

func openT(t *testing.T, path string) *Conn {
	t.Helper()
	c, err := Open(path, "cache_size(-1024)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func prepare(t *testing.T, c *Conn, query string) *Stmt {
	t.Helper()
	s, err := c.Prepare(query)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestColumns(t *testing.T) {
	path, _ := database(t)
	s := prepare(t, openT(t, path), "SELECT hash, name FROM t WHERE id = ?")
	for _, c := range []struct {
		id         int64
		hash, name string
		null       bool
	}{
		{1, "\x01\x02", "Zoë", false},
		{2, "\x03\x04", "\xff\x00", false},
		{-3, "", "", false},
		{4, "", "", true},
		{5, "\x05", "17", false},
	} {
		s.BindInt(1, c.id)
		found, err := s.Step()
		if !found || err != nil || string(s.Bytes(0)) != c.hash || string(s.Bytes(1)) != c.name || s.Null(0) != c.null || s.Null(1) != c.null {
			t.Errorf("%d: %t, %v, %q, %q, %t", c.id, found, err, s.Bytes(0), s.Bytes(1), s.Null(1))
		}
		s.Reset()
	}
	s.BindInt(1, 6)
	if found, err := s.Step(); found || err != nil {
		t.Errorf("a row that is not there: %t, %v", found, err)
	}
}

// A statement sees what others have committed since its last Reset, and looks
// for parts of a block.
func TestBlock(t *testing.T) {
	path, db := database(t)
	c := openT(t, path)
	b, err := c.Block(6)
	if err != nil {
		t.Fatal(err)
	}
	s := prepare(t, c, "SELECT id FROM t WHERE hash = ?")
	find := func(from, to int, want int64) {
		t.Helper()
		s.BindBlob(1, b, from, to)
		found, err := s.Step()
		if err != nil || found != (want != 0) || s.Int(0) != want {
			t.Errorf("%x: %t, %d, %v; want %d", b.Bytes[from:to], found, s.Int(0), err, want)
		}
		s.Reset()
	}
	copy(b.Bytes, "\x01\x02\x03\x04\x05\x06")
	find(0, 2, 1)
	find(2, 4, 2)
	find(4, 5, 5)
	find(4, 4, -3)
	find(4, 6, 0)
	if _, err := db.Exec("INSERT INTO t VALUES (7, x'0506', '')"); err != nil {
		t.Fatal(err)
	}
	find(4, 6, 7)
}

func TestErrors(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "unable to open") {
		t.Errorf("no file: %v", err)
	}
	path, _ := database(t)
	c := openT(t, path)
	var e *Error
	if _, err := c.Prepare("SELECT nothing FROM t"); !errors.As(err, &e) || e.Code != sqlite3.SQLITE_ERROR || !strings.Contains(e.Message, "nothing") {
		t.Errorf("no column: %v", err)
	}
	if _, err := prepare(t, c, "DELETE FROM t").Step(); !errors.As(err, &e) || e.Code&0xff != sqlite3.SQLITE_READONLY {
		t.Errorf("a change: %v", err)
	}
	s := prepare(t, c, "SELECT 1")
	defer func() {
		if recover() == nil {
			t.Error("a parameter that is not there was bound")
		}
	}()
	s.BindInt(1, 1)
}
