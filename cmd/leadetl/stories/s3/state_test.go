//go:build unix

package s3

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/objectstate"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
)

// machines is a job that several machines run, one after another: all they
// share is S3.
type machines struct {
	*clitest.RemoteJob
	s3      *clitest.S3Job
	service *badservice.Service
	rows    int
}

func newMachines(t *testing.T, rows int, o badservice.Options, flags ...string) *machines {
	t.Helper()
	s3 := clitest.NewS3Job(t)
	s, url := clitest.StartService(t, o)
	j := clitest.NewRemoteJob(t, "ip_to_company", url, clitest.AddressList(rows), append(flags, "--set", "rows_per_part=100", "--quiet")...)
	j.State, j.Store = []string{"--state", "s3://leads/state/"}, s3.Proxy.URL
	j.Flags = append(j.Flags, "--out", "s3://leads/out/")
	return &machines{j, s3, s, rows}
}

// on starts the command on a new machine.
func (m *machines) on(t *testing.T, name string, flags ...string) *clitest.Process {
	t.Helper()
	disk := m.Path(name)
	if err := os.MkdirAll(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", disk)
	return m.Start(flags...)
}

// age makes all leases look as if they were last renewed an hour ago.
func (m *machines) age(t *testing.T) {
	t.Helper()
	past := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(m.s3.Object("state/lease"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return os.Chtimes(path, past, past)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// requireProved: each row is bought once, and the dataset is that of a run with
// a state folder, offline, of a copy of the answers.
func (m *machines) requireProved(t *testing.T) {
	t.Helper()
	if billed := m.service.BilledKeys(); len(billed) != m.rows {
		t.Errorf("%d of %d rows are billed", len(billed), m.rows)
	}
	m.requireOnce(t)
	clitest.Run(t, clitest.OnStore(m.Store, "answers", "copy", m.State[1], m.Path("copied"))...)
	m.Run(cli.ExitDone, "--state", m.Path("copied"), "--out", m.Path("again"), "--offline")
	compared := 0
	for name, want := range clitest.Files(t, m.Path("again")) {
		if !strings.HasSuffix(name, ".parquet") {
			continue
		}
		got, err := os.ReadFile(m.s3.Object("out/" + name))
		if err != nil || string(got) != want {
			t.Errorf("%s differs from that of one machine, offline: %v", name, err)
		}
		compared++
	}
	if compared != m.rows/100 {
		t.Errorf("%d parts, want %d", compared, m.rows/100)
	}
}

func (m *machines) requireOnce(t *testing.T) {
	t.Helper()
	for key, times := range m.service.BilledKeys() {
		if times != 1 {
			t.Errorf("a key is billed %d times: %v", times, clitest.CallsOf(m.service, key))
		}
	}
}

// TestStateOnS3Moves: a run that is killed on one machine is continued by the
// same command on another, with an empty disk.
func TestStateOnS3Moves(t *testing.T) {
	o := badservice.DefaultOptions()
	o.Matched, o.HonourKeys, o.Latency = 0.8, true, 10*time.Millisecond
	m := newMachines(t, 1000, o, "--concurrency", "8", "--idempotent")
	for _, machine := range []string{"a", "b", "c"} {
		seen := m.service.Seen()
		p := m.on(t, machine)
		clitest.Until(t, "a part or two are made", func() bool { return m.service.Seen() > seen+250 || p.Ended() })
		if !p.Kill() {
			t.Fatalf("the run ended: %s", clitest.Tail(p.Said.String()))
		}
		if st := m.Answers("stat", "--json"); !strings.Contains(st, `"answers":`) {
			t.Errorf("after the kill: %s", st)
		}
	}
	parts, err := filepath.Glob(m.s3.Object("out/*.parquet"))
	if err != nil || len(parts) < 4 || len(parts) > 9 {
		t.Fatalf("%d parts after three kills, %v", len(parts), err)
	}
	p := m.on(t, "d")
	if code := p.Code(); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, clitest.Tail(p.Said.String()))
	}
	for _, part := range parts[:3] { // those of machine a
		if _, err := os.Stat(part); err != nil {
			t.Error(err)
		}
	}
	m.requireProved(t)
	if left, err := filepath.Glob(m.s3.Object("state/runs/*/*/*")); err != nil || len(left) > 0 {
		t.Errorf("a finished run leaves %v, %v", left, err)
	}
	if left, err := filepath.Glob(m.Path("d") + "/*"); err != nil || len(left) > 0 {
		t.Errorf("a finished run leaves %v on its disk, %v", left, err)
	}
	if said := clitest.Run(t, append(append([]string{"plan"}, m.Args()[1:]...), "--json")...); !strings.Contains(said, `"calls":0`) && !strings.Contains(said, `"calls": 0`) {
		t.Errorf("the plan after the run says %s", said)
	}

	// The manifest says what all machines have paid, also after another has made a part again.
	credits := func() (total, last int64) {
		t.Helper()
		var manifest sinks.Manifest
		data, err := os.ReadFile(m.s3.Object("out/_manifest.json"))
		if err == nil {
			err = json.Unmarshal(data, &manifest)
		}
		if err != nil || manifest.CreditsTotal == nil || manifest.CreditsThisRun == nil {
			t.Fatalf("%v, manifest %s", err, data)
		}
		return *manifest.CreditsTotal, *manifest.CreditsThisRun
	}
	paid := m.service.Spent()
	if total, last := credits(); total != paid || last <= 0 || last >= total {
		t.Errorf("%d credits, %d of the last run; %d are billed", total, last, paid)
	}
	if err := os.Truncate(parts[1], 100); err != nil {
		t.Fatal(err)
	}
	if p := m.on(t, "e"); p.Code() != cli.ExitDone {
		t.Fatal(clitest.Tail(p.Said.String()))
	}
	if total, last := credits(); total != paid || last != 0 || m.service.Spent() != paid {
		t.Errorf("after a repair %d credits, %d of the last run; %d were billed, and %d now", total, last, paid, m.service.Spent())
	}
}

// TestStateOnS3Sleeper: a machine that slept through the end of its lease makes
// no further call. What it had asked for is kept, late.
func TestStateOnS3Sleeper(t *testing.T) {
	for _, idempotent := range []bool{true, false} {
		o := badservice.DefaultOptions()
		o.Matched, o.HonourKeys, o.Latency = 1, idempotent, 100*time.Millisecond
		flags := []string{"--concurrency", "16"}
		if idempotent {
			flags = append(flags, "--idempotent")
		}
		m := newMachines(t, 500, o, flags...)
		sleeper := m.on(t, "a")
		clitest.Until(t, "calls are under way", func() bool { return m.service.Seen() > 150 || sleeper.Ended() })
		if err := sleeper.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		m.age(t)
		p := m.on(t, "b")
		code := p.Code()
		if idempotent && code != cli.ExitDone || !idempotent && code != cli.ExitDone && code != cli.ExitRejects {
			t.Fatalf("idempotent %v: exit code %d: %s", idempotent, code, clitest.Tail(p.Said.String()))
		}
		unknown := len(m.Unknown())
		if idempotent && unknown > 0 || unknown > 16 {
			t.Errorf("idempotent %v: %d calls are unknown", idempotent, unknown)
		}
		seen := m.service.Seen()
		if err := sleeper.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if code := sleeper.Code(); code != cli.ExitTryAgain || !strings.Contains(sleeper.Said.String(), "another process took over") {
			t.Errorf("the sleeper ended with exit code %d: %s", code, clitest.Tail(sleeper.Said.String()))
		}
		// Those whose intents were stored when it fell asleep may leave in its first
		// minute; whoever takes over knows of them.
		if after := m.service.Seen(); after > seen+16 {
			t.Errorf("idempotent %v: the sleeper made %d more calls", idempotent, after-seen)
		}
		m.requireOnce(t)
		t.Logf("idempotent %v: %d calls were unknown when the sleeper woke up", idempotent, unknown)

		// The next run takes what came late, and pays for nothing but what was never
		// asked.
		m.Run(cli.ExitDone, "--fail-on", "never")
		if left := len(m.Unknown()); left > 0 {
			t.Errorf("idempotent %v: %d calls are unknown still", idempotent, left)
		}
		m.requireProved(t)
	}
}

// TestStateOnS3LoadsItsOwn: beside many answers of others, a run copies only the
// answers to its own questions to its disk. It buys what is new and nothing else,
// and writes the bytes of a run with a state folder.
func TestStateOnS3LoadsItsOwn(t *testing.T) {
	o := badservice.DefaultOptions()
	o.Matched, o.Latency = 0.8, 5*time.Millisecond
	m := newMachines(t, 300, o)
	m.Run(cli.ExitDone)
	bought := m.service.Seen()
	clitest.Run(t, clitest.OnStore(m.Store, "answers", "copy", m.State[1], m.Path("copied"))...)
	m.others(t, 100_000)

	from := []string{"--out", "s3://leads/again/", "--set", "rows_per_part=70"}
	m.Run(cli.ExitDone, from...)
	m.Run(cli.ExitDone, append(from, "--out", "s3://leads/offline/", "--offline")...)
	m.Run(cli.ExitDone, append(from, "--out", m.Path("again"), "--state", m.Path("copied"), "--offline")...)
	for name, want := range clitest.Files(t, m.Path("again")) {
		for _, out := range []string{"again/", "offline/"} {
			if got, err := os.ReadFile(m.s3.Object(out + name)); strings.HasSuffix(name, ".parquet") && (err != nil || string(got) != want) {
				t.Errorf("%s differs from that of a state folder: %v", out+name, err)
			}
		}
	}
	if seen := m.service.Seen(); seen != bought {
		t.Fatalf("%d calls for stored answers", seen-bought)
	}

	if err := os.WriteFile(m.In, []byte(clitest.AddressList(400)), 0o600); err != nil {
		t.Fatal(err)
	}
	more := []string{"--out", "s3://leads/more/", "--concurrency", "1"}
	if said := clitest.Run(t, append(append([]string{"plan"}, m.Args(more...)[1:]...), "--json")...); !strings.Contains(said, `"stored": 300`) || !strings.Contains(said, `"calls": 100`) {
		t.Errorf("the plan says %s", said)
	}
	p := m.on(t, "a", more...)
	clitest.Until(t, "calls are made", func() bool { return m.service.Seen() > bought+10 || p.Ended() })
	// All answers would take 20 MB. The files of the database and its log begin with some.
	if size := sizeOf(t, m.Path("a")); size == 0 || size > 5<<20 {
		t.Errorf("the state of the machine has %d bytes", size)
	}
	if code := p.Code(); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, clitest.Tail(p.Said.String()))
	}
	m.requireOnce(t)
	if seen := m.service.Seen(); seen != bought+100 {
		t.Errorf("%d calls for 100 new rows", seen-bought)
	}
}

// others stores answers to questions that the job does not ask.
func (m *machines) others(t *testing.T, n int) {
	t.Helper()
	s3test.Setenv(t)
	store := objects.New(t.Context(), objects.Options{Endpoint: m.s3.Server.URL, PathStyle: true, GiveUpAfter: time.Minute})
	state, err := objectstate.Open(store, m.State[1])
	if err != nil {
		t.Fatal(err)
	}
	var some []answers.Item
	of := answers.Scope{Service: m.URL, Operation: resolution.IPToCompany}
	for i := range n {
		q := answers.Question{Scope: of, Key: fmt.Sprintf("12.%d.%d.%d", i>>16, i>>8&255, i&255)}
		some = append(some, answers.Item{Hash: q.Hash(), Question: q, Answer: answers.Answer{Run: "others", Outcome: answers.NoMatch, Status: 200, Received: time.Now()}})
	}
	slices.SortFunc(some, func(a, b answers.Item) int { return a.Hash.Compare(b.Hash) })
	stores := answers.NewStores(state, answers.Options{})
	_, err = stores.Take(t.Context(), of, func(yield func(answers.Item, error) bool) {
		for _, i := range some {
			if !yield(i, nil) {
				return
			}
		}
	}, nil)
	if err := errors.Join(err, stores.Close()); err != nil {
		t.Fatal(err)
	}
}

// sizeOf is what the files of a folder take. They may vanish meanwhile.
func sizeOf(t *testing.T, folder string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				bytes += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// TestStateOnS3Refused: what a state on S3 needs is said before a call.
func TestStateOnS3Refused(t *testing.T) {
	m := newMachines(t, 100, badservice.DefaultOptions())
	var mu sync.Mutex
	written := map[string]bool{}
	m.s3.Proxy.Do(func(r *http.Request) s3test.Fault {
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("If-None-Match") == "" || !written[r.URL.Path] {
			written[r.URL.Path] = written[r.URL.Path] || r.Header.Get("If-None-Match") != ""
			return s3test.Fault{}
		}
		return s3test.Fault{Kind: s3test.Swallow}
	})
	if p := m.Run(cli.ExitUsage); !strings.Contains(p.Said.String(), "the store does not support conditional writes, which keep two processes apart; use a store that does, or a folder") {
		t.Errorf("said %s", p.Said.String())
	}
	m.s3.Proxy.Do(nil)
	m.Run(cli.ExitUsage, "--offline")
	if seen := m.service.Seen(); seen > 0 {
		t.Errorf("%d calls", seen)
	}
	m.Run(cli.ExitUsage, "--state", "s3://absent/state/")
	m.Run(cli.ExitDone)
	m.requireProved(t)
}

// TestStateOnS3Alone: an operation without a service keeps its progress there.
func TestStateOnS3Alone(t *testing.T) {
	j := clitest.NewS3Job(t)
	j.Put("lists/a.csv", clitest.EmailList(200_000))
	run := func() *clitest.Process {
		return clitest.StartProgram(t, j.Args("s3://leads/lists/a.csv", "s3://leads/hems/", "--state", "s3://leads/state/", "--set", "rows_per_part=10000", "--workers", "1")...)
	}
	p := run()
	clitest.Until(t, "some parts are made", func() bool {
		parts, _ := filepath.Glob(j.Object("hems/part-*"))
		return len(parts) > 3 || p.Ended()
	})
	if !p.Kill() {
		t.Fatalf("the run ended: %s", p.Said.String())
	}
	p = run()
	if code := p.Code(); code != cli.ExitDone || !strings.Contains(p.Printed.String()+p.Said.String(), "from earlier runs") {
		t.Errorf("exit code %d: %s%s", code, p.Printed.String(), clitest.Tail(p.Said.String()))
	}
	j.Run(cli.ExitDone, "s3://leads/lists/a.csv", j.Path("local"), "--set", "rows_per_part=10000", "--quiet")
	for name, want := range clitest.Files(t, j.Path("local")) {
		if got, err := os.ReadFile(j.Object("hems/" + name)); strings.HasSuffix(name, ".parquet") && (err != nil || string(got) != want) {
			t.Errorf("%s differs: %v", name, err)
		}
	}
}

// TestTookIncludesTheState: the time of a run ends when its state on S3 is finished,
// after the dataset.
func TestTookIncludesTheState(t *testing.T) {
	m := newMachines(t, 20, badservice.DefaultOptions())
	m.Flags = slices.DeleteFunc(m.Flags, func(flag string) bool { return flag == "--quiet" })
	const delay = 700 * time.Millisecond
	var mu sync.Mutex
	var part, success time.Time
	delayed := 0
	m.s3.Proxy.Do(func(r *http.Request) s3test.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch name := r.URL.Path; {
		case !s3test.IsWrite(r):
		case strings.Contains(name, "/out/part-") && part.IsZero():
			part = time.Now()
		case strings.HasSuffix(name, "/out/_SUCCESS"):
			success = time.Now()
		case !success.IsZero() && strings.Contains(name, "/state/") && delayed == 0:
			delayed++
			return s3test.Fault{Kind: s3test.Delayed, Delay: delay}
		}
		return s3test.Fault{}
	})
	p := m.on(t, "a")
	code, said := p.Code(), p.Printed.String()
	shown := regexp.MustCompile(`(?m)^  took +([0-9.a-zµ]+)`).FindStringSubmatch(said)
	if code != cli.ExitDone || shown == nil || delayed == 0 || part.IsZero() {
		t.Fatalf("exit code %d, %d writes after the dataset:\n%s", code, delayed, said)
	}
	took, err := time.ParseDuration(shown[1])
	if least := success.Add(delay).Sub(part); err != nil || took < least-10*time.Millisecond { // it is rounded
		t.Errorf("took %s, and the part, the dataset and the state took %s (%v)", shown[1], least, err)
	}
}
