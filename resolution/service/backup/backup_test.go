package backup

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func serve(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func do(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// A copy that is made while calls are charged is the state of one moment: its
// balances are the sums of its ledger.
func TestBackupWhileServed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := serve(t, dir)
	org, err := s.CreateOrganization(t.Context(), "Acme", 1_000_000, nil, noon)
	do(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				id := uuid.New()
				_, err := s.Settle(ctx, state.Charge{Organization: org.ID, Resolution: id, Credits: 1, At: noon,
					Reply: &state.Reply{Key: [32]byte(append(id[:], id[:]...)), Body: make([]byte, 4000)}})
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 5 {
		file := filepath.Join(t.TempDir(), "copy.sqlite")
		size, err := Write(t.Context(), dir, file)
		do(t, err)
		info, err := os.Stat(file)
		do(t, err)
		if info.Mode().Perm() != 0o600 || info.Size() != size {
			t.Errorf("mode %v, %d bytes, said %d; want 0600", info.Mode(), info.Size(), size)
		}
		into := filepath.Join(t.TempDir(), "state")
		r, err := Restore(t.Context(), file, into, noon)
		if err != nil || r.Replaced != "" {
			t.Fatal(r, err)
		}
		audit(t, into)
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(left) != 1 {
			t.Errorf("beside the backup: %v", left)
		}
	}
	stop()
	callers.Wait()
	do(t, s.Close())
	audit(t, dir)
}

// audit holds the balances of a state to its ledger.
func audit(t *testing.T, dir string) {
	t.Helper()
	s := serve(t, dir)
	accounts, err := s.Organizations(t.Context())
	do(t, err)
	for _, a := range accounts {
		entries, err := s.Ledger(t.Context(), a.Organization.ID, 0, 1<<30)
		do(t, err)
		var sum state.Balance
		for _, e := range entries {
			sum.Available += e.Available
			sum.Reserved += e.Reserved
		}
		if sum != a.Balance || len(entries) == 0 {
			t.Errorf("%s has %+v, and its %d entries make %+v", a.Organization.Name, a.Balance, len(entries), sum)
		}
	}
	do(t, s.Close())
}

// A restore says what happened since the backup and is undone.
func TestRestoreListsWhatItUndoes(t *testing.T) {
	dir, file, ctx := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "copy.sqlite"), t.Context()
	later := noon.Add(time.Hour)
	s := serve(t, dir)
	acme, err := s.CreateOrganization(ctx, "Acme", 100, []byte("sealed"), noon)
	do(t, err)
	kept, err := s.AddKey(ctx, state.Key{Organization: acme.ID, Hash: [32]byte{1}, Created: noon})
	do(t, err)
	revoked, err := s.AddKey(ctx, state.Key{Organization: acme.ID, Hash: [32]byte{2}, Created: noon})
	do(t, err)
	over, err := s.AddKey(ctx, state.Key{Organization: acme.ID, Hash: [32]byte{3}, Created: noon, Expires: later})
	do(t, err)
	job := state.Job{ID: uuid.New(), Organization: acme.ID, Operation: resolution.KeywordToLead, Requested: noon, Reserved: 10, Work: []byte("{}"), Payload: []byte("{}")}
	_, err = s.CreateJob(ctx, job, 0, nil)
	do(t, err)
	callback := &state.Callback{WebhookID: "msg_1", Organization: acme.ID, Resolution: uuid.New(), Receiver: "a.example:443", URL: "https://a.example/", Due: noon}
	_, err = s.Settle(ctx, state.Charge{Organization: acme.ID, Resolution: callback.Resolution, Credits: 1, Callback: callback, At: noon})
	do(t, err)
	held, err := s.CreateOrganization(ctx, "Held", 1, nil, noon)
	do(t, err)
	gone, err := s.CreateOrganization(ctx, "Gone", 1, nil, noon)
	do(t, err)
	goneKey, err := s.AddKey(ctx, state.Key{Organization: gone.ID, Test: true, Hash: [32]byte{5}, Created: noon})
	do(t, err)
	_, err = Write(ctx, dir, file)
	do(t, err)

	do(t, s.SuspendOrganization(ctx, held.ID, later), s.DeleteOrganization(ctx, gone.ID, later))
	_, err = s.AddKey(ctx, state.Key{Organization: held.ID, Test: true, Hash: [32]byte{6}, Created: later, Revoked: later})
	do(t, err)
	do(t, s.RevokeKey(ctx, revoked.Public, false, later), s.RevokeKey(ctx, over.Public, false, later), s.RotateSecret(ctx, acme.ID, []byte("another"), later, later))
	made, err := s.AddKey(ctx, state.Key{Organization: acme.ID, Hash: [32]byte{4}, Created: later})
	do(t, err)
	lost, err := s.CreateOrganization(ctx, "Bakery", 7, nil, later)
	do(t, err)
	_, err = s.ChangeCredits(ctx, state.CreditChange{Organization: acme.ID, Credits: 50, Note: "invoice 17", At: later})
	do(t, err)
	_, err = s.Settle(ctx, state.Charge{Organization: acme.ID, Resolution: uuid.New(), Credits: 3, At: later, Reply: &state.Reply{Key: [32]byte{9}}})
	do(t, err)
	due, _, err := s.DueDeliveries(ctx, later, 1, state.Scope{Each: 1})
	do(t, err)
	do(t, s.SettleDelivery(ctx, state.Attempt{ID: due[0].ID, State: state.Delivered, At: later}))
	leased, err := s.LeaseJob(ctx, later, later.Add(time.Minute))
	do(t, err)
	do(t, s.FinishJob(ctx, state.Finish{ID: job.ID, Lease: leased.Lease, Status: state.Failed, Error: "unavailable", At: later}))
	job.ID = uuid.New()
	_, err = s.CreateJob(ctx, job, 0, nil)
	do(t, err)

	if _, err := Restore(ctx, file, dir, later); !errors.Is(err, filelock.ErrLocked) {
		t.Fatalf("while a service runs: %v, want ErrLocked", err)
	}
	do(t, s.Close())
	a, err := sqlite.Administer(dir, false)
	do(t, err)
	if _, err := Restore(ctx, file, dir, later); !errors.Is(err, filelock.ErrLocked) {
		t.Fatalf("while an administrator has it open: %v, want ErrLocked", err)
	}
	do(t, a.Close())
	r, err := Restore(ctx, file, dir, later)
	do(t, err, r.Unread)
	want := Changes{
		Revoked:   []Key{{revoked.Public, "Acme", later}, {goneKey.Public, "Gone", later}},
		Suspended: []string{"Held"}, Deleted: []string{"Gone"},
		Made:      []Key{{made.Public, "Acme", later}},
		Lost:      []Credits{{lost.Public, "Bakery", 7, 0, 0, 0}},
		Changed:   []Credits{{acme.Public, "Acme", 136, 89, 50, 3}},
		Secrets:   []string{"Acme"},
		Forgotten: 1, Resumed: 1, Reposted: 1, Replies: 1,
	}
	if !reflect.DeepEqual(r.Changes, want) {
		t.Errorf("undone: %+v\nwant    %+v", r.Changes, want)
	}
	s = serve(t, dir)
	keys, err := s.Keys(ctx, state.KeyChoice{Organization: acme.ID})
	if err != nil || len(keys) != 3 || keys[2].Public != kept.Public || !keys[1].Revoked.IsZero() {
		t.Errorf("keys %+v, %v", keys, err)
	}
	do(t, s.Close())
	audit(t, dir)

	// What was replaced is whole: it can be put back.
	back, err := Restore(ctx, r.Replaced, dir, later.Add(time.Second))
	if err != nil || len(back.Changed) != 1 || back.Changed[0].After != 136 {
		t.Errorf("the replaced state put back: %+v, %v", back, err)
	}
}

func isOtherFormat(err error) bool {
	_, other := errors.AsType[*format.Error](err)
	return other
}

func TestRefused(t *testing.T) {
	ctx, folder := t.Context(), t.TempDir()
	dir, file := filepath.Join(folder, "state"), filepath.Join(folder, "copy.sqlite")
	s := serve(t, dir)
	_, err := s.CreateOrganization(ctx, "Acme", 5, nil, noon)
	do(t, err, s.Close())
	_, err = Write(ctx, dir, file)
	do(t, err)
	whole, err := os.ReadFile(file)
	do(t, err)
	if _, err := Write(ctx, dir, file); !errors.Is(err, ErrExists) {
		t.Errorf("a second backup to one file: %v, want ErrExists", err)
	}
	if _, err := Write(ctx, filepath.Join(folder, "nothing"), filepath.Join(folder, "other")); !errors.Is(err, sqlite.ErrNoState) {
		t.Errorf("no state: %v, want ErrNoState", err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Write(canceled, dir, filepath.Join(folder, "canceled")); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	damaged := append([]byte{}, whole...)
	for i := 5 * 4096; i < 9*4096; i++ {
		damaged[i] = 0xff
	}
	for name, c := range map[string]struct {
		text []byte
		want error
	}{
		"empty":     {nil, resolution.ErrInvalid},
		"text":      {[]byte(strings.Repeat("no database\n", 1000)), resolution.ErrInvalid},
		"truncated": {whole[:len(whole)/2], resolution.ErrInvalid},
		"damaged":   {damaged, resolution.ErrInvalid},
	} {
		other := filepath.Join(folder, name)
		do(t, os.WriteFile(other, c.text, 0o600))
		if _, err := Restore(ctx, other, dir, noon); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	other := filepath.Join(folder, "other")
	whole[63] = 200 // user_version, sqlite.org/fileformat.html 1.3
	do(t, os.WriteFile(other, whole, 0o600))
	if _, err := Restore(ctx, other, dir, noon); !isOtherFormat(err) {
		t.Errorf("of another version: %v, want a format.Error", err)
	}
	if _, err := Restore(ctx, filepath.Join(folder, "missing"), dir, noon); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("in the state folder: %v, %v; want the database alone", left, err)
	}
	audit(t, dir)
}

// A damaged state is replaced too, and kept with the files beside it.
func TestRestoreOverDamage(t *testing.T) {
	ctx, folder := t.Context(), t.TempDir()
	dir, file := filepath.Join(folder, "state"), filepath.Join(folder, "copy.sqlite")
	s := serve(t, dir)
	_, err := s.CreateOrganization(ctx, "Acme", 5, nil, noon)
	do(t, err, s.Close())
	_, err = Write(ctx, dir, file)
	do(t, err)
	for name, text := range map[string]string{"empty": "", "noise": strings.Repeat("noise\n", 5000)} {
		path := filepath.Join(dir, sqlite.DatabaseName)
		do(t, os.WriteFile(path, []byte(text), 0o600), os.WriteFile(path+"-wal", []byte(text), 0o600))
		r, err := Restore(ctx, file, dir, noon.Add(time.Duration(len(text))*time.Second))
		if err != nil || r.Unread == nil {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		for _, beside := range []string{"", "-wal"} {
			if kept, err := os.ReadFile(r.Replaced + beside); text != "" && (err != nil || string(kept) != text) {
				t.Errorf("%s: the replaced file%s has %d bytes, %v", name, beside, len(kept), err)
			}
		}
		audit(t, dir)
	}
}

// overwrite makes noise of a page of a database, 1 being the first.
func overwrite(t *testing.T, file string, page int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	do(t, err)
	noise := make([]byte, 4096)
	for i := range noise {
		noise[i] = byte(i * 151)
	}
	_, err = f.WriteAt(noise, (page-1)*4096)
	do(t, err, f.Close())
}

// A damaged page of any table or index stops a backup, and the one before stays.
func TestDamagedStateIsNoBackup(t *testing.T) {
	ctx, folder := t.Context(), t.TempDir()
	dir := filepath.Join(folder, "state")
	s := serve(t, dir)
	org, err := s.CreateOrganization(ctx, "Acme", 5, nil, noon)
	do(t, err)
	_, err = s.AddKey(ctx, state.Key{Organization: org.ID, Hash: [32]byte{1}, Created: noon})
	do(t, err, s.Close())
	whole := filepath.Join(dir, sqlite.DatabaseName)
	db, err := sql.Open("sqlite", groupcommit.URI(whole, "query_only(1)"))
	do(t, err)
	pages := map[string]int64{"the first page": 1}
	rows, err := db.QueryContext(ctx, "SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0")
	do(t, err)
	for rows.Next() {
		var name string
		var page int64
		do(t, rows.Scan(&name, &page))
		pages[name] = page
	}
	do(t, rows.Err(), rows.Close(), db.Close())
	backups := filepath.Join(folder, "backups")
	do(t, os.Mkdir(backups, 0o700))
	_, err = Write(ctx, dir, filepath.Join(backups, Name(noon)))
	do(t, err)
	bytes, err := os.ReadFile(whole)
	do(t, err)
	for name, page := range pages {
		bad := filepath.Join(folder, "bad "+name)
		do(t, os.Mkdir(bad, 0o700), os.WriteFile(filepath.Join(bad, sqlite.DatabaseName), bytes, 0o600))
		overwrite(t, filepath.Join(bad, sqlite.DatabaseName), page)
		if _, err := Write(ctx, bad, filepath.Join(backups, Name(noon.Add(time.Hour)))); !errors.Is(err, state.ErrDamaged) || !strings.Contains(err.Error(), "admin restore") {
			t.Errorf("%s: %v, want that it is damaged", name, err)
		}
	}
	left, err := os.ReadDir(backups)
	if err != nil || len(left) != 1 || left[0].Name() != Name(noon) {
		t.Errorf("in the folder of backups: %v, %v", left, err)
	}
	if _, err := Restore(ctx, filepath.Join(backups, Name(noon)), filepath.Join(folder, "bad ledger"), noon); err != nil {
		t.Errorf("the backup from before: %v", err)
	}
}
