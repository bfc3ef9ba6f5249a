//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/badservice"
	"github.com/leadetl/leadetl/internal/s3test"
)

// TestMakeOld makes testdata/old with the program that LEADETL_OLD names; the
// README there says when.
func TestMakeOld(t *testing.T) {
	program := os.Getenv("LEADETL_OLD")
	if program == "" {
		t.Skip("it replaces testdata/old")
	}
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "leadetl")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))

	t.Run("folder", func(t *testing.T) {
		o := &oldPlace{TB: t, folder: t.TempDir()}
		makePaid(o)
		keepOld(t, o.folder, "folder")
	})
	t.Run("bucket", func(t *testing.T) {
		o := &oldPlace{TB: t, folder: t.TempDir(), server: s3test.Start(t, clitest.S3Bucket)}
		makePaid(o)
		keepOld(t, o.path(""), "bucket")
	})
	t.Run("directory", func(t *testing.T) {
		o := &oldPlace{TB: t, folder: t.TempDir()}
		o.put(filepath.Join(oldData, "input"))
		makeDirectory(o)
		keepOld(t, o.path("imported"), "directory")
		o.output(cli.ExitDone, oldHEMs...)
		keepOld(t, o.path("hems"), "hems")
		makeServed(o)
	})
}

// makePaid makes the state of the old runs.
func makePaid(o *oldPlace) {
	o.put(filepath.Join(oldData, "input"))
	seen := new(atomic.Int64)
	o.url = oldServiceFor(o, seen)
	for _, r := range oldRuns {
		o.age()
		flags := []string{}
		open := 0
		switch r.operation {
		case "enrichment":
			o.output(cli.ExitDone, o.args("run", r)...)
			continue
		case "network_to_hem":
			flags, open = []string{"--callback-listen", clitest.FreeAddress(o.TB)}, 3
		case "keyword_to_lead":
			open = 5
		}
		p := o.start(o.args("run", r, flags...)...)
		clitest.Until(o, "its calls are open", func() bool {
			if p.Ended() {
				o.Fatal(p.Said)
			}
			if r.operation == "ip_to_company" {
				return seen.Load() == heldFrom+4
			}
			return len(clitest.KeyHashes(o.answers("list", "--parked", "--json"))) == open
		})
		p.Kill()
	}
}

// heldFrom is how many calls about companies are answered.
const heldFrom = 20

// oldServiceFor starts the service that the old runs ask. It answers later where
// it may, its callbacks are not signed as they should be, and searches never end.
// Of the calls about companies it fails the fifth, and gives those after heldFrom
// no answer.
func oldServiceFor(t testing.TB, companies *atomic.Int64) (url string) {
	o := badservice.DefaultOptions()
	o.APIKey, o.Secret, o.Polls = clitest.RemoteKey, "whsec_"+strings.Repeat("A", 32), 1<<30
	o.Faults = badservice.Faults{Later: 1}
	s := badservice.New(o)
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/ip_to_company") {
			switch n := companies.Add(1); {
			case n == 5:
				w.WriteHeader(http.StatusInternalServerError)
				return
			case n > heldFrom:
				<-end
				return
			}
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		close(end)
		_ = s.Close()
		server.Close()
	})
	return server.URL
}

// makeDirectory imports all kinds of reference data.
func makeDirectory(o *oldPlace) {
	args := []string{"directory", "import", "--directory", "imported"}
	for _, kind := range []string{"people", "companies", "ip-ranges", "searches", "visits"} {
		args = append(args, "--"+kind, "directory/"+kind+".csv")
	}
	o.output(cli.ExitDone, args...)
}

// makeServed makes two states of leadetl serve: of one that ended, and of one that
// was killed later, with a callback that waits for its receiver and with calls that
// its customer does not know the answers of.
func makeServed(o *oldPlace) {
	p := &clitest.Place{TB: o.TB, State: o.path("service"), Directory: o.path("imported")}
	admin := func(args ...string) string {
		return strings.TrimSpace(o.output(cli.ExitDone, append(append([]string{"admin"}, args...), "--state", p.State)...))
	}
	admin("org", "create", "Example Rockets", "--credits", "1000")
	admin("org", "create", "Placeholder Books", "--credits", "5")
	key := admin("key", "create", "Example Rockets")
	r := clitest.NewReceiver(o, admin("secret", "show", "Example Rockets"))
	shop := func(s *clitest.Served, round string) {
		c := clitest.NewCaller(o, s.Public, key)
		for i, g := range clitest.Assortment {
			body := g.Body
			if i%2 == 0 && !strings.HasSuffix(g.Path, "ip_to_company") || strings.Contains(g.Path, "_to_hem") || strings.Contains(g.Path, "_to_phone") {
				body = strings.TrimSuffix(body, "}") + `,"callback_url":"` + r.Hook(g.Path, fmt.Sprint(i)) + `"}`
			}
			if a := c.Post(g.Path, body, "Idempotency-Key", fmt.Sprintf("%s-%d", round, i)); a.Status != http.StatusOK {
				o.Fatalf("%s: %d %s", g.Path, a.Status, a.Raw)
			}
		}
	}
	serve := append([]string{"--callback-allow", "127.0.0.0/8", "--network-hosts", "network.example"}, clitest.Unlimited...)
	s := p.Serve(serve...)
	shop(s, "first")
	operator := clitest.NewOperator(o, s.Internal)
	clitest.Until(o, "nothing waits", func() bool { return clitest.IsIdle(string(operator.Do("GET", "/metrics", "").Raw)) })
	s.Stop(syscall.SIGTERM)
	writeOld(o, filepath.Join(oldData, "service.key"), []byte(key+"\n"))
	keepOld(o, p.State, "service_ended")

	r.Respond(func(clitest.Arrival) int { return http.StatusInternalServerError })
	s = p.Serve(serve...)
	shop(s, "second")
	s.Stop(syscall.SIGKILL)
	keepOld(o, p.State, "service_killed")
}

// keepOld replaces a folder of testdata/old.
func keepOld(t testing.TB, from, name string) {
	t.Helper()
	to := filepath.Join(oldData, name)
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"lists", "directory", ".sgwtmp"}, name):
			return fs.SkipDir
		case d.IsDir() || strings.HasSuffix(name, ".sqlite-shm"): // SQLite makes it anew
			return nil
		}
		data, err := os.ReadFile(path)
		if err == nil {
			writeOld(t, filepath.Join(to, name), data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func writeOld(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
