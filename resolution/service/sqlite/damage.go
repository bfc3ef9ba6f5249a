package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// damaged marks an error of the database that says that its file is damaged, that a row is
// missing which is always there, or that a column has a value of another type.
func damaged(err error) error {
	otherType := err != nil && strings.HasPrefix(err.Error(), "sql: Scan error ") // database/sql has no type for it
	if otherType || groupcommit.Is(err, sqlite3.SQLITE_CORRUPT) || groupcommit.Is(err, sqlite3.SQLITE_NOTADB) || errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: %w", state.ErrDamaged, err)
	}
	return err
}

// lost returns state.ErrDamaged if the database at path is gone and its log is left. SQLite
// would apply the log to a new database.
func lost(path string) error {
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w: the file is gone, and its log is left", path, state.ErrDamaged)
}

// FindDamage reads the whole database and returns state.ErrDamaged if it is damaged. It
// has a connection of its own, so that others need not wait.
func (s *Store) FindDamage(ctx context.Context) error { return Verify(ctx, s.db.path) }

// Verify is FindDamage for the database at path. It makes SQLite's integrity check, counts the entries
// of indexes, compares the sums of what belongs together, and unpacks what is packed. Of a database
// with another schema it makes the first two checks alone.
// Source: sqlite.org/pragma.html, integrity_check.
func Verify(ctx context.Context, path string) (err error) {
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", groupcommit.URI(path, "query_only(1)", "cache_size(-4096)"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var found string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&found); err != nil {
		return unavailable(err)
	}
	if found != "ok" {
		return fmt.Errorf("%w: %s", state.ErrDamaged, strings.ReplaceAll(found, "\n", " "))
	}
	if err := countPartial(ctx, db); err != nil {
		return err
	}
	var format int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&format); err != nil || format != schemaFormat {
		return unavailable(err)
	}
	for _, s := range sums {
		var wrong int64
		if err := db.QueryRowContext(ctx, s.query).Scan(&wrong); err != nil {
			return unavailable(err)
		}
		if wrong > 0 {
			return fmt.Errorf("%w: %d %s", state.ErrDamaged, wrong, s.differ)
		}
	}
	return unpackAll(ctx, db)
}

// countPartial finds entries of indexes of some rows that are of no such row. SQLite's integrity check looks for the
// entries of rows, and counts them in indexes of all rows alone. A finished search would be made again by such an entry.
func countPartial(ctx context.Context, db *sql.DB) error {
	indexes, err := collect(ctx, db, func(row interface{ Scan(...any) error }) (index [3]string, err error) {
		return index, row.Scan(&index[0], &index[1], &index[2])
	}, "SELECT name, tbl_name, substr(sql, instr(sql, ' WHERE ')) FROM sqlite_schema WHERE type = 'index' AND instr(sql, ' WHERE ') > 0")
	if err != nil {
		return err
	}
	for _, index := range indexes {
		var wrong bool
		err := db.QueryRowContext(ctx, fmt.Sprintf("SELECT (SELECT count(*) FROM %[2]s INDEXED BY %[1]s %[3]s) <> (SELECT count(*) FROM %[2]s NOT INDEXED %[3]s)",
			index[0], index[1], index[2])).Scan(&wrong)
		if err != nil {
			return unavailable(err)
		}
		if wrong {
			return fmt.Errorf("%w: wrong number of entries in index %s", state.ErrDamaged, index[0])
		}
	}
	return nil
}

// unpackAll unpacks all that is stored as frames, which have checksums.
func unpackAll(ctx context.Context, db *sql.DB) error {
	for _, column := range [][2]string{{"replies", "body"}, {"bodies", "body"}, {"resolutions", "result"}} {
		rows, err := db.QueryContext(ctx, fmt.Sprintf("SELECT %[2]s FROM %[1]s WHERE substr(%[2]s, 1, 4) = ?", column[0], column[1]), frameMagic)
		if err != nil {
			return unavailable(err)
		}
		defer rows.Close()
		var stored []byte
		for rows.Next() {
			if err := rows.Scan(&stored); err != nil {
				return unavailable(err)
			}
			if _, err := unpack(stored); err != nil {
				return fmt.Errorf("table %s: %w", column[0], err)
			}
		}
		if err := rows.Err(); err != nil {
			return unavailable(err)
		}
	}
	return nil
}

// sums count what one table says of another, and the other does not. Each is one statement,
// which sees one moment of a database in use.
var sums = []struct{ differ, query string }{
	{"balances differ from their ledger", `SELECT count(*) FROM organizations o
		LEFT JOIN (SELECT organization, sum(available) AS available, sum(reserved) AS reserved FROM ledger GROUP BY 1) l ON l.organization = o.id
		WHERE o.available <> coalesce(l.available, 0) OR o.reserved <> coalesce(l.reserved, 0)`},
	{"reservations in the ledger differ from their searches", `SELECT count(*) FROM
		(SELECT resolution, sum(reserved) AS open FROM ledger WHERE reserved <> 0 GROUP BY 1) l
		FULL JOIN resolutions r ON r.id = l.resolution
		WHERE coalesce(l.open, 0) <> CASE WHEN r.id IS NULL THEN max(l.open, 0) WHEN r.finished IS NULL THEN r.reserved ELSE 0 END`},
	{"API keys have not spent what the ledger says", `WITH RECURSIVE
		own(key, spent) AS MATERIALIZED (SELECT key, -sum(available) FROM ledger WHERE key IS NOT NULL GROUP BY 1),
		counted(key, spent) AS (SELECT key, spent FROM own UNION ALL
			SELECT ` + makerOf + `, c.spent FROM counted c JOIN keys k ON k.id = c.key WHERE k.maker < k.id)
		SELECT count(*) FROM keys k LEFT JOIN (SELECT key, sum(spent) AS spent FROM counted GROUP BY 1) c ON c.key = k.id WHERE k.spent <> coalesce(c.spent, 0)`},
	{"organizations have a usage that differs from their ledger", `SELECT count(*) FROM organizations o
		LEFT JOIN (SELECT organization, count(*) AS charges, sum(credits) AS credits FROM ledger WHERE kind = 'capture' GROUP BY 1) l ON l.organization = o.id
		LEFT JOIN (SELECT organization, sum(charges) AS charges, sum(credits) AS credits FROM usage GROUP BY 1) u ON u.organization = o.id
		WHERE coalesce(l.charges, 0) <> coalesce(u.charges, 0) OR coalesce(l.credits, 0) <> coalesce(u.credits, 0)`},
	{"numbers of callbacks are wrong", `SELECT count(*) FROM undelivered WHERE count <> (SELECT count(*) FROM outbox WHERE outbox.state = undelivered.state)`},
	{"callbacks have no body", `SELECT count(*) FROM outbox WHERE kept = 1 AND id NOT IN (SELECT delivery FROM bodies)`},
	{"receivers of callbacks wait too long", `SELECT count(*) FROM (SELECT organization, receiver, min(due) AS due FROM outbox WHERE state = 'pending' GROUP BY 1, 2) p
		LEFT JOIN lanes l USING(organization, receiver) WHERE l.due IS NULL OR l.due > p.due`},
	{"version of the credentials is missing", "SELECT count(*) = 0 FROM meta WHERE name = 'credentials'"},
}
