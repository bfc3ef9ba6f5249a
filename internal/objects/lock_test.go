package objects_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

func TestLock(t *testing.T) {
	server, proxy, store := stores(t)
	take := func(holder string) (*objects.Lock, error) {
		return store.Lock(t.Context(), at("out/_lock"), objects.Holder{Name: holder})
	}
	mine, err := take("mine")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := take("theirs"); !errors.Is(err, filelock.ErrLocked) || !strings.Contains(err.Error(), "s3://lists/out/_lock: in use by another process: process ") {
		t.Errorf("held by another: %v, want %v", err, filelock.ErrLocked)
	}
	for range 3 {
		if err := mine.Beat(t.Context()); err != nil {
			t.Errorf("renewed: %v", err)
		}
	}
	proxy.Do(once(1, s3test.IsWrite, s3test.Fault{Kind: s3test.Lose}))
	if err := mine.Beat(t.Context()); err != nil {
		t.Errorf("renewed, and the answer lost: %v", err)
	}
	proxy.Do(nil)

	// The holder's next process takes it over at once, and the one before is
	// told.
	next, err := take("mine")
	if err != nil {
		t.Fatal(err)
	}
	if err := mine.Beat(t.Context()); !errors.Is(err, objects.ErrLockLost) {
		t.Errorf("the process before: %v, want %v", err, objects.ErrLockLost)
	}
	if err := mine.Renew(t.Context()); !errors.Is(err, objects.ErrLockLost) {
		t.Errorf("the process before, asked again: %v, want %v", err, objects.ErrLockLost)
	}
	if err := mine.Release(); err != nil {
		t.Error(err)
	}
	if err := next.Renew(t.Context()); err != nil {
		t.Errorf("the release of a lost lock released another's: %v", err)
	}

	// One that gave no sign of life for too long is anybody's.
	past := time.Now().Add(-objects.LockExpires - time.Second)
	if err := os.Chtimes(filepath.Join(server.Dir, bucket, "out/_lock"), past, past); err != nil {
		t.Fatal(err)
	}
	theirs, err := take("theirs")
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Beat(t.Context()); !errors.Is(err, objects.ErrLockLost) {
		t.Errorf("after it expired: %v, want %v", err, objects.ErrLockLost)
	}
	if err := errors.Join(next.Release(), theirs.Release()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(server.Dir, bucket, "out/_lock")); !os.IsNotExist(err) {
		t.Errorf("after the release: %v", err)
	}
}

// TestSharedLock: processes of one holder have a lock together, others do not get
// it, and it stays when one of them ends.
// TestLockByTheClockOfTheStore: how old a lock is the store's clock says, not that of the machine
// which asks.
func TestLockByTheClockOfTheStore(t *testing.T) {
	for _, c := range []struct {
		name           string
		clock, renewed time.Duration // of the store, and of the lock, against the machine's
		taken          bool
	}{
		{"the machine is ahead", -2 * objects.LockExpires, -2 * objects.LockExpires, false},
		{"the machine is behind", 2 * objects.LockExpires, 0, true},
	} {
		server := s3test.Start(t, bucket)
		s3test.Setenv(t)
		to, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		proxy := httptest.NewServer(&httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
			ModifyResponse: func(r *http.Response) error {
				r.Header.Set("Date", time.Now().Add(c.clock).UTC().Format(http.TimeFormat))
				return nil
			},
		})
		defer proxy.Close()
		store := objects.New(t.Context(), objects.Options{Endpoint: proxy.URL, PathStyle: true})
		mine, err := store.Lock(t.Context(), at("out/_lock"), objects.Holder{Name: "mine"})
		if err != nil {
			t.Fatal(err)
		}
		renewed := time.Now().Add(c.renewed)
		if err := os.Chtimes(filepath.Join(server.Dir, bucket, "out/_lock"), renewed, renewed); err != nil {
			t.Fatal(err)
		}
		theirs, err := store.Lock(t.Context(), at("out/_lock"), objects.Holder{Name: "theirs"})
		if taken := err == nil; taken != c.taken || !taken && !errors.Is(err, filelock.ErrLocked) {
			t.Errorf("%s: taken %v, %v", c.name, taken, err)
		}
		if theirs != nil {
			err = theirs.Release()
		}
		if err := errors.Join(err, mine.Release()); err != nil && c.taken {
			t.Error(err)
		}
	}
}

func TestSharedLock(t *testing.T) {
	server, _, store := stores(t)
	share := func(holder string) (*objects.Lock, error) {
		return store.Share(t.Context(), at("out/_lock"), objects.Holder{Name: holder})
	}
	var ours []*objects.Lock
	for range 3 {
		l, err := share("ours")
		if err != nil {
			t.Fatal(err)
		}
		ours = append(ours, l)
	}
	for range 2 {
		for i, l := range ours { // each finds that another has renewed it
			if err := l.Beat(t.Context()); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		}
	}
	if _, err := share("theirs"); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("shared by others: %v, want %v", err, filelock.ErrLocked)
	}
	if err := ours[0].Release(); err != nil {
		t.Error(err)
	}
	if _, err := store.Lock(t.Context(), at("out/_lock"), objects.Holder{Name: "theirs"}); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("taken while it is shared: %v, want %v", err, filelock.ErrLocked)
	}
	past := time.Now().Add(-objects.LockExpires - time.Second)
	if err := os.Chtimes(filepath.Join(server.Dir, bucket, "out/_lock"), past, past); err != nil {
		t.Fatal(err)
	}
	theirs, err := store.Lock(t.Context(), at("out/_lock"), objects.Holder{Name: "theirs"})
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range ours[1:] {
		if err := l.Beat(t.Context()); !errors.Is(err, objects.ErrLockLost) {
			t.Errorf("process %d after it expired: %v, want %v", i+1, err, objects.ErrLockLost)
		}
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
	if err := theirs.Release(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(server.Dir, bucket, "out/_lock")); !os.IsNotExist(err) {
		t.Errorf("the lock is left: %v", err)
	}
}

// However requests go wrong, of two that want a lock one gets it.
func TestLockUnderFaults(t *testing.T) {
	_, proxy, store := stores(t)
	for _, fault := range []s3test.Fault{{Kind: s3test.Lose}, {Kind: s3test.Reset}, answer(500, "InternalError"), answer(409, "ConditionalRequestConflict")} {
		for n := 1; n <= 4; n++ {
			proxy.Do(once(n, func(*http.Request) bool { return true }, fault))
			one, err := store.Lock(t.Context(), at("_lock"), objects.Holder{Name: "one"})
			if err != nil {
				t.Fatalf("%s of request %d: %v", fault.Kind, n, err)
			}
			if _, err := store.Lock(t.Context(), at("_lock"), objects.Holder{Name: "two"}); !errors.Is(err, filelock.ErrLocked) {
				t.Errorf("%s of request %d: %v, want %v", fault.Kind, n, err, filelock.ErrLocked)
			}
			if err := one.Release(); err != nil {
				t.Error(err)
			}
		}
	}
}

// A holder that slept may remove the lock that another process has just taken. That is no
// sign of a store that ignores conditions.
func TestLockRemovedByAnother(t *testing.T) {
	server, proxy, store := stores(t)
	writes := 0
	proxy.Do(func(r *http.Request) s3test.Fault {
		if s3test.IsWrite(r) {
			if writes++; writes == 2 {
				if err := os.Remove(filepath.Join(server.Dir, bucket, "lock")); err != nil {
					t.Error(err)
				}
			}
		}
		return s3test.Fault{}
	})
	lock, err := store.Lock(t.Context(), at("lock"), objects.Holder{Name: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lock.RequireConditions(), lock.Beat(t.Context()), lock.Release()); err != nil {
		t.Error(err)
	}
}

// TestHolderGone: a process is gone only if this one would see it. Another container may have the
// name of this host and processes of its own.
func TestHolderGone(t *testing.T) {
	s3test.Setenv(t)
	t.Setenv("AWS_CA_BUNDLE", "")
	memory := s3test.NewMemory(nil)
	on := func(host, processes string) *objects.Store {
		return objects.New(t.Context(), objects.Options{Endpoint: "http://store.example", PathStyle: true, Machine: &objects.Machine{
			Host: host, Processes: processes, Random: func() float64 { return 0 },
			HTTP: client(func(r *http.Request) (*http.Response, error) {
				if r.Body == nil {
					r.Body = http.NoBody
				}
				answer := httptest.NewRecorder()
				memory.ServeHTTP(answer, r)
				return answer.Result(), nil
			}),
		}})
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	held := func(pid int, processes string) string {
		return fmt.Sprintf(`{"holder":"night","process":"p","host":"here","pid":%d,"pid_space":%q,"since":"2026-11-20T00:00:00Z"}`, pid, processes)
	}
	gone, living := ended.Process.Pid, os.Getppid()
	for _, c := range []struct {
		name, lock, host, processes string
		want                        bool
	}{
		{"it has ended", held(gone, "a"), "here", "a", true},
		{"it lives", held(living, "a"), "here", "a", false},
		{"of another container", held(gone, "a"), "here", "b", false},
		{"of another host", held(gone, "a"), "there", "a", false},
		{"nobody knows", held(gone, ""), "here", "", false},
		{"an earlier one with this number", held(os.Getpid(), "a"), "here", "a", true},
	} {
		store := on(c.host, c.processes)
		if _, err := store.Put(t.Context(), at("lock"), objects.ContentOf([]byte(c.lock), "")); err != nil {
			t.Fatal(err)
		}
		holder, err := store.HolderGone(t.Context(), at("lock"))
		if err != nil || (holder.Name == "night") != c.want {
			t.Errorf("%s: %+v, %v", c.name, holder, err)
		}
	}
}
