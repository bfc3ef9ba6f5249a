package groupcommit

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// migrated opens a database in dir with migrations and closes it.
func migrated(t *testing.T, dir string, migrations ...string) error {
	t.Helper()
	path := filepath.Join(dir, "migrated.sqlite")
	if err := Create(path); err != nil {
		t.Fatal(err)
	}
	w, err := Open(Options{Path: path, Migrations: migrations}, func(t *Tx) *list { return &list{Tx: t} })
	if err != nil {
		return err
	}
	return w.Close()
}

// found says which version and which of the tables one, two and three are in
// a database.
func found(t *testing.T, dir string) (version int, tables string) {
	t.Helper()
	c, err := Connect(filepath.Join(dir, "migrated.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&version); err != nil {
		t.Fatal(err)
	}
	const names = "SELECT coalesce(group_concat(name, ' '), '') FROM (SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid)"
	if err := c.QueryRowContext(t.Context(), names).Scan(&tables); err != nil {
		t.Fatal(err)
	}
	return version, tables
}

func TestMigrate(t *testing.T) {
	const one, two, three = "CREATE TABLE one(x)", "CREATE TABLE two(x); INSERT INTO two VALUES (1)", "CREATE TABLE three(x)"
	const broken = "CREATE TABLE three(x); INSERT INTO nowhere VALUES (1)"
	for _, c := range []struct {
		name    string
		before  []string
		now     []string
		refused string // part of the error
		version int
		tables  string
	}{
		{"fresh", nil, []string{one, two}, "", 2, "one two"},
		{"present", []string{one, two}, []string{one, two}, "", 2, "one two"},
		{"older", []string{one}, []string{one, two, three}, "", 3, "one two three"},
		{"newer", []string{one, two, three}, []string{one, two}, "version 3, and this program knows 2", 3, "one two three"},
		{"fails midway", []string{one}, []string{one, two, broken}, "nowhere", 1, "one"},
		{"fails midway when fresh", nil, []string{one, broken}, "nowhere", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := migrated(t, dir, c.before...); err != nil {
				t.Fatal(err)
			}
			err := migrated(t, dir, c.now...)
			if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("got %v, want %q", err, c.refused)
			}
			if errors.Is(err, ErrNewer) != (c.name == "newer") {
				t.Errorf("%v is or is not ErrNewer", err)
			}
			if version, tables := found(t, dir); version != c.version || tables != c.tables {
				t.Errorf("left version %d with %q, want %d with %q", version, tables, c.version, c.tables)
			}
		})
	}
}

// A migration is made once, also when several open the new database at once, and
// none of them is refused. Without whileBusy in Connect, it happened in 2% of
// databases; so there are many here.
func TestMigrateAtOnce(t *testing.T) {
	for range 40 {
		dir := t.TempDir()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := migrated(t, dir, "CREATE TABLE one(x)"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if version, tables := found(t, dir); version != 1 || tables != "one" {
			t.Errorf("version %d with %q", version, tables)
		}
	}
}
