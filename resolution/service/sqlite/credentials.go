package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// AddKey stores a key and returns the record with a new ID and Public. A test
// key is added to the TestOrganization of the given organization. Errors:
// ErrNotFound for an unknown organization or a Maker that is revoked, ErrExists for a
// known hash, resolution.ErrInvalid for a label of more than 100 characters or with
// unprintable ones.
func (s *Accounts) AddKey(ctx context.Context, k state.Key) (state.Key, error) {
	k.Label = strings.TrimSpace(k.Label)
	if !printable(k.Label) {
		return state.Key{}, fmt.Errorf("%w: a label must have at most %d characters, all of them printable", resolution.ErrInvalid, nameLength)
	}
	if err := checkLimit(k.Limit); err != nil {
		return state.Key{}, err
	}
	k.Public = publicID("key_")
	err := s.db.writer.Write(ctx, func(t *tx) error {
		if _, err := t.available(k.Organization); err != nil {
			return err
		}
		var isTest bool
		if _, err := t.sql.Row("SELECT test_of IS NOT NULL FROM organizations WHERE id = ?", []any{k.Organization}, &isTest); err != nil {
			return err
		}
		if isTest && !k.Test {
			return fmt.Errorf("%w: this organization may only have test keys", resolution.ErrInvalid)
		}
		if k.Test && !isTest {
			test, err := t.testOf(k.Organization, k.Created)
			if err != nil {
				return err
			}
			k.Organization = test
		}
		if k.Maker != 0 { // in this change, so that a key that is being revoked makes none
			valid, err := t.sql.Row("SELECT public FROM keys WHERE id = ? AND revoked IS NULL", []any{k.Maker}, &k.MakerPublic)
			if err != nil {
				return err
			}
			if !valid {
				return fmt.Errorf("the key that makes it: %w", state.ErrNotFound)
			}
		}
		taken, err := t.sql.Row("SELECT 1 FROM keys WHERE hash = ?", []any{k.Hash[:]}, new(int))
		if err != nil {
			return err
		}
		if taken {
			return fmt.Errorf("key: %w", state.ErrExists)
		}
		if k.ID, err = t.sql.Insert("INSERT INTO keys(public, organization, label, hash, hint, created, expires, revoked, operations, networks, spending_limit, makes_keys, maker) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			k.Public, k.Organization, k.Label, k.Hash[:], k.Hint, millis(k.Created), optional(k.Expires), optional(k.Revoked),
			strings.Join(k.Operations, ","), strings.Join(k.NetworkTexts(), ","), orNull(k.Limit, k.Limit == 0), k.MakesKeys, orNull(k.Maker, k.Maker == 0)); err != nil {
			return err
		}
		return t.raiseCredentials()
	})
	if err != nil {
		return state.Key{}, err
	}
	return k, nil
}

func checkLimit(credits int64) error {
	if credits < 0 || credits > creditLimit {
		return fmt.Errorf("%w: a key may spend 1 to %d credits", resolution.ErrInvalid, int64(creditLimit))
	}
	return nil
}

// LimitKey sets how many credits a key may spend in all; 0 is any number. What it has
// spent stays. An unknown id is ErrNotFound.
func (s *Accounts) LimitKey(ctx context.Context, public string, credits int64) error {
	if err := checkLimit(credits); err != nil {
		return err
	}
	return s.db.writer.Write(ctx, func(t *tx) error {
		var id int64
		found, err := t.sql.Row("SELECT id FROM keys WHERE public = ?", []any{public}, &id)
		switch {
		case err != nil:
			return err
		case !found:
			return fmt.Errorf("key %q: %w", public, state.ErrNotFound)
		}
		k, err := t.spender(id) // changes of this group see the new limit
		if err != nil {
			return err
		}
		if k.limit = nil; credits != 0 {
			k.limit = &credits
		}
		if err := t.sql.Exec("UPDATE keys SET spending_limit = ? WHERE id = ?", k.limit, id); err != nil {
			return err
		}
		return t.raiseCredentials()
	})
}

// makerOf selects the key that made key k, if what k spends counts for it too. A test key
// spends the credits of another ledger than a live key that made it.
const makerOf = "(SELECT m.id FROM keys m WHERE m.id = k.maker AND m.organization = k.organization)"

// KeyLeft returns how many credits a key may still spend, by its own limit and by those of
// the keys that made it; limited is false for any number.
func (s *Accounts) KeyLeft(ctx context.Context, key int64) (left int64, limited bool, err error) {
	var least *int64
	err = s.db.reads.QueryRowContext(ctx, `WITH RECURSIVE makers(id) AS (
			SELECT ?1 UNION ALL SELECT `+makerOf+` FROM makers JOIN keys k ON k.id = makers.id
		) SELECT min(k.spending_limit - k.spent) FROM makers JOIN keys k ON k.id = makers.id`, key).Scan(&least)
	if err != nil || least == nil {
		return 0, false, unavailable(err)
	}
	return max(*least, 0), true, nil
}

// madeBy selects the IDs of the keys that key ?1 made, and of those that they made.
const madeBy = "(WITH RECURSIVE made(id) AS (SELECT id FROM keys WHERE maker = ?1 UNION ALL SELECT k.id FROM made JOIN keys k ON k.maker = made.id) SELECT id FROM made)"

// MadeKeys lists the keys that a key made, and those that they made, the oldest first.
func (s *Accounts) MadeKeys(ctx context.Context, key int64) ([]state.Key, error) {
	return collect(ctx, s.db.reads, scanKey, keyColumns+" WHERE k.id IN "+madeBy+" ORDER BY k.id", key)
}

// RevokeKey revokes a key by its public id, and with made those that it made. Revoking it
// again changes nothing and is no error. An unknown id is ErrNotFound.
func (s *Accounts) RevokeKey(ctx context.Context, public string, made bool, now time.Time) error {
	return s.db.writer.Write(ctx, func(t *tx) error {
		var id int64
		found, err := t.sql.Row("SELECT id FROM keys WHERE public = ?", []any{public}, &id)
		switch {
		case err != nil:
			return err
		case !found:
			return fmt.Errorf("key %q: %w", public, state.ErrNotFound)
		}
		n, err := t.sql.Update("UPDATE keys SET revoked = ?2 WHERE revoked IS NULL AND (id = ?1 OR ?3 AND id IN "+madeBy+")", id, millis(now), made)
		if err != nil || n == 0 {
			return err
		}
		return t.raiseCredentials()
	})
}

const keyColumns = `SELECT k.id, k.public, k.organization, k.label, k.hash, k.hint, k.created, k.expires, k.revoked, k.operations, k.networks, coalesce(k.spending_limit, 0), k.spent,
	o.test_of IS NOT NULL, k.makes_keys, coalesce(k.maker, 0), coalesce((SELECT m.public FROM keys m WHERE m.id = k.maker), '')
	FROM keys k JOIN organizations o ON o.id = k.organization`

func scanKey(row interface{ Scan(...any) error }) (k state.Key, err error) {
	var hash []byte
	var created int64
	var expires, revoked *int64
	var operations, networks string
	err = row.Scan(&k.ID, &k.Public, &k.Organization, &k.Label, &hash, &k.Hint, &created, &expires, &revoked, &operations, &networks, &k.Limit, &k.Spent, &k.Test,
		&k.MakesKeys, &k.Maker, &k.MakerPublic)
	copy(k.Hash[:], hash)
	k.Created, k.Expires, k.Revoked = moment(created), optionalMoment(expires), optionalMoment(revoked)
	if operations != "" {
		k.Operations = strings.Split(operations, ",")
	}
	if err == nil {
		k.Networks, err = splitNetworks(networks)
	}
	return k, err
}

func splitNetworks(text string) (networks []netip.Prefix, err error) {
	for one := range strings.SplitSeq(text, ",") {
		if one == "" {
			continue
		}
		n, err := netip.ParsePrefix(one)
		if err != nil {
			return nil, err
		}
		networks = append(networks, n)
	}
	return networks, nil
}

// Keys lists the chosen keys, the newest first, with expired and revoked ones.
func (s *Accounts) Keys(ctx context.Context, c state.KeyChoice) ([]state.Key, error) {
	return collect(ctx, s.db.reads, scanKey, keyColumns+` WHERE k.organization IN (SELECT id FROM organizations WHERE id = ?1 OR test_of = ?1) AND (?2 = 0 OR k.id < ?2)
		AND (NOT ?3 OR o.test_of IS NOT NULL)
		AND (?4 = '' OR instr(lower(k.label), lower(?4)) > 0 OR instr(k.public, ?4) > 0 OR k.hint = ltrim(?4, '.…'))
		ORDER BY k.id DESC LIMIT ?5`, c.Organization, c.Before, c.Test, strings.TrimSpace(c.Search), cmp.Or(c.Limit, -1))
}

// FindKey finds a key by its public id, among those of an organization and its test keys,
// or among all if organization is 0. Otherwise it is ErrNotFound.
func (s *Accounts) FindKey(ctx context.Context, organization int64, public string) (state.Key, error) {
	found, err := collect(ctx, s.db.reads, scanKey, keyColumns+" WHERE k.public = ?1 AND (?2 = 0 OR ?2 IN (k.organization, o.test_of))", strings.TrimSpace(public), organization)
	if err != nil {
		return state.Key{}, err
	}
	if len(found) == 0 {
		return state.Key{}, fmt.Errorf("key: %w", state.ErrNotFound)
	}
	return found[0], nil
}

// RotateSecret gives an organization a new callback secret. The previous one stays
// valid until oldUntil, which may be now. An older one ends now, so there are
// never more than two. An unknown organization is ErrNotFound.
func (s *Accounts) RotateSecret(ctx context.Context, organization int64, sealed []byte, now, oldUntil time.Time) error {
	return s.db.writer.Write(ctx, func(t *tx) error {
		if _, err := t.available(organization); err != nil {
			return err
		}
		if err := t.sql.Exec("DELETE FROM secrets WHERE organization = ? AND expires IS NOT NULL", organization); err != nil {
			return err
		}
		if err := t.sql.Exec("UPDATE secrets SET expires = ? WHERE organization = ?", millis(oldUntil), organization); err != nil {
			return err
		}
		if err := t.sql.Exec("DELETE FROM secrets WHERE organization = ? AND expires <= ?", organization, millis(now)); err != nil {
			return err
		}
		if err := t.addSecret(organization, sealed, now); err != nil {
			return err
		}
		return t.raiseCredentials()
	})
}

func (t *tx) addSecret(organization int64, sealed []byte, now time.Time) error {
	return t.sql.Exec("INSERT INTO secrets(organization, sealed, created) VALUES (?, ?, ?)", organization, sealed, millis(now))
}

const secretColumns = "SELECT id, organization, sealed, created, expires FROM secrets"

func scanSecret(row interface{ Scan(...any) error }) (x state.Secret, err error) {
	var created int64
	var expires *int64
	err = row.Scan(&x.ID, &x.Organization, &x.Sealed, &created, &expires)
	x.Created, x.Expires = moment(created), optionalMoment(expires)
	return x, err
}

// Secrets lists the valid callback secrets of an organization, the current one
// first.
func (s *Accounts) Secrets(ctx context.Context, organization int64, now time.Time) ([]state.Secret, error) {
	return collect(ctx, s.db.reads, scanSecret, secretColumns+" WHERE organization = ? AND (expires IS NULL OR expires > ?) ORDER BY id DESC", organization, millis(now))
}

// CredentialsVersion rises with every change to organizations, keys and secrets.
// While it is the same, Credentials returns the same.
func (s *Accounts) CredentialsVersion(ctx context.Context) (version int64, err error) {
	err = s.db.reads.QueryRowContext(ctx, credentialsVersion).Scan(&version)
	return version, unavailable(err)
}

const credentialsVersion = "SELECT value FROM meta WHERE name = 'credentials'"

// raiseCredentials must be called in every change to what Credentials returns.
func (t *tx) raiseCredentials() error {
	return t.sql.Exec("UPDATE meta SET value = value + 1 WHERE name = 'credentials'")
}

// Credentials reads all organizations, keys and secrets.
func (s *Accounts) Credentials(ctx context.Context) (c state.Credentials, err error) {
	// In one transaction, so that the version belongs to what is read.
	reading, err := s.db.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return state.Credentials{}, unavailable(err)
	}
	defer reading.Rollback() // it only reads
	if err := reading.QueryRowContext(ctx, credentialsVersion).Scan(&c.Version); err != nil {
		return state.Credentials{}, unavailable(err)
	}
	accounts, err := collect(ctx, reading, scanAccount, accountColumns+" WHERE deleted IS NULL ORDER BY id")
	if err != nil {
		return state.Credentials{}, err
	}
	for _, a := range accounts {
		c.Organizations = append(c.Organizations, a.Organization)
	}
	if c.Keys, err = collect(ctx, reading, scanKey, keyColumns+" WHERE o.deleted IS NULL ORDER BY k.id"); err != nil {
		return state.Credentials{}, err
	}
	if c.Secrets, err = collect(ctx, reading, scanSecret, secretColumns+" ORDER BY organization, id DESC"); err != nil {
		return state.Credentials{}, err
	}
	return c, nil
}
