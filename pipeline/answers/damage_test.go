package answers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/disk"
)

// priced is what each answer of the tests of damage costs.
const priced = 3

// leaveKilled makes answers in a folder as a killed process leaves them: some in files, some in a log,
// and open calls. It returns how many questions were answered, and how many calls are open.
func leaveKilled(t *testing.T, dir string, moved, logged int) (answered, open int) {
	t.Helper()
	s, err := Open(t.Context(), InFolder(filepath.Join(dir, "alive")), Options{})
	must(t, err)
	for i := range moved + logged {
		q := person(fmt.Sprint("number ", i))
		intent(t, s, q, Send{Run: "night", At: noon})
		if i%10 == 9 {
			open++
		} else {
			answered++
			must(t, s.Put(t.Context(), q, Answer{Run: "night", Outcome: Matched, Credits: credits(priced), Body: bytes.Repeat([]byte("x"), i*37%900), Received: noon}))
		}
		if i == moved-1 {
			must(t, s.flush())
		}
	}
	must(t, os.CopyFS(filepath.Join(dir, "killed"), os.DirFS(filepath.Join(dir, "alive"))), s.Close())
	return answered, open
}

// TestDamage: what happens to the files of a killed run is told, or loses nothing but the last record. What
// can be read after a repair is what was stored, and what cannot counts as spent.
func TestDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	type files map[string][]byte
	log := func(f files) string {
		for name := range f {
			if strings.HasSuffix(name, logSuffix) {
				return name
			}
		}
		t.Fatal("no log")
		return ""
	}
	at := func(text []byte) int { // in its records, but for the last one
		end := len(bytes.TrimRight(text, "\x00"))
		return r.IntN(end - 2048)
	}
	kinds := map[string]func(f files){
		"another bit":     func(f files) { text := f[log(f)]; text[at(text)] ^= 1 << r.IntN(8) },
		"a wrong length":  func(f files) { text := f[log(f)]; text[at(text)/512*512+4] ^= 1 },
		"a zeroed sector": func(f files) { text := f[log(f)]; clear(text[at(text)/512*512:][:512]) },
		"cut":             func(f files) { name := log(f); f[name] = f[name][:at(f[name])] },
		"cut to nothing":  func(f files) { f[log(f)] = nil },
		"no log":          func(f files) { delete(f, log(f)) },
		"a log under another number": func(f files) {
			name := log(f)
			f[logName(9999)] = f[name]
			delete(f, name)
		},
		"no log, and no note of its calls": func(f files) { delete(f, log(f)); delete(f, allowanceName) },
		"a log twice":                      func(f files) { f[logName(9999)] = f[log(f)] },
		"no manifest": func(f files) {
			for name := range f {
				if strings.HasPrefix(name, manifestPrefix) {
					delete(f, name)
				}
			}
		},
		"a piece is missing": func(f files) { n, x := log(f), at(f[log(f)])/512*512; f[n] = append(f[n][:x:x], f[n][x+512:]...) },
	}
	tries := 6
	if testing.Short() {
		tries = 2
	}
	for _, c := range []struct{ moved, logged int }{{0, 60}, {50, 60}} {
		dir := t.TempDir()
		answered, open := leaveKilled(t, dir, c.moved, c.logged)
		whole := files{}
		left, err := os.ReadDir(filepath.Join(dir, "killed"))
		must(t, err)
		for _, f := range left {
			whole[f.Name()], err = os.ReadFile(filepath.Join(dir, "killed", f.Name()))
			must(t, err)
		}
		for kind, damage := range kinds {
			for try := range tries {
				t.Run(fmt.Sprintf("%s, %d in files, %d", kind, c.moved, try), func(t *testing.T) {
					damaged := files{}
					for name, text := range whole {
						damaged[name] = bytes.Clone(text)
					}
					damage(damaged)
					dir := t.TempDir()
					for name, text := range damaged {
						must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
					}
					checkDamaged(t, dir, kind, answered, open)
				})
			}
		}
	}
}

func checkDamaged(t *testing.T, dir, kind string, answered, open int) {
	t.Helper()
	before := content(t, dir)
	s, err := Open(t.Context(), InFolder(dir), Options{})
	_, other := OpenContents(t.Context(), InFolder(dir))
	if kind == "another bit" && err == nil { // of what fills a sector
		checkAll(t, s, answered, open)
		return
	}
	if !errors.Is(err, appendlog.ErrDamaged) || !errors.Is(other, appendlog.ErrDamaged) || !strings.Contains(err.Error(), "answers") {
		t.Fatalf("opened: %v; read: %v; want damage", err, other)
	}
	found, err := Inspect(t.Context(), InFolder(dir))
	if err != nil || found.Whole() {
		t.Fatalf("inspected: %+v, %v", found, err)
	}
	for name, text := range before { // the proof is kept
		if strings.HasSuffix(name, logSuffix) && content(t, dir)[name] != text {
			t.Errorf("%s has changed", name)
		}
	}
	aside, err := Repair(t.Context(), InFolder(dir))
	if kind == "no manifest" {
		if !errors.Is(err, appendlog.ErrDamaged) || !strings.Contains(err.Error(), "from a backup") {
			t.Errorf("a store without a manifest was repaired: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatalf("repaired: %v", err)
	}
	for _, path := range aside {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if again, err := Inspect(t.Context(), InFolder(dir)); err != nil || !again.Whole() || again.Answers != found.Answers {
		t.Errorf("after the repair: %+v, %v; before it %+v", again, err, found)
	}
	s, err = Open(t.Context(), InFolder(dir), Options{})
	must(t, err)
	defer s.Close()
	stored := storedOf(t, s, answered+open)
	spent, calls, err := s.SumSpent(t.Context(), "night")
	if err != nil || int64(stored) != found.Answers || spent.Answers+int64(len(calls)) < int64(answered+open) ||
		spent.Credits+priced*spent.Unpriced+priced*int64(len(calls)) < int64(priced*(answered+open)) {
		t.Errorf("%d of %d stored (%+v), spent %+v, %d calls open of %d, %v", stored, answered, found, spent, len(calls), open, err)
	}
	var paid Spending // as the allowance of all runs counts it
	days, err := s.SpentSince(t.Context(), "")
	for _, d := range days {
		paid = paid.Plus(d.Spending)
	}
	if paid != spent || err != nil {
		t.Errorf("%+v is spent by days, and %+v by the run: %v", paid, spent, err)
	}
	if gone := int64(answered - stored); found.Lost.Answers+found.Lost.Intents < gone {
		t.Errorf("%d answers are gone, and %+v", gone, found.Lost)
	}
	if slices.Contains([]string{"another bit", "a wrong length", "a zeroed sector", "a piece is missing"}, kind) && stored < answered-1 {
		t.Errorf("%d of %d answers are stored, though one record alone is damaged", stored, answered)
	}
	most := int64(answered + open + leastAllowed)
	if kind == "no log, and no note of its calls" {
		most = 2 * maxLogBytes / 80
	}
	if counted := spent.Answers + int64(len(calls)); counted > most {
		t.Errorf("%d of %d calls are counted; at most %d should be (%+v)", counted, answered+open, most, found.Lost)
	}
}

// storedOf counts the questions with an answer, each its own.
func storedOf(t *testing.T, s *Store, questions int) (stored int) {
	t.Helper()
	for i := range questions {
		f := look(t, s, person(fmt.Sprint("number ", i)), Freshness{})
		if f.Stored {
			stored++
		}
		if f.Stored && (i%10 == 9 || *f.Answer.Credits != priced) {
			t.Errorf("question %d has another's answer", i)
		}
	}
	return stored
}

func checkAll(t *testing.T, s *Store, answered, open int) {
	t.Helper()
	_, calls, err := s.SumSpent(t.Context(), "night")
	if stored := storedOf(t, s, answered+open); stored != answered || len(calls) != open || err != nil {
		t.Errorf("%d of %d answers, %d of %d calls, %v", stored, answered, len(calls), open, err)
	}
	must(t, s.Close())
}

// TestDamageOfTwoLogs: a killed process may leave a second log, before the first is in files. All that
// can be read of both is kept.
func TestDamageOfTwoLogs(t *testing.T) {
	const each = 40                                   // questions in a log
	number := func(i int) int { return i/9*10 + i%9 } // none that leaveKilled leaves open
	dir := t.TempDir()
	s, err := Open(t.Context(), InFolder(filepath.Join(dir, "alive")), Options{})
	must(t, err)
	ask := func(from int) {
		for i := from; i < from+each; i++ {
			q := person(fmt.Sprint("number ", number(i)))
			intent(t, s, q, Send{Run: "night", At: noon})
			must(t, s.Put(t.Context(), q, Answer{Run: "night", Outcome: Matched, Credits: credits(priced), Received: noon}))
		}
	}
	ask(0)
	s.publishing.Lock()
	s.logMu.Lock()
	err = s.rotate()
	s.logMu.Unlock()
	must(t, err)
	ask(each)
	must(t, os.CopyFS(filepath.Join(dir, "killed"), os.DirFS(filepath.Join(dir, "alive"))))
	s.publishing.Unlock()
	must(t, s.Close())

	zero := func(from int) func(path string) error {
		return func(path string) error {
			text, err := os.ReadFile(path)
			clear(text[from : from+512])
			return errors.Join(err, os.WriteFile(path, text, 0o600))
		}
	}
	for name, c := range map[string]struct {
		damage [2]func(path string) error
		kept   int // answers, at least
		aside  int
	}{
		"no first log":                 {[2]func(string) error{os.Remove, nil}, each, 0},
		"no second log":                {[2]func(string) error{nil, os.Remove}, each, 0},
		"neither log":                  {[2]func(string) error{os.Remove, os.Remove}, 0, 0},
		"a record of the first log":    {[2]func(string) error{zero(512 * 10), nil}, 2*each - 1, 1},
		"the first record":             {[2]func(string) error{zero(0), nil}, 2*each - 1, 1},
		"a record of both":             {[2]func(string) error{zero(512 * 10), zero(512 * 10)}, 2*each - 2, 2},
		"the end of the first log":     {[2]func(string) error{func(path string) error { return os.Truncate(path, 512*40) }, nil}, each + 19, 1},
		"the begin of the second log":  {[2]func(string) error{nil, zero(0)}, 2*each - 1, 1},
		"the whole of the second log":  {[2]func(string) error{nil, func(path string) error { return os.Truncate(path, 0) }}, each, 1},
		"an end, and the log after it": {[2]func(string) error{func(path string) error { return os.Truncate(path, 512*40) }, os.Remove}, 19, 1},
	} {
		t.Run(name, func(t *testing.T) {
			damaged := filepath.Join(t.TempDir(), "damaged")
			must(t, os.CopyFS(damaged, os.DirFS(filepath.Join(dir, "killed"))))
			logs, err := filepath.Glob(filepath.Join(damaged, "*"+logSuffix))
			must(t, err)
			if len(logs) != 2 {
				t.Fatalf("the logs are %q", logs)
			}
			for i, damage := range c.damage {
				if damage != nil {
					must(t, damage(logs[i]))
				}
			}
			found, err := Inspect(t.Context(), InFolder(damaged))
			if must(t, err); found.Whole() {
				t.Error("the damage is not found")
			}
			aside, err := Repair(t.Context(), InFolder(damaged))
			must(t, err)
			if len(aside) != c.aside {
				t.Errorf("set aside %q", aside)
			}
			s, err := Open(t.Context(), InFolder(damaged), Options{})
			must(t, err)
			defer s.Close()
			spent, calls, err := s.SumSpent(t.Context(), "night")
			must(t, err)
			stored := storedOf(t, s, number(2*each))
			counted := spent.Answers + int64(len(calls))
			if int64(stored) != found.Answers || stored < c.kept || counted < 2*each || counted > 2*each+leastAllowed {
				t.Errorf("%d answers are stored, want %d at least (%+v); spent %+v, %d calls open", stored, c.kept, found, spent, len(calls))
			}
		})
	}
}

// refusing is a folder that cannot make the note of how many calls are allowed.
type refusing struct {
	disk.Folder
	refuses bool
}

// In is the folder itself: it has none below it.
func (r *refusing) In(string) disk.Folder { return r }

func (r *refusing) Create(name string, perm fs.FileMode) (disk.File, error) {
	if r.refuses && strings.Contains(name, allowanceName) {
		return nil, syscall.ENOSPC
	}
	return r.Folder.Create(name, perm)
}

// TestAllowanceThatIsNotStored: no log has more calls than the note beside it says, also where writing
// the note has failed.
func TestAllowanceThatIsNotStored(t *testing.T) {
	dir := t.TempDir()
	folder := &refusing{Folder: disk.Dir(dir)}
	s, err := Open(t.Context(), On(folder), Options{})
	must(t, err)
	defer s.Close()
	begun := int64(0)
	for i := range 10 * leastAllowed {
		folder.refuses = i%3 > 0
		switch _, err := s.Intent(t.Context(), person(fmt.Sprint("number ", i)), Send{Run: "night", At: noon}); {
		case err == nil:
			begun++
		case !folder.refuses || !errors.Is(err, ErrFull):
			t.Fatal(err)
		}
		allowed, err := s.log.(*fileLog).readAllowance(t.Context())
		must(t, err)
		most := int64(0)
		for _, r := range allowed {
			most = max(most, r.Intents)
		}
		if begun > most {
			t.Fatalf("%d calls have begun, and %d are allowed", begun, most)
		}
	}
}

// TestInterruptedInspection: who interrupts an inspection or a repair is not told of damage.
func TestInterruptedInspection(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), InFolder(dir), Options{})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	_, inspected := Inspect(ctx, InFolder(dir))
	_, repaired := Repair(ctx, InFolder(dir))
	for what, err := range map[string]error{"inspection": inspected, "repair": repaired} {
		if !errors.Is(err, context.Canceled) || errors.Is(err, appendlog.ErrDamaged) {
			t.Errorf("an interrupted %s says %v", what, err)
		}
	}
}

// TestDamageOfAnotherRun: what a lost record had counts as spent, also if a record of another run follows, or none.
func TestDamageOfAnotherRun(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), InFolder(filepath.Join(dir, "alive")), Options{})
	must(t, err)
	buy := func(run string, number int) {
		q := person(fmt.Sprint(run, number))
		intent(t, s, q, Send{Run: run, At: noon})
		must(t, s.Put(t.Context(), q, Answer{Run: run, Outcome: Matched, Credits: credits(priced), Body: bytes.Repeat([]byte("x"), 400), Received: noon}))
	}
	runs := []string{"a", "b", "c"}
	for number := range 3 {
		for _, run := range runs {
			buy(run, number)
		}
	}
	must(t, os.CopyFS(filepath.Join(dir, "killed"), os.DirFS(filepath.Join(dir, "alive"))), s.Close())
	log := filepath.Join(dir, "killed", logName(1))
	whole, err := os.ReadFile(log)
	must(t, err)
	for from := 0; from < len(bytes.TrimRight(whole, "\x00"))-512; from += 512 {
		text := bytes.Clone(whole)
		clear(text[from:min(from+2048, len(text))])
		must(t, os.RemoveAll(filepath.Join(dir, "damaged")), os.CopyFS(filepath.Join(dir, "damaged"), os.DirFS(filepath.Join(dir, "killed"))))
		must(t, os.WriteFile(filepath.Join(dir, "damaged", logName(1)), text, 0o600))
		if found, err := Inspect(t.Context(), InFolder(filepath.Join(dir, "damaged"))); err != nil {
			t.Fatal(err)
		} else if found.Whole() { // the last record alone
			continue
		}
		_, err := Repair(t.Context(), InFolder(filepath.Join(dir, "damaged")))
		must(t, err)
		s, err := Open(t.Context(), InFolder(filepath.Join(dir, "damaged")), Options{})
		must(t, err)
		for _, run := range runs {
			if spent, open, err := s.SumSpent(t.Context(), run); err != nil || spent.Answers+int64(len(open)) < 3 {
				t.Errorf("damaged at byte %d: %s has spent %+v, and %d calls are open, of 3: %v", from, run, spent, len(open), err)
			}
		}
		must(t, s.Close())
	}
}
