package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/resolution/service/state"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 123e6, time.UTC)

// serve opens the state in dir until the test ends.
func serve(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Serve(dir)
	return until(t, s, err)
}

func administer(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Administer(dir, false)
	return until(t, s, err)
}

func until(t testing.TB, s *Store, err error) *Store {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// organization makes one with credits and returns its ID.
func organization(t testing.TB, s *Store, name string, credits int64) int64 {
	t.Helper()
	o, err := s.CreateOrganization(t.Context(), name, credits, nil, noon)
	if err != nil {
		t.Fatal(err)
	}
	return o.ID
}

func TestFolderIsOneServices(t *testing.T) {
	dir := t.TempDir()
	s, err := Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Serve(dir); !errors.Is(err, filelock.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second service: %v, want ErrLocked with the folder", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	serve(t, dir) // it is free again
}

func TestAdministerFindsState(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if _, err := Administer(dir, false); !errors.Is(err, ErrNoState) || !strings.Contains(err.Error(), dir) {
		t.Errorf("no folder: %v, want ErrNoState with the folder", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("looking made the folder: %v", err)
	}
	s, err := Administer(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	administer(t, dir)
}

// What an administrator does while a service runs is there for the service at
// once, and the other way around.
func TestAdministeredWhileServed(t *testing.T) {
	dir := t.TempDir()
	service := serve(t, dir)
	admin := administer(t, dir)
	before, err := service.CredentialsVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	org := organization(t, admin, "Acme", 10)
	if after, err := service.CredentialsVersion(t.Context()); err != nil || after <= before {
		t.Errorf("version %d after %d (%v)", after, before, err)
	}
	for range 5 { // each sees the other's sums, not its own of before
		if _, err := service.Settle(t.Context(), state.Charge{Organization: org, Credits: 2, At: noon}); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.ChangeCredits(t.Context(), state.CreditChange{Organization: org, Credits: 1, At: noon}); err != nil {
			t.Fatal(err)
		}
	}
	for name, s := range map[string]*Store{"service": service, "administrator": admin} {
		if b, err := s.Balance(t.Context(), org); err != nil || b.Available != 5 {
			t.Errorf("%s sees %d (%v), want 5", name, b.Available, err)
		}
	}
	audit(t, service)
}

func TestFolderNames(t *testing.T) {
	for _, name := range []string{"with space", "a?mode=ro", "50%41", "hash#tag", "semi;colon&amp", "größe"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), name)
			organization(t, serve(t, dir), "Acme", 1)
			if _, err := os.Stat(filepath.Join(dir, DatabaseName)); err != nil {
				t.Error(err)
			}
			if _, err := administer(t, dir).FindOrganization(t.Context(), "Acme"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := serve(t, dir)
	organization(t, s, "Acme", 1)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v (%v), want 0700", info.Mode(), err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files (%v), want the database and the two beside it", len(files), err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v (%v), want 0600", f.Name(), info.Mode(), err)
		}
	}
}

func TestNoDatabase(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, DatabaseName), []byte(strings.Repeat("no database\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Serve(dir)
	if err == nil || !strings.Contains(err.Error(), DatabaseName) || !strings.Contains(err.Error(), "not a database") {
		t.Errorf("got %v, want that the file is no database", err)
	}
	if err := os.Remove(filepath.Join(dir, DatabaseName)); err != nil {
		t.Fatal(err)
	}
	serve(t, dir) // and the lock was given back
}

// A database that lost its contents is not begun anew: no key would be known.
func TestEmptyDatabaseIsRefused(t *testing.T) {
	for name, contents := range map[string]func(path string) error{
		"truncated":      func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"without tables": emptyDatabase,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := contents(filepath.Join(dir, DatabaseName)); err != nil {
				t.Fatal(err)
			}
			_, serving := Serve(dir)
			_, creating := Administer(dir, true)
			_, finding := Administer(dir, false)
			for who, err := range map[string]error{"service": serving, "administrator that may create": creating, "administrator": finding} {
				if !errors.Is(err, ErrEmpty) || !strings.Contains(err.Error(), DatabaseName) {
					t.Errorf("%s: %v, want ErrEmpty with the file", who, err)
				}
			}
		})
	}
}

// emptyDatabase makes a database of SQLite with no table and no version.
func emptyDatabase(path string) error {
	if err := groupcommit.Create(path); err != nil {
		return err
	}
	c, err := groupcommit.Connect(path)
	if err != nil {
		return err
	}
	_, err = c.ExecContext(context.Background(), "CREATE TABLE other(x); DROP TABLE other")
	return errors.Join(err, c.Close())
}

// TestRefused: a state that may not be opened says why in words of the system.
func TestRefused(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may open everything")
	}
	dir := t.TempDir()
	s, err := Administer(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, DatabaseName), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Administer(dir, false); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
}
