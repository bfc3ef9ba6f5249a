package world

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/resolution/service"
	"github.com/leadetl/leadetl/resolution/service/backup"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// checked is what damage must not change unseen: credits, who has them, and which calls were paid.
var checked = []string{
	"SELECT id, available, reserved FROM organizations ORDER BY id",
	ledgerOf,
	"SELECT id, organization, hash, spent FROM keys ORDER BY id",
	"SELECT organization, sum(charges), sum(credits) FROM usage GROUP BY organization HAVING sum(charges) > 0 ORDER BY organization",
	"SELECT key FROM replies ORDER BY key",
	"SELECT id, organization, finished IS NULL, iif(finished IS NULL, reserved, 0) FROM resolutions ORDER BY id",
	"SELECT webhook, state FROM outbox ORDER BY webhook",
}

const ledgerOf = "SELECT organization, kind, credits, available, reserved, key FROM ledger ORDER BY seq"

// damage changes a file of the state that was synced. The next service finds it, and so does a
// backup; or it changed nothing that is checked. Then the backup from before is put back.
func (h *history) damage(ctx context.Context) {
	dir, err := os.MkdirTemp(worldtest.Memory(), "leadetl-world-")
	h.certainly("make a folder", err)
	defer os.RemoveAll(dir)
	before, kept := filepath.Join(dir, "before"), filepath.Join(dir, "backup.sqlite")
	h.certainly("copy", os.CopyFS(before, os.DirFS(h.dir)))
	_, err = backup.Write(ctx, before, kept)
	h.certainly("back up", err)
	was, err := h.contents(ctx, kept)
	h.certainly("read the backup", err)

	name := sqlite.DatabaseName
	if h.world.Below(4, "damaged file") == 0 {
		name += "-wal"
	}
	did := h.disk.Damage(name, "")
	if did == "" {
		return
	}
	h.certainly("remount", h.disk.Remount(h.dir, false))
	if log, err := os.Stat(filepath.Join(h.dir, sqlite.DatabaseName+"-wal")); did == "gone" && (err != nil || log.Size() == 0) {
		saw(unseenDamage) // it looks like a state that was never made
		h.restore(ctx, kept)
		return
	}
	after := filepath.Join(dir, "after")
	h.certainly("copy", os.CopyFS(after, os.DirFS(h.dir)))
	_, found := backup.Write(ctx, after, filepath.Join(dir, "damaged.sqlite"))
	posts := len(h.posts)
	if harmless := h.judgeDamage(ctx, name, did, found, was, filepath.Join(after, sqlite.DatabaseName)); !harmless && len(h.wrong) == 0 {
		h.restore(ctx, kept)
		h.posts = h.posts[:posts] // what was posted since is posted again, for another search
	}
}

// certainly notes an error outside of a life, where nothing fails.
func (h *history) certainly(what string, err error) {
	if err != nil {
		h.wrongly("%s: %v", what, err)
	}
}

// judgeDamage checks what a service says of a damaged state. found is what its backup said. It
// reports whether all that was stored is there as it was.
func (h *history) judgeDamage(ctx context.Context, name, did string, found error, was [][]string, after string) (harmless bool) {
	said := h.inspect(ctx)
	h.world.Note("%s: %s; %s", name, did, said)
	if _, other := errors.AsType[*format.Error](found); (said == "") != (found == nil) || errors.Is(found, state.ErrDamaged) && !strings.Contains(said, "damaged") ||
		found != nil && !other && !errors.Is(found, state.ErrDamaged) && !errors.Is(found, sqlite.ErrEmpty) {
		h.wrongly("%s is %s: a service says %q, and a backup %v", name, did, said, found)
	}
	if said != "" {
		saw(foundDamage)
		return false
	}
	is, err := h.contents(ctx, after)
	if err != nil {
		h.wrongly("%s is %s, which nobody found: %v", name, did, err)
		return false
	}
	last := len(checked)
	switch {
	case slices.Equal(was[last], is[last]):
		saw(harmlessDamage)
		return true
	case slices.EqualFunc(was[:last], is[:last], slices.Equal):
		saw(unseenDamage)
	case name != sqlite.DatabaseName && len(is[1]) <= len(was[1]) && slices.Equal(is[1], was[1][:len(is[1])]):
		saw(olderState)
	default:
		for i, query := range checked {
			if !slices.Equal(was[i], is[i]) {
				h.wrongly("%s is %s, which nobody found: %s was %v, and is %v", name, did, query, was[i], is[i])
			}
		}
	}
	return false
}

// inspect is the life of a service on a damaged state, without calls. It returns what it says of
// the damage: "" for nothing.
func (h *history) inspect(ctx context.Context) (said string) {
	failing := h.disk.Failing
	h.disk.Failing, h.disk.FullFrom = 0, 0
	defer func() { h.disk.Failing = failing }()
	ctx = h.world.Begin(ctx, 0)
	defer h.end(false)
	s, err := sqlite.Serve(h.dir)
	if err != nil {
		return err.Error()
	}
	err = h.run(ctx, s, func(ctx context.Context, v *service.Service) {
		time.Sleep(5 * time.Second)
		if status, body := h.readiness(ctx, v); status != http.StatusOK {
			said = body
		}
	})
	if err != nil {
		said = err.Error()
	}
	_ = s.Close()
	return said
}

// contents reads what is checked of a state; its last element is all that is in it.
func (h *history) contents(ctx context.Context, path string) (all [][]string, err error) {
	db, err := sql.Open("sqlite", groupcommit.URI(path, "query_only(1)"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, query := range checked {
		rows, err := readRows(ctx, db, query)
		if err != nil {
			return nil, err
		}
		all = append(all, rows)
	}
	tables, err := readRows(ctx, db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'meta' ORDER BY name")
	var everything []string
	for _, table := range tables {
		rows, failed := readRows(ctx, db, "SELECT * FROM "+table)
		err = errors.Join(err, failed)
		everything = append(append(everything, table), rows...)
	}
	return append(all, everything), err
}

func readRows(ctx context.Context, db *sql.DB, query string) (all []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	for err == nil && rows.Next() {
		row, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		err = rows.Scan(into...)
		all = append(all, fmt.Sprint(row...))
	}
	return all, errors.Join(err, rows.Err())
}

// restore puts a backup back, in the place of the state and of all that is beside it.
func (h *history) restore(ctx context.Context, file string) {
	h.unmount()
	_, err := backup.Restore(ctx, file, h.dir, h.clock.Now())
	h.certainly("put a backup back", err)
	entries, err := os.ReadDir(h.dir)
	h.certainly("list", err)
	for _, e := range entries {
		if e.Name() != sqlite.DatabaseName {
			h.certainly("remove what was replaced", os.Remove(filepath.Join(h.dir, e.Name())))
		}
	}
	failing, slow := h.disk.Failing, h.disk.Slow
	h.disk = worldtest.NewDisk(h.world)
	h.disk.Failing, h.disk.Slow = failing, slow
	h.certainly("mount", h.mount())
	saw(theBackup)
}
