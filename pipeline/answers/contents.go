package answers

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/internal/groupcommit"
)

// Contents is what a store held at one moment.
type Contents struct {
	// InUse means that a process had the store open: calls may be under way.
	InUse bool

	from   querier
	later  *generation // changes in the logs that the database lacks
	scopes map[int64]Scope
	runs   map[int64]string
	close  func() error
}

// Contents moves all changes into the database, and returns the content of the
// database. The store may be used at the same time.
func (s *Store) Contents() (*Contents, error) {
	if err := s.flush(); err != nil {
		return nil, err
	}
	return &Contents{InUse: true, from: s.reads, later: newGeneration(0), close: func() error { return nil }}, nil
}

// maxLooks is how often OpenContents tries again if the logs move into the
// database while it reads.
const maxLooks = 20

// OpenContents reads the answers in dir while another process may have them
// open. It changes nothing, so it works with a full disk or a read-only folder. It
// returns what was on disk at one moment during the call.
func OpenContents(ctx context.Context, dir string) (c *Contents, err error) {
	path, err := filepath.Abs(filepath.Join(dir, databaseName))
	if err != nil {
		return nil, err
	}
	logs, err := logsIn(disk.Dir(filepath.Dir(path)))
	if err != nil {
		return nil, fault(err)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if len(logs) > 0 {
			return nil, fmt.Errorf("stored answers: %w", appendlog.Missing(path))
		}
		return nil, fmt.Errorf("%s: %w", dir, ErrNone)
	}
	for range maxLooks {
		c, err = openContents(ctx, path)
		if err == nil || !errors.Is(err, appendlog.ErrDamaged) {
			return c, err
		}
		// The log of a process that is at work may have moved into the database, or have grown while it was
		// read.
		if inUse, other := filelock.InUse(filepath.Dir(path)); other != nil || !inUse {
			break
		}
	}
	return nil, err
}

// openContents starts reading the database. It leaves an existing write-ahead
// log of SQLite unchanged. If there is none, and SQLite cannot create one, it
// reads the file itself.
func openContents(ctx context.Context, path string) (*Contents, error) {
	uri := groupcommit.URI(path, "query_only(1)")
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		return readContents(ctx, path, strings.Replace(uri, "mode=rw", "mode=ro", 1))
	}
	c, err := readContents(ctx, path, uri)
	if _, other := errors.AsType[*format.Error](err); err == nil || other || errors.Is(err, ErrNone) || errors.Is(err, appendlog.ErrDamaged) || ctx.Err() != nil {
		return c, err
	}
	return readContents(ctx, path, uri+"&immutable=1")
}

func readContents(ctx context.Context, path, uri string) (_ *Contents, err error) {
	db, err := sql.Open("sqlite", uri)
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fault(errors.Join(err, db.Close()))
	}
	c := &Contents{from: conn, later: newGeneration(0), close: func() error { return errors.Join(conn.Close(), db.Close()) }}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return nil, fault(err)
	}
	var number int
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&number); err != nil {
		return nil, fault(err)
	}
	if number == 0 {
		if logs, err := logsIn(disk.Dir(filepath.Dir(path))); err != nil || len(logs) > 0 {
			return nil, errors.Join(err, fmt.Errorf("stored answers: %w", errNoWAL))
		}
		var tables int
		if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
			return nil, fault(err)
		}
		if tables == 0 { // a kill came before the first commit
			return nil, fmt.Errorf("%s: %w", filepath.Dir(path), ErrNone)
		}
	}
	if err := format.Check(path, number, schemaFormat, ExportFirst); err != nil {
		return nil, err
	}
	if err := c.addLogs(ctx, disk.Dir(filepath.Dir(path))); err != nil {
		return nil, err
	}
	c.InUse, err = filelock.InUse(filepath.Dir(path))
	return c, err
}

// addLogs adds the changes that are in the logs and not in the database.
func (c *Contents) addLogs(ctx context.Context, dir disk.Folder) error {
	at, err := readLogState(ctx, c.from)
	if err != nil {
		return err
	}
	logs, _, err := readLogs(dir, at)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("stored answers: %w: %w", appendlog.ErrDamaged, err)
	}
	if err != nil {
		return err
	}
	c.scopes, c.runs = map[int64]Scope{}, map[int64]string{}
	for _, g := range logs {
		maps.Copy(c.scopes, g.scopes)
		for id, r := range g.runs {
			c.runs[id] = r.Name
		}
		for _, a := range g.answers {
			c.later.addAnswer(a)
		}
		for h, call := range g.calls {
			if c.later.calls[h] = call; call == nil {
				c.later.bodies[h] = nil
			}
		}
		maps.Copy(c.later.bodies, g.bodies)
	}
	return nil
}

// replaced returns, as JSON, the numbers of the answers in the database that
// later answers replace.
func (c *Contents) replaced(ctx context.Context) (string, error) {
	seqs := []int64{}
	for key := range c.later.latest {
		some, err := collect(ctx, c.from, func(row interface{ Scan(...any) error }) (seq int64, err error) {
			err = row.Scan(&seq)
			return seq, err
		}, "SELECT seq FROM keys WHERE hash = ?", key[:])
		if err != nil {
			return "", err
		}
		seqs = append(seqs, some...)
	}
	text, err := json.Marshal(seqs)
	return string(text), err
}

// Calls returns all open calls, ordered by their hashes. A call that was under
// way when its process died is unknown.
func (c *Contents) Calls(ctx context.Context) (open []OpenCall, err error) {
	stored, err := readCalls(ctx, c.from)
	if err != nil {
		return nil, err
	}
	bodies, err := readBodies(ctx, c.from)
	if err != nil {
		return nil, err
	}
	maps.Copy(bodies, c.later.bodies)
	now := map[Hash]*call{}
	for _, call := range stored {
		now[call.open.Hash] = call
	}
	for h, call := range c.later.calls {
		if now[h] = call; call != nil {
			call.open.Scope, call.open.Run = c.scopes[call.scope], c.runs[call.run]
		}
	}
	for _, call := range now {
		if call == nil {
			continue
		}
		one := call.open
		one.Body = bodies[one.Hash]
		if one.State == UnderWay && !c.InUse {
			one.State = Unknown
		}
		open = append(open, one)
	}
	slices.SortFunc(open, byHash)
	return open, nil
}

// Unknown lists the calls that may have been billed and have no answer, ordered
// by their hashes.
func (c *Contents) Unknown(ctx context.Context) iter.Seq2[OpenCall, error] {
	return c.callsIn(ctx, Unknown)
}

// Parked lists the calls whose answers come later, ordered by their hashes.
func (c *Contents) Parked(ctx context.Context) iter.Seq2[OpenCall, error] {
	return c.callsIn(ctx, Parked)
}

func (c *Contents) callsIn(ctx context.Context, state State) iter.Seq2[OpenCall, error] {
	return func(yield func(OpenCall, error) bool) {
		open, err := c.Calls(ctx)
		if err != nil {
			yield(OpenCall{}, err)
			return
		}
		for _, call := range open {
			if call.State == state && !yield(call, nil) {
				return
			}
		}
	}
}

// Close releases the database.
func (c *Contents) Close() error { return c.close() }
