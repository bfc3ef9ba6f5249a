package groupcommit

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/leadetl/leadetl/internal/format"
)

// opened opens a database in dir with a schema and closes it.
func opened(t *testing.T, dir string, number int, schema string) error {
	t.Helper()
	path := filepath.Join(dir, "made.sqlite")
	if err := Create(path); err != nil {
		t.Fatal(err)
	}
	w, err := Open(Options{Path: path, Schema: schema, Format: number, Advice: "make it anew"}, func(t *Tx) *list { return &list{Tx: t} })
	if err != nil {
		return err
	}
	return w.Close()
}

// found says which format and which of the tables one and two are in a database.
func found(t *testing.T, dir string) (number int, tables string) {
	t.Helper()
	c, err := Connect(filepath.Join(dir, "made.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&number); err != nil {
		t.Fatal(err)
	}
	const names = "SELECT coalesce(group_concat(name, ' '), '') FROM (SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid)"
	if err := c.QueryRowContext(t.Context(), names).Scan(&tables); err != nil {
		t.Fatal(err)
	}
	return number, tables
}

func TestFormat(t *testing.T) {
	const one, both = "CREATE TABLE one(x)", "CREATE TABLE one(x); CREATE TABLE two(x); INSERT INTO two VALUES (1)"
	const broken = "CREATE TABLE one(x); INSERT INTO nowhere VALUES (1)"
	type made struct {
		number int
		schema string
	}
	for _, c := range []struct {
		name    string
		before  *made
		now     made
		refused string // part of the error
		number  int
		tables  string
	}{
		{"new", nil, made{5, both}, "", 5, "one two"},
		{"present", &made{5, both}, made{5, both}, "", 5, "one two"},
		{"older", &made{4, one}, made{5, both}, "has format 4, and this program reads format 5 only: make it anew", 4, "one"},
		{"newer", &made{6, one}, made{5, both}, "has format 6, and this program reads format 5 only: make it anew", 6, "one"},
		{"of another program", &made{0, one}, made{5, both}, "has no format number, and this program reads format 5 only", 0, "one"},
		{"fails midway", nil, made{5, broken}, "nowhere", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if c.before != nil {
				if err := opened(t, dir, c.before.number, c.before.schema); err != nil {
					t.Fatal(err)
				}
			}
			err := opened(t, dir, c.now.number, c.now.schema)
			if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("got %v, want %q", err, c.refused)
			}
			if other := new(format.Error); errors.As(err, &other) != strings.Contains(c.refused, "this program reads") {
				t.Errorf("%v is or is not a format.Error", err)
			}
			if number, tables := found(t, dir); number != c.number || tables != c.tables {
				t.Errorf("left format %d with %q, want %d with %q", number, tables, c.number, c.tables)
			}
		})
	}
}

// Tables are made once, also when several open the new database at once, and none of
// them is refused. Without whileBusy in Connect, it happened in 2% of databases; so
// there are many here.
func TestMadeOnce(t *testing.T) {
	for range 40 {
		dir := t.TempDir()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := opened(t, dir, 1, "CREATE TABLE one(x)"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if number, tables := found(t, dir); number != 1 || tables != "one" {
			t.Errorf("format %d with %q", number, tables)
		}
	}
}
