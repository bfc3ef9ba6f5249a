package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// CreateOrganization makes an organization with its callback secret and, when
// credits are not 0, a first grant. Errors: ErrExists for a name that is taken,
// resolution.ErrInvalid for an invalid name.
func (s *Accounts) CreateOrganization(ctx context.Context, name string, credits int64, sealedSecret []byte, now time.Time) (state.Organization, error) {
	name, err := cleanName(name)
	if err != nil {
		return state.Organization{}, err
	}
	if credits != 0 {
		if err := checkCredits(credits); err != nil {
			return state.Organization{}, err
		}
	}
	o := state.Organization{Public: publicID("org_"), Name: name, Created: moment(millis(now))}
	err = s.db.writer.Write(ctx, func(t *tx) error {
		if err := t.nameIsFree(name); err != nil {
			return err
		}
		if o.ID, err = t.sql.Insert("INSERT INTO organizations(public, name, created) VALUES (?, ?, ?)", o.Public, name, millis(now)); err != nil {
			return err
		}
		if len(sealedSecret) > 0 {
			if err := t.addSecret(o.ID, sealedSecret, now); err != nil {
				return err
			}
		}
		if credits != 0 {
			if err := t.enter(entry{organization: o.ID, kind: state.Grant, credits: credits, at: now}); err != nil {
				return err
			}
		}
		return t.raiseCredentials()
	})
	if err != nil {
		return state.Organization{}, err
	}
	return o, nil
}

func (t *tx) nameIsFree(name string) error {
	taken, err := t.sql.Row("SELECT 1 FROM organizations WHERE name = ?", []any{name}, new(int))
	if err == nil && taken {
		err = fmt.Errorf("organization %q: %w", name, state.ErrExists)
	}
	return err
}

// testCredits is the initial balance of the ledger of test keys.
const testCredits = 1_000_000

// TestOrganization returns the organization that holds the ledger of another
// organization's test keys. It creates it if it is missing.
func (s *Accounts) TestOrganization(ctx context.Context, organization int64, now time.Time) (test state.Organization, err error) {
	err = s.db.writer.Write(ctx, func(t *tx) error {
		id, err := t.testOf(organization, now)
		test.ID = id
		return err
	})
	if err != nil {
		return state.Organization{}, err
	}
	a, err := scanAccount(s.db.reads.QueryRowContext(ctx, accountColumns+" WHERE id = ?", test.ID))
	return a.Organization, unavailable(err)
}

// testOf returns the organization that holds another organization's test keys.
// Its name is its public id, which no usual organization can have.
func (t *tx) testOf(organization int64, now time.Time) (id int64, err error) {
	if _, err := t.account(organization); err != nil {
		return 0, err
	}
	found, err := t.sql.Row("SELECT id FROM organizations WHERE test_of = ?", []any{organization}, &id)
	if err != nil || found {
		return id, err
	}
	public := publicID("org_")
	id, err = t.sql.Insert("INSERT INTO organizations(public, name, created, test_of, suspended) SELECT ?1, ?1, ?2, id, suspended FROM organizations WHERE id = ?3", public, millis(now), organization)
	if err != nil {
		return 0, err
	}
	if err := t.enter(entry{organization: id, kind: state.Grant, credits: testCredits, note: "test credits", at: now}); err != nil {
		return 0, err
	}
	return id, t.raiseCredentials()
}

// RenameOrganization gives an organization another name. Errors: ErrNotFound,
// ErrExists for a name that is taken, resolution.ErrInvalid for an invalid one.
func (s *Accounts) RenameOrganization(ctx context.Context, organization int64, name string) error {
	name, err := cleanName(name)
	if err != nil {
		return err
	}
	return s.db.writer.Write(ctx, func(t *tx) error {
		if _, err := t.account(organization); err != nil {
			return err
		}
		own, err := t.sql.Row("SELECT 1 FROM organizations WHERE name = ? AND id = ?", []any{name, organization}, new(int))
		if err != nil || own {
			return err
		}
		if err := t.nameIsFree(name); err != nil {
			return err
		}
		if err := t.sql.Exec("UPDATE organizations SET name = ? WHERE id = ?", name, organization); err != nil {
			return err
		}
		return t.raiseCredentials()
	})
}

// SuspendOrganization makes the service refuse an organization's calls from the
// given time on. The zero time ends the suspension. Jobs and callbacks continue.
// An unknown organization is ErrNotFound.
func (s *Accounts) SuspendOrganization(ctx context.Context, organization int64, from time.Time) error {
	return s.db.writer.Write(ctx, func(t *tx) error {
		if _, err := t.account(organization); err != nil {
			return err
		}
		if err := t.sql.Exec("UPDATE organizations SET suspended = ? WHERE id = ? OR test_of = ?", optional(from), organization, organization); err != nil {
			return err
		}
		return t.raiseCredentials()
	})
}

// DeleteOrganization removes an organization with its keys, secrets, jobs,
// results and callbacks, and those of its test keys. Unfinished jobs are
// cancelled. The ledger and the usage are kept, under the public id alone. An
// unknown organization is ErrNotFound.
func (s *Accounts) DeleteOrganization(ctx context.Context, organization int64, now time.Time) error {
	err := s.db.writer.Write(ctx, func(t *tx) error {
		if _, err := t.account(organization); err != nil {
			return err
		}
		if err := t.endJobs(organization, now); err != nil {
			return err
		}
		const these = " IN (SELECT id FROM organizations WHERE id = ?1 OR test_of = ?1)"
		for _, statement := range []string{
			"UPDATE organizations SET deleted = ?2, name = public WHERE id" + these,
			"UPDATE keys SET revoked = coalesce(revoked, ?2), label = '' WHERE organization" + these,
			"DELETE FROM secrets WHERE organization" + these,
			"DELETE FROM snapshots WHERE organization" + these,
		} {
			if err := t.sql.Exec(statement, organization, millis(now)); err != nil {
				return err
			}
		}
		return t.raiseCredentials()
	})
	if err == nil {
		_, err = s.db.purgeDeleted(ctx, now)
	}
	return err
}

// endJobs cancels the unfinished jobs of an organization and of its test keys.
func (t *tx) endJobs(organization int64, now time.Time) error {
	for {
		var id uuid.UUID
		found, err := t.sql.Row("SELECT id FROM resolutions WHERE finished IS NULL AND organization IN (SELECT id FROM organizations WHERE id = ?1 OR test_of = ?1) LIMIT 1",
			[]any{organization}, &id)
		if err != nil || !found {
			return err
		}
		j, err := t.unfinished(id)
		if err != nil {
			return err
		}
		if err := t.finish(j, state.Finish{ID: id, Status: state.Cancelled, At: now}); err != nil {
			return err
		}
	}
}

const accountColumns = "SELECT id, public, name, created, available, reserved, coalesce(test_of, 0), suspended FROM organizations"

func scanAccount(row interface{ Scan(...any) error }) (a state.Account, err error) {
	var created int64
	var suspended *int64
	o := &a.Organization
	err = row.Scan(&o.ID, &o.Public, &o.Name, &created, &a.Balance.Available, &a.Balance.Reserved, &o.TestOf, &suspended)
	o.Created, o.Suspended = moment(created), optionalMoment(suspended)
	return a, err
}

// Organizations lists all organizations by name, without those of test keys.
func (s *Accounts) Organizations(ctx context.Context) ([]state.Account, error) {
	return collect(ctx, s.db.reads, scanAccount, accountColumns+" WHERE deleted IS NULL AND test_of IS NULL ORDER BY name")
}

// FindOrganization finds an organization by its public id or its name. It does
// not find those of test keys.
func (s *Accounts) FindOrganization(ctx context.Context, nameOrPublic string) (state.Organization, error) {
	given := strings.TrimSpace(nameOrPublic)
	// No name looks like a public id, so at most one row matches.
	a, err := scanAccount(s.db.reads.QueryRowContext(ctx, accountColumns+" WHERE (public = ?1 OR name = ?1) AND deleted IS NULL AND test_of IS NULL", given))
	if errors.Is(err, sql.ErrNoRows) {
		return state.Organization{}, fmt.Errorf("organization %q: %w", given, state.ErrNotFound)
	}
	return a.Organization, unavailable(err)
}

// nameLength is the longest name of an organization and the longest label of
// a key, in characters.
const nameLength = 100

func cleanName(name string) (string, error) {
	name = strings.TrimSpace(name)
	switch {
	case name == "":
		return "", fmt.Errorf("%w: an organization needs a name", resolution.ErrInvalid)
	case !printable(name):
		return "", fmt.Errorf("%w: a name must have at most %d characters, all of them printable", resolution.ErrInvalid, nameLength)
	case isPublicID("org_", name):
		return "", fmt.Errorf("%w: a name must not look like the id of an organization", resolution.ErrInvalid)
	}
	return name, nil
}

// printable reports whether s can be part of a name: valid UTF-8, visible, not too
// long.
func printable(s string) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= nameLength &&
		strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// publicID makes a public id: a prefix and 64 random bits.
func publicID(prefix string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}

func isPublicID(prefix, s string) bool {
	digits, found := strings.CutPrefix(s, prefix)
	b, err := hex.DecodeString(digits)
	return found && err == nil && len(b) == 8
}
