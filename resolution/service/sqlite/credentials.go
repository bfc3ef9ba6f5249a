package sqlite

import (
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
// ErrNotFound for an unknown organization, ErrExists for a known hash,
// resolution.ErrInvalid for a label of more than 100 characters or with
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
		taken, err := t.sql.Row("SELECT 1 FROM keys WHERE hash = ?", []any{k.Hash[:]}, new(int))
		if err != nil {
			return err
		}
		if taken {
			return fmt.Errorf("key: %w", state.ErrExists)
		}
		if k.ID, err = t.sql.Insert("INSERT INTO keys(public, organization, label, hash, hint, created, expires, revoked, operations, networks, spending_limit) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			k.Public, k.Organization, k.Label, k.Hash[:], k.Hint, millis(k.Created), optional(k.Expires), optional(k.Revoked),
			strings.Join(k.Operations, ","), strings.Join(k.NetworkTexts(), ","), orNull(k.Limit, k.Limit == 0)); err != nil {
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

// KeyLeft returns how many credits a key may still spend; limited is false for any
// number.
func (s *Accounts) KeyLeft(ctx context.Context, key int64) (left int64, limited bool, err error) {
	var limit *int64
	var spent int64
	err = s.db.reads.QueryRowContext(ctx, "SELECT spending_limit, spent FROM keys WHERE id = ?", key).Scan(&limit, &spent)
	if err != nil || limit == nil {
		return 0, false, unavailable(err)
	}
	return max(*limit-spent, 0), true, nil
}

// RevokeKey revokes a key by its public id. Revoking it again changes nothing and
// is no error. An unknown id is ErrNotFound.
func (s *Accounts) RevokeKey(ctx context.Context, public string, now time.Time) error {
	return s.db.writer.Write(ctx, func(t *tx) error {
		var revoked *int64
		found, err := t.sql.Row("SELECT revoked FROM keys WHERE public = ?", []any{public}, &revoked)
		switch {
		case err != nil:
			return err
		case !found:
			return fmt.Errorf("key %q: %w", public, state.ErrNotFound)
		case revoked != nil:
			return nil
		}
		if err := t.sql.Exec("UPDATE keys SET revoked = ? WHERE public = ?", millis(now), public); err != nil {
			return err
		}
		return t.raiseCredentials()
	})
}

const keyColumns = `SELECT k.id, k.public, k.organization, k.label, k.hash, k.hint, k.created, k.expires, k.revoked, k.operations, k.networks, coalesce(k.spending_limit, 0), k.spent,
	o.test_of IS NOT NULL FROM keys k JOIN organizations o ON o.id = k.organization`

func scanKey(row interface{ Scan(...any) error }) (k state.Key, err error) {
	var hash []byte
	var created int64
	var expires, revoked *int64
	var operations, networks string
	err = row.Scan(&k.ID, &k.Public, &k.Organization, &k.Label, &hash, &k.Hint, &created, &expires, &revoked, &operations, &networks, &k.Limit, &k.Spent, &k.Test)
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

// Keys lists the keys of an organization and its test keys, the oldest first,
// with expired and revoked ones.
func (s *Accounts) Keys(ctx context.Context, organization int64) ([]state.Key, error) {
	return collect(ctx, s.db.reads, scanKey, keyColumns+" WHERE ?1 IN (k.organization, o.test_of) ORDER BY k.id", organization)
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
