package backup

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/leadetl/leadetl/internal/groupcommit"
)

// Changes are what happened after a backup was made, and is undone when it is
// restored. They are read from the state that the backup replaces.
type Changes struct {
	Revoked []Key // valid again
	Made    []Key // unknown now
	Lost    []Credits
	Changed []Credits
	// Suspended and Deleted are the names of organizations that may call again.
	Suspended, Deleted []string
	// Secrets are the names of organizations whose callbacks are signed with an
	// older secret again.
	Secrets []string
	// Forgotten counts keyword searches that are unknown now, Resumed those that
	// are unfinished again.
	Forgotten, Resumed int
	// Reposted counts callbacks that had ended and will be posted again.
	Reposted int
	// Replies counts stored replies of the last 24 hours that are unknown now: a
	// repeated call would be charged again.
	Replies int
}

// Key is an API key.
type Key struct {
	ID, Organization string
	At               time.Time // when it was revoked, or made
}

// Credits is an organization with its available credits.
type Credits struct {
	ID, Organization string
	Before, After    int64 // before the restore, and after it
	// Granted and Charged are the sums of what was entered after the backup.
	Granted, Charged int64
}

// compare finds what the database at replaced has and the one at fresh lacks.
func compare(ctx context.Context, fresh, replaced string, now time.Time) (ch Changes, err error) {
	c, err := groupcommit.Connect(fresh)
	if err != nil {
		return Changes{}, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if _, err := c.ExecContext(ctx, "ATTACH DATABASE ? AS old", replaced); err != nil {
		return Changes{}, err
	}
	defer func() {
		_, detached := c.ExecContext(ctx, "DETACH DATABASE old")
		err = errors.Join(err, detached)
	}()
	key := func(rows *sql.Rows) (k Key, err error) {
		var at int64
		err = rows.Scan(&k.ID, &k.Organization, &at)
		k.At = time.UnixMilli(at).UTC()
		return k, err
	}
	credits := func(rows *sql.Rows) (o Credits, err error) {
		err = rows.Scan(&o.ID, &o.Organization, &o.Before, &o.After, &o.Granted, &o.Charged)
		return o, err
	}
	name := func(rows *sql.Rows) (s string, err error) {
		err = rows.Scan(&s)
		return s, err
	}
	ms := now.UnixMilli()
	err = errors.Join(
		read(ctx, c, &ch.Suspended, name, `SELECT o.name FROM main.organizations o JOIN old.organizations was USING(public)
			WHERE o.suspended IS NULL AND was.suspended IS NOT NULL AND o.test_of IS NULL ORDER BY o.name`),
		read(ctx, c, &ch.Deleted, name, `SELECT o.name FROM main.organizations o JOIN old.organizations was USING(public)
			WHERE o.deleted IS NULL AND was.deleted IS NOT NULL AND o.test_of IS NULL ORDER BY o.name`),
		read(ctx, c, &ch.Revoked, key, `SELECT k.public, coalesce(owner.name, o.name), was.revoked FROM main.keys k JOIN main.organizations o ON o.id = k.organization
			LEFT JOIN main.organizations owner ON owner.id = o.test_of
			JOIN old.keys was ON was.public = k.public
			WHERE k.revoked IS NULL AND was.revoked IS NOT NULL AND (k.expires IS NULL OR k.expires > ?) ORDER BY was.revoked`, ms),
		read(ctx, c, &ch.Made, key, `SELECT was.public, coalesce(owner.name, o.name), was.created FROM old.keys was JOIN old.organizations o ON o.id = was.organization
			LEFT JOIN old.organizations owner ON owner.id = o.test_of
			WHERE was.revoked IS NULL AND (was.expires IS NULL OR was.expires > ?) AND was.public NOT IN (SELECT public FROM main.keys) ORDER BY was.created`, ms),
		read(ctx, c, &ch.Lost, credits, `SELECT public, name, available, 0, 0, 0 FROM old.organizations
			WHERE public NOT IN (SELECT public FROM main.organizations) AND test_of IS NULL AND deleted IS NULL ORDER BY name`),
		read(ctx, c, &ch.Changed, credits, `SELECT o.public, o.name, was.available, o.available, coalesce(sum(iif(l.kind IN ('grant', 'adjust'), l.credits, 0)), 0),
				coalesce(sum(iif(l.kind = 'capture', l.credits, 0)), 0)
			FROM main.organizations o JOIN old.organizations was ON was.public = o.public
			LEFT JOIN old.ledger l ON l.organization = was.id AND l.seq > (SELECT coalesce(max(seq), 0) FROM main.ledger)
			WHERE o.test_of IS NULL GROUP BY o.id HAVING was.available <> o.available OR count(l.seq) > 0 ORDER BY o.name`),
		read(ctx, c, &ch.Secrets, name, `SELECT o.name FROM main.organizations o JOIN old.organizations was ON was.public = o.public
			WHERE (SELECT max(created) FROM main.secrets WHERE organization = o.id) < (SELECT max(created) FROM old.secrets WHERE organization = was.id) ORDER BY o.name`),
	)
	counted := c.QueryRowContext(ctx, `SELECT
		(SELECT count(*) FROM old.resolutions WHERE id NOT IN (SELECT id FROM main.resolutions)),
		(SELECT count(*) FROM main.resolutions r JOIN old.resolutions was USING(id) WHERE r.finished IS NULL AND was.finished IS NOT NULL),
		(SELECT count(*) FROM main.outbox d JOIN old.outbox was USING(webhook) WHERE d.state = 'pending' AND was.state <> 'pending'),
		(SELECT count(*) FROM old.replies WHERE at > ? AND key NOT IN (SELECT key FROM main.replies))`,
		now.Add(-24*time.Hour).UnixMilli()).Scan(&ch.Forgotten, &ch.Resumed, &ch.Reposted, &ch.Replies)
	return ch, errors.Join(err, counted)
}

// read appends all rows of a query.
func read[T any](ctx context.Context, c *groupcommit.Conn, into *[]T, scan func(*sql.Rows) (T, error), query string, args ...any) error {
	rows, err := c.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return err
		}
		*into = append(*into, one)
	}
	return rows.Err()
}
