package sqlite

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// TestFindDamage: a value that changed on the disk is found where another one of the database
// contradicts it.
func TestFindDamage(t *testing.T) {
	dir := t.TempDir()
	s, err := Serve(dir)
	must(t, err)
	org := organization(t, s, "Acme", 100)
	maker, err := s.AddKey(t.Context(), state.Key{Organization: org, Hash: [32]byte{1}, Created: noon, MakesKeys: true})
	must(t, err)
	key, err := s.AddKey(t.Context(), state.Key{Organization: org, Hash: [32]byte{2}, Created: noon, Maker: maker.ID})
	must(t, err)
	for i := range 3 {
		id := uuid.UUID{byte(i + 1)}
		_, err = s.Settle(t.Context(), state.Charge{Organization: org, Key: key.ID, Credits: 2, Resolution: id, Operation: resolution.Enrichment, At: noon,
			Reply:    &state.Reply{Key: [32]byte{byte(i + 1)}, Status: 200, Body: bytes.Repeat([]byte("{}"), 1+i*packedFrom)},
			Callback: &state.Callback{WebhookID: id.String(), Organization: org, Resolution: id, Receiver: "a.example:443", URL: "https://a.example/", Due: noon}})
		must(t, err)
	}
	job := state.Job{ID: uuid.UUID{9}, Organization: org, Key: key.ID, Operation: resolution.KeywordToLead, Requested: noon, Reserved: 10, Work: []byte("{}"), Payload: []byte("{}")}
	_, err = s.CreateJob(t.Context(), job, 0, nil)
	must(t, err)
	must(t, s.Close())
	for _, c := range []struct{ name, change, says string }{
		{"nothing", "SELECT 1", ""},
		{"a balance", "UPDATE organizations SET available = available + 64", "1 balances differ"},
		{"what is reserved", "UPDATE organizations SET reserved = reserved - 2", "1 balances differ"},
		{"an entry", "UPDATE ledger SET credits = 3, available = -3 WHERE seq = 2", "1 balances differ"},
		{"an entry is gone", "DELETE FROM ledger WHERE seq = 2", "1 balances differ"},
		{"whose reservation it is", "UPDATE ledger SET resolution = x'01' WHERE kind = 'reserve'", "1 reservations in the ledger differ"},
		{"a search", "UPDATE resolutions SET reserved = 12", "1 reservations in the ledger differ"},
		{"what a key spent", "UPDATE keys SET spent = 0 WHERE id = 2", "1 API keys have not spent"},
		{"what a key's maker spent", "UPDATE keys SET spent = 0 WHERE id = 1", "1 API keys have not spent"},
		{"a limit alone", "UPDATE keys SET spending_limit = 10000", ""},
		{"the usage", "UPDATE usage SET charges = charges + 1", "1 organizations have a usage"},
		{"a number of callbacks", "UPDATE undelivered SET count = 8 WHERE state = 'pending'", "1 numbers of callbacks"},
		{"a body", "DELETE FROM bodies WHERE delivery = 1", "1 callbacks have no body"},
		{"a lane", "UPDATE lanes SET due = due + 1", "1 receivers of callbacks"},
		{"what is packed", "UPDATE replies SET body = CAST(substr(body, 1, length(body) - 1) || x'00' AS BLOB) WHERE seq = 3", "table replies"},
		{"a row that is always there", "DELETE FROM meta", "1 version of the credentials"},
	} {
		t.Run(c.name, func(t *testing.T) {
			into := t.TempDir()
			path := filepath.Join(into, DatabaseName)
			text, err := os.ReadFile(filepath.Join(dir, DatabaseName))
			must(t, err)
			must(t, os.WriteFile(path, text, 0o600))
			db, err := sql.Open("sqlite", groupcommit.URI(path))
			must(t, err)
			for _, statement := range []string{"DROP TRIGGER ledger_is_not_updated", "DROP TRIGGER ledger_is_not_deleted", c.change} {
				_, err := db.ExecContext(t.Context(), statement)
				must(t, err)
			}
			must(t, db.Close())
			err = Verify(t.Context(), path)
			if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, state.ErrDamaged) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

// TestMissingRow: a service cannot start without its row, and says that the state is damaged.
func TestMissingRow(t *testing.T) {
	s := serve(t, t.TempDir())
	_, err := s.db.writer.Conn().ExecContext(t.Context(), "DELETE FROM meta")
	must(t, err)
	if _, err := s.CredentialsVersion(t.Context()); !errors.Is(err, state.ErrDamaged) {
		t.Errorf("%v, want ErrDamaged", err)
	}
}

// TestIndexThatDiffersFromItsTable: an answer whose key changed in the index alone would be
// bought again.
func TestIndexThatDiffersFromItsTable(t *testing.T) {
	dir := t.TempDir()
	s, err := Serve(dir)
	must(t, err)
	org := organization(t, s, "Acme", 100)
	_, err = s.Settle(t.Context(), state.Charge{Organization: org, Credits: 2, Resolution: uuid.UUID{1}, Operation: resolution.Enrichment, At: noon,
		Reply: &state.Reply{Key: [32]byte([]byte("the-key-of-a-call-that-was-paid!")), Status: 200, Body: []byte("{}")}})
	must(t, err)
	must(t, s.Close())
	path := filepath.Join(dir, DatabaseName)
	text, err := os.ReadFile(path)
	must(t, err)
	for nth := range 2 { // in the table, and in the index
		changed := strings.SplitN(string(text), "the-key-of", 3)
		if len(changed) != 3 {
			t.Fatal("the key is not in two places")
		}
		changed[nth] += "tha-"
		changed[1-nth] += "the-"
		must(t, os.WriteFile(path, []byte(strings.Join([]string{changed[0] + "key-of", changed[1] + "key-of", changed[2]}, "")), 0o600))
		if err := Verify(t.Context(), path); !errors.Is(err, state.ErrDamaged) {
			t.Errorf("place %d: %v, want ErrDamaged", nth, err)
		}
	}
}

// TestIndexWithOtherRows: a finished search that is among the unfinished ones would be made again.
func TestIndexWithOtherRows(t *testing.T) {
	dir := t.TempDir()
	s, err := Serve(dir)
	must(t, err)
	job := state.Job{ID: uuid.UUID{9}, Organization: organization(t, s, "Acme", 100), Operation: resolution.KeywordToLead, Requested: noon, Reserved: 10, Work: []byte("{}"), Payload: []byte("{}")}
	_, err = s.CreateJob(t.Context(), job, 0, nil)
	must(t, err)
	must(t, s.CancelJob(t.Context(), job.ID, noon, nil))
	must(t, s.Close())
	path := filepath.Join(dir, DatabaseName)
	must(t, Verify(t.Context(), path))
	for _, statements := range [][]string{ // an index of all rows is called one of some
		{"PRAGMA writable_schema = 1", "UPDATE sqlite_schema SET sql = replace(sql, 'WHERE finished IS NULL', '/* */') WHERE name = 'resolutions_unfinished'"},
		{"REINDEX resolutions_unfinished", "PRAGMA writable_schema = 1", "UPDATE sqlite_schema SET sql = replace(sql, '/* */', 'WHERE finished IS NULL') WHERE name = 'resolutions_unfinished'"},
	} {
		db, err := sql.Open("sqlite", groupcommit.URI(path))
		must(t, err)
		db.SetMaxOpenConns(1)
		for _, statement := range statements {
			_, err := db.ExecContext(t.Context(), statement)
			must(t, err)
		}
		must(t, db.Close())
	}
	if err := Verify(t.Context(), path); !errors.Is(err, state.ErrDamaged) || !strings.Contains(err.Error(), "resolutions_unfinished") {
		t.Errorf("%v, want ErrDamaged", err)
	}
}

// TestLostDatabase: a log whose database is gone is not applied to a new one.
func TestLostDatabase(t *testing.T) {
	dir := t.TempDir()
	s, err := Serve(dir)
	must(t, err)
	organization(t, s, "Acme", 100)
	path := filepath.Join(dir, DatabaseName)
	must(t, os.Remove(path))
	log, err := os.ReadFile(path + "-wal")
	must(t, err)
	must(t, s.Close())
	must(t, os.WriteFile(path+"-wal", log, 0o600))
	for name, open := range map[string]func() (*Store, error){
		"serve":           func() (*Store, error) { return Serve(dir) },
		"administer":      func() (*Store, error) { return Administer(dir, false) },
		"administer, new": func() (*Store, error) { return Administer(dir, true) },
	} {
		if _, err := open(); !errors.Is(err, state.ErrDamaged) || !strings.Contains(err.Error(), DatabaseName) {
			t.Errorf("%s: %v, want ErrDamaged", name, err)
		}
	}
	left, err := os.ReadFile(path + "-wal")
	if err != nil || string(left) != string(log) {
		t.Errorf("the log has changed: %v", err)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
