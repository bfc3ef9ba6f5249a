package answers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/disk"
)

func contents(t *testing.T, s *Store) *Contents {
	t.Helper()
	c, err := s.Contents()
	must(t, err)
	return c
}

// beside reads a folder beside whoever uses it.
func beside(t *testing.T, dir string) *Contents {
	t.Helper()
	c, err := OpenContents(t.Context(), InFolder(dir))
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

// statOf is the Stat of an unused folder, with its tallies in order.
func statOf(t *testing.T, dir string) Stat {
	t.Helper()
	c, err := OpenContents(t.Context(), InFolder(dir))
	must(t, err)
	st, err := c.Stat(t.Context())
	if must(t, err, c.Close()); c.InUse {
		t.Error("a process that was killed uses the folder")
	}
	slices.SortFunc(st.Tallies, func(a, b Tally) int {
		return strings.Compare(fmt.Sprint(a.Scope, a.Outcome), fmt.Sprint(b.Scope, b.Outcome))
	})
	return st
}

// checkBeside holds what is read beside a process against what it has
// acknowledged.
func checkBeside(t *testing.T, dir string, told map[int][2]string) {
	t.Helper()
	c, err := OpenContents(t.Context(), InFolder(dir))
	must(t, err)
	defer func() { must(t, c.Close()) }()
	if !c.InUse {
		t.Error("the folder is not in use")
	}
	stored, open := map[Hash]Item{}, map[Hash]OpenCall{}
	for _, i := range all(t, c.List(t.Context(), Filter{Bodies: true})) {
		if _, twice := stored[i.Hash]; twice {
			t.Errorf("an answer is listed twice")
		}
		stored[i.Hash] = i
	}
	calls, err := c.Calls(t.Context())
	must(t, err)
	for _, call := range calls {
		open[call.Hash] = call
	}
	st, err := c.Stat(t.Context())
	must(t, err)
	var answers int64
	for _, tally := range st.Tallies {
		answers += tally.Answers
	}
	if answers != int64(len(stored)) || st.Unknown+st.Parked+st.UnderWay != int64(len(open)) {
		t.Errorf("%+v counts %d answers, %d are listed; %d calls are open", st, answers, len(stored), len(open))
	}
	for i, said := range told {
		h, what, key := killedQuestion(i).Hash(), said[0], said[1]
		item, isStored := stored[h]
		call, isOpen := open[h]
		whole := isStored && bytes.Equal(item.Body, killedBody(i)) && *item.Credits == int64(i%3) && item.Run == "killed" && item.Key == killedQuestion(i).Key
		good := true // what follows an intent may be there already
		switch what {
		case "put":
			good = whole && !isOpen
		case "free":
			good = !isStored && !isOpen
		case "billed":
			good = !isStored && call.State == Unknown && call.IdempotencyKey == key && call.Run == "killed"
		case "parked":
			good = !isStored && call.State == Parked && call.IdempotencyKey == key && call.Scope == people
		}
		if !good {
			t.Errorf("question %d: %s was acknowledged, found %v and %+v", i, what, isStored, call)
		}
	}
}

// TestContentsReplaced: an answer in the log replaces one in the database.
func TestContentsReplaced(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for i, o := range []Outcome{NoMatch, Matched} {
		must(t, s.Put(t.Context(), person("one"), Answer{Run: "night", Outcome: o, Status: 200 + i, Credits: credits(int64(2 * i)), Received: noon}))
		must(t, s.Put(t.Context(), person(fmt.Sprint("other", i)), Answer{Run: "night", Outcome: Matched, Received: noon}))
		if i == 0 {
			contents(t, s) // moves all into the database
		}
	}
	intent(t, s, person("two"), Send{Run: "night", At: noon})
	for _, c := range []*Contents{beside(t, dir), contents(t, s)} {
		st, err := c.Stat(t.Context())
		must(t, err)
		want := Stat{Tallies: []Tally{{people, Matched, Spending{3, 2, 2}, noon, noon}}, UnderWay: 1}
		if !reflect.DeepEqual(st, want) {
			t.Errorf("%+v, want %+v", st, want)
		}
		for _, i := range all(t, c.List(t.Context(), Filter{Operation: people.Operation})) {
			if i.Key == person("one").Key && i.Status != 201 {
				t.Errorf("%+v", i)
			}
		}
		if calls := all(t, c.Unknown(t.Context())); len(calls) > 0 {
			t.Errorf("a call under way is unknown: %+v", calls)
		}
	}
}

// readerChild is the environment variable that makes the test binary read the
// folder that it names.
const readerChild = "LEADETL_READ_ANSWERS"

// TestReaderChild prints what it reads.
func TestReaderChild(t *testing.T) {
	dir := os.Getenv(readerChild)
	if dir == "" {
		t.Skip("it is run by TestContentsWithoutWriting")
	}
	st, err := beside(t, dir).Stat(t.Context())
	must(t, err)
	fmt.Printf("unknown %d, answers %d\n", st.Unknown, st.Tallies[0].Answers)
}

// content are the files of a folder, but for SQLite's index and an empty log.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := os.ReadDir(dir)
	must(t, err)
	all := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if must(t, err); len(text) > 0 && !strings.HasSuffix(f.Name(), "-shm") {
			all[f.Name()] = string(text)
		}
	}
	return all
}

// TestContentsWithoutWriting reads where nothing can be written: folders of
// another user, and full disks; of runs that ended, that were killed, and that go
// on.
func TestContentsWithoutWriting(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("takes other users and disks, as root")
	}
	fill := func(s *Store) {
		must(t, s.Put(t.Context(), person("one"), Answer{Run: "night", Outcome: Matched, Received: noon}))
		contents(t, s)
		must(t, s.Put(t.Context(), person("two"), Answer{Run: "night", Outcome: Matched, Received: noon}))
		must(t, s.Put(t.Context(), person("two"), Answer{Run: "night", Outcome: Matched, Received: noon}))
		intent(t, s, person("three"), Send{Run: "night", At: noon})
	}
	for _, c := range []struct {
		name    string
		leave   func(s *Store, dir string) string // the folder to read
		unknown int
	}{
		{"after its end", func(s *Store, dir string) string {
			must(t, s.Close())
			s.lock = nil
			return dir
		}, 1},
		{"while it continues", func(_ *Store, dir string) string { return dir }, 0},
		{"after a kill", func(_ *Store, dir string) string { // a copy, as it is on disk
			left := filepath.Join(filepath.Dir(dir), "left")
			must(t, os.Mkdir(left, 0o755), exec.Command("sh", "-c", "cp "+dir+"/* "+left).Run())
			return left
		}, 1},
	} {
		for _, disk := range []string{"read-only", "full"} {
			t.Run(c.name+", "+disk, func(t *testing.T) {
				top, err := os.MkdirTemp("/tmp", "answers") // others may enter it
				must(t, err, os.Chmod(top, 0o755))
				t.Cleanup(func() { os.RemoveAll(top) })
				if disk == "full" {
					must(t, syscall.Mount("tmpfs", top, "tmpfs", 0, "size=4m"))
					t.Cleanup(func() { _ = syscall.Unmount(top, syscall.MNT_DETACH) })
				}
				s, err := Open(t.Context(), InFolder(filepath.Join(top, "answers")), Options{})
				must(t, err)
				fill(s)
				t.Cleanup(func() {
					if s.lock != nil {
						_ = s.Close() // there may be no space for what is in the log
					}
				})
				dir := c.leave(s, filepath.Join(top, "answers"))
				child := exec.Command(os.Args[0], "-test.run=^TestReaderChild$")
				child.Env = append(os.Environ(), readerChild+"="+dir)
				if disk == "full" {
					_ = exec.Command("sh", "-c", "cat /dev/zero > "+top+"/ballast").Run()
				} else {
					binary := filepath.Join(top, "reader")
					must(t, exec.Command("cp", os.Args[0], binary).Run(), exec.Command("sh", "-c", "chmod 555 "+dir+"; chmod 444 "+dir+"/*").Run())
					child.Path, child.Dir = binary, top
					child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
				}
				before := content(t, dir)
				out, err := child.CombinedOutput()
				if want := fmt.Sprintf("unknown %d, answers 2", c.unknown); err != nil || !strings.Contains(string(out), want) {
					t.Errorf("%v, want %s:\n%s", err, want, out)
				}
				after := content(t, dir)
				for name, text := range before {
					if after[name] != text {
						t.Errorf("reading changed %s: %d bytes, before %d", name, len(after[name]), len(text))
					}
				}
			})
		}
	}
}

// TestListedFromTheLog: what is in the log alone is listed as what is in the database, all of it
// or as much as is asked for.
func TestListedFromTheLog(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	other := Question{Scope{"https://other.example", people.Operation}, "c"}
	for _, q := range []Question{person("a"), person("b"), other} {
		must(t, s.Put(t.Context(), q, Answer{Run: "night", Outcome: Matched, Received: noon}))
	}
	for _, q := range []Question{person("d"), person("e")} {
		intent(t, s, q, Send{Run: "night", At: noon})
		must(t, s.Fail(t.Context(), q, Failure{MayBeBilled: true}))
	}
	c := beside(t, dir)
	for service, want := range map[string]int{"": 3, people.Service: 2, other.Service: 1, "https://none.example": 0} {
		if n := len(all(t, c.List(t.Context(), Filter{Service: service}))); n != want {
			t.Errorf("%d answers of %q, want %d", n, service, want)
		}
	}
	st, err := c.Stat(t.Context())
	must(t, err)
	if len(st.Tallies) != 2 || st.Tallies[0].Answers != 2 || st.Tallies[1].Answers != 1 || st.Tallies[1].Scope != other.Scope {
		t.Errorf("%+v, want two answers of one service, and one of another", st.Tallies)
	}
	if unknown := all(t, c.Unknown(t.Context())); len(unknown) != 2 {
		t.Errorf("%d unknown calls, want 2", len(unknown))
	}
	must(t, s.Put(t.Context(), person("f"), Answer{Run: "night", Outcome: Matched, Received: noon.AddDate(0, 0, 1)}))
	for days, want := range map[int]int{0: 3, 1: 1, 2: 0} { // of two services on the first day
		spent, err := beside(t, dir).SpentSince(t.Context(), DayOf(noon.AddDate(0, 0, days)))
		if len(spent) != want || err != nil {
			t.Errorf("%d sums since day %d, %v; want %d", len(spent), days, err, want)
		}
	}
	for range c.List(t.Context(), Filter{}) {
		break // it panics if it is not stopped
	}
	if sorted := all(t, s.Sorted(t.Context(), people)); len(sorted) != 3 {
		t.Errorf("%d answers of a scope, want 3", len(sorted))
	}
	for _, listed := range []iter.Seq2[OpenCall, error]{c.Unknown(t.Context()), s.Unknown(t.Context()), s.OpenAnywhere(t.Context())} {
		for range listed {
			break
		}
	}
}

// TestTakeNewer: what is taken over from another store is what it knows later. An error ends it.
func TestTakeNewer(t *testing.T) {
	s, broken := open(t, t.TempDir()), errors.New("broken")
	q := person("one")
	call := func(sent time.Time) []OpenCall {
		return []OpenCall{{Hash: q.Hash(), Question: q, Run: "later", State: Unknown, Sent: sent}}
	}
	answer := func(at time.Time) Item {
		return Item{q.Hash(), q, Answer{Run: "later", Outcome: Matched, Received: at}}
	}
	for _, step := range []struct {
		name  string
		items []Item
		calls []OpenCall
		taken Taken
		open  State
	}{
		{"a call", nil, call(noon), Taken{0, 1}, Unknown},
		{"the same call", nil, call(noon), Taken{}, Unknown},
		{"an older call", nil, call(noon.Add(-time.Hour)), Taken{}, Unknown},
		{"its answer", []Item{answer(noon.Add(time.Minute))}, nil, Taken{1, 0}, ""},
		{"the call that has been answered", nil, call(noon), Taken{}, ""},
		{"the same answer", []Item{answer(noon.Add(time.Minute))}, nil, Taken{}, ""},
		{"a later call", nil, call(noon.Add(time.Hour)), Taken{0, 1}, Unknown},
		{"an older answer", []Item{answer(noon.Add(2 * time.Minute))}, nil, Taken{1, 0}, Unknown},
	} {
		taken, err := s.Take(t.Context(), people, func(yield func(Item, error) bool) {
			for _, i := range step.items {
				yield(i, nil)
			}
		}, step.calls)
		if f := look(t, s, q, Freshness{}); taken != step.taken || err != nil || f.Open != step.open {
			t.Errorf("%s: %+v, %v, and the call is %q; want %+v and %q", step.name, taken, err, f.Open, step.taken, step.open)
		}
	}
	if _, err := s.Take(t.Context(), people, func(yield func(Item, error) bool) { yield(Item{}, broken) }, nil); !errors.Is(err, broken) {
		t.Errorf("%v, want the error", err)
	}
	if sorted := all(t, s.Sorted(t.Context(), people)); len(sorted) != 1 || sorted[0].Key != q.Key {
		t.Errorf("%+v, want the answer of the question", sorted)
	}
}

// TestFlushThatFails: a call that cannot be written into a file stays in the log.
func TestFlushThatFails(t *testing.T) {
	full := &small{Folder: disk.Dir(t.TempDir())}
	full.space.Store(1 << 20)
	s, err := Open(t.Context(), On(full), Options{})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	intent(t, s, person("one"), Send{Run: "night", At: noon})
	full.full.Store(true)
	if calls, err := s.OpenCalls(t.Context(), people); !errors.Is(err, ErrFull) {
		t.Errorf("calls that cannot be written: %+v, %v", calls, err)
	}
	if err := s.flush(); !errors.Is(err, ErrFull) {
		t.Errorf("written where nothing can be written: %v", err)
	}
	full.full.Store(false)
	must(t, s.flush())
	if f := look(t, s, person("one"), Freshness{}); f.Open == "" {
		t.Errorf("%+v", f)
	}
}

// TestOddRecord: a log whose record ends with what is no change cannot be read.
func TestOddRecord(t *testing.T) {
	dir := t.TempDir()
	log, err := appendlog.Create(disk.Dir(dir), logName(1), appendlog.First)
	must(t, err, log.Append([]byte("?")), log.Close())
	if _, err := readGeneration(t.Context(), InFolder(dir).newLog(Options{}), logState{Number: appendlog.First.Number}); !errors.Is(err, errRecord) {
		t.Errorf("%v", err)
	}
}

// TestExportThatFails: an export ends with the error of the first answer that cannot be read.
func TestExportThatFails(t *testing.T) {
	broken := errors.New("broken")
	if err := Export(io.Discard, func(yield func(Line, error) bool) { _ = yield(Line{}, nil) && yield(Line{}, broken) }); !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
}
