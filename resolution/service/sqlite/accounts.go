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

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// CreateOrganization makes an organization with its callback secret and, when
// credits are not 0, a first grant. Errors: ErrExists for a name that is taken,
// resolution.ErrInvalid for an invalid name.
func (s *Store) CreateOrganization(ctx context.Context, name string, credits int64, sealedSecret []byte, now time.Time) (state.Organization, error) {
	name, err := cleanName(name)
	if err != nil {
		return state.Organization{}, err
	}
	if credits != 0 {
		if err := checkGrant(credits); err != nil {
			return state.Organization{}, err
		}
	}
	o := state.Organization{Public: publicID("org_"), Name: name, Created: moment(millis(now))}
	err = s.writer.Write(ctx, func(t *tx) error {
		taken, err := t.sql.Row("SELECT 1 FROM organizations WHERE name = ?", []any{name}, new(int))
		if err != nil {
			return err
		}
		if taken {
			return fmt.Errorf("organization %q: %w", name, state.ErrExists)
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

const accountColumns = "SELECT id, public, name, created, available, reserved FROM organizations"

func scanAccount(row interface{ Scan(...any) error }) (a state.Account, err error) {
	var created int64
	err = row.Scan(&a.Organization.ID, &a.Organization.Public, &a.Organization.Name, &created, &a.Balance.Available, &a.Balance.Reserved)
	a.Organization.Created = moment(created)
	return a, err
}

// Organizations lists all organizations by name.
func (s *Store) Organizations(ctx context.Context) ([]state.Account, error) {
	return collect(ctx, s.reads, scanAccount, accountColumns+" ORDER BY name")
}

// FindOrganization finds an organization by its public id or its name.
func (s *Store) FindOrganization(ctx context.Context, nameOrPublic string) (state.Organization, error) {
	given := strings.TrimSpace(nameOrPublic)
	// No name looks like a public id, so at most one row answers.
	a, err := scanAccount(s.reads.QueryRowContext(ctx, accountColumns+" WHERE public = ?1 OR name = ?1", given))
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
