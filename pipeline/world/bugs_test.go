package world

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// bugsVariable is set to plant the bugs whose names it begins, "all" for all: each is compiled
// and looked for.
const bugsVariable = "LEADETL_WORLD_BUGS"

// bug is a change of the product that breaks a promise: the one place of a file that has the
// old text gets the new one.
type bug struct {
	name, file string
	old, new   string
}

// planted are the bugs that the world has to find.
var planted = []bug{
	{"a request leaves before its intent is synced", "internal/appendlog/appendlog.go",
		"\tif err == nil {\n\t\terr = l.to.Sync()\n\t}\n", ""},
	{"a sync that failed is ignored", "internal/appendlog/appendlog.go",
		"\t\terr = l.to.Sync()\n\t}\n", "\t\t_ = l.to.Sync()\n\t}\n"},
	{"half a record is believed", "internal/appendlog/appendlog.go",
		"checksum.Of(text[:4], record) == binary.LittleEndian.Uint32(text[4:])", "checksum.Of(nil) == checksum.Of(nil)"},
	{"a new log is not synced with its folder", "pipeline/answers/log.go",
		"err = s.logs.Sync() //", "err = nil //"},
	{"a change counts that was not stored", "pipeline/answers/log.go",
		"fault(s.store(s.staged)); err != nil {", "fault(s.store(s.staged)); err != nil && len(group) == 0 {"},
	{"a log is removed before it is in the database", "pipeline/answers/log.go",
		"func (s *Store) move(full *generation) error {\n", "func (s *Store) move(full *generation) error {\n\t_ = s.logs.Remove(logName(full.number))\n"},
	{"a log is brought into the database twice", "pipeline/answers/log.go",
		"if number > applied {", "if number > 0 {"},
	{"the number of a log is used again", "pipeline/answers/log.go",
		"return applied + 1, nil", "return max(applied, 1), nil"},
	{"a log is full before the last one is in the database", "pipeline/answers/log.go",
		"if err := s.awaitMove(); err != nil || s.mem.current.empty() {\n\t\treturn err", "if s.mem.current.empty() {\n\t\treturn nil"},
	{"an unknown call is forgotten when its log is moved", "pipeline/answers/sqlite_tx.go",
		"\t\tif c == nil {", "\t\tif c == nil || c.open.State == Unknown {"},
	{"what is spent is not moved with its log", "pipeline/answers/sqlite_tx.go",
		"for run, s := range from.spending {", "for run, s := range map[int64]*Spending{} {"},
	{"calls of a dead process stay under way", "pipeline/answers/sqlite_tx.go",
		"WHERE state = 'under_way'", "WHERE state = 'sent'"},
	{"a failed call that may have been billed is closed", "pipeline/answers/calls.go",
		"if !f.MayBeBilled && !before.open.MaybeBilled {", "if !before.open.MaybeBilled {"},
	{"a repeated call has a new idempotency key", "pipeline/answers/calls.go",
		"\t\t\tif send.NewKey {", "\t\t\tif send.Again {"},
	{"an answer that comes twice is paid twice", "pipeline/answers/calls.go",
		"\t\tif open {", "\t\tif open && q.Key == \"\" {"},
	{"a callback is stored under another question", "pipeline/answers/memtable.go",
		"\th, found := m.parked[id]\n", "\th, found := m.parked[id]\n\tfor _, other := range m.parked {\n\t\th, found = other, true\n\t}\n"},
	{"an idempotency key is sent for ever", "pipeline/purchase/decision.go",
		"return now.Sub(firstSent) < window-min(window/10, maxKeyMargin)", "return window > 0"},
	{"a parked call is sent again", "pipeline/purchase/call.go",
		"\t\tc.state = parked\n", "\t\tc.state, c.chosen = unknown, true\n"},
	{"a call that may have been billed is sent again", "pipeline/purchase/call.go",
		"return !c.maybeBilled() || c.chosen || c.keyHolds()", "return true"},
	{"an answer counts although storing it failed", "pipeline/purchase/call.go",
		"!errors.Is(err, answers.ErrNoCall) {\n\t\treturn nil, err", "!errors.Is(err, answers.ErrNoCall) {\n\t\treturn nil, nil"},
	{"an unknown call costs nothing", "pipeline/purchase/call.go",
		"c.maybeBilled() {\n\t\t\tc.charge.settle(c.charge.price)", "c.maybeBilled() {\n\t\t\tc.charge.settle(0)"},
	{"the price of a call under way is not held", "pipeline/purchase/budget.go",
		"\t\t\ta.held += price\n", ""},
	{"a price is released twice", "pipeline/purchase/budget.go",
		"c.account.adjust(0, 0, -1, -c.price)", "c.account.adjust(0, 0, -1, -2*c.price)"},
	{"one call too many fits the budget", "pipeline/purchase/budget.go",
		"a.calls+a.open+1 > b.MaxCalls", "a.calls+a.open > b.MaxCalls"},
	{"open calls of earlier processes are not counted", "pipeline/purchase/price.go",
		"range open {\n\t\ts.Open", "range open[:0] {\n\t\ts.Open"},
	{"a question is asked by two goroutines", "pipeline/purchase/in_flight.go",
		"if all[i] = f.entries[key]; all[i] == nil {", "if all[i] = f.entries[key]; all[i] == nil || i%2 == 1 {"},
	{"what is paid and what is open is read at two moments", "pipeline/purchase/price.go",
		"\tfor _, c := range open {\n", "\topen = open[:0]\n\tfor c := range r.Answers.OpenAnywhere(ctx) {\n\t\tif c.Run == run {\n\t\t\topen = append(open, c)\n\t\t}\n\t}\n\tfor _, c := range open {\n"},
	{"the failure of an earlier request closes the call of a later one", "pipeline/purchase/deliveries.go",
		"call.State == answers.UnderWay:", "call.State == \"\":"},
	{"a failure closes a call that is made after it was looked up", "pipeline/purchase/deliveries.go",
		", Resolution: call.Resolution})", "})"},
	{"a page that fails closes a call that may have been billed", "pipeline/purchase/await.go",
		"f.Over && (!open.MaybeBilled || c.keyHolds())", "f.Over"},
}

// module is the root of the module.
const module = "../.."

// plant returns the file of a bug with the bug in it.
func (b bug) plant(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(module, b.file))
	must(t, err)
	if n := strings.Count(string(text), b.old); n != 1 {
		t.Fatalf("%s: %s has its old text %d times: bring it up to date", b.name, b.file, n)
	}
	return strings.Replace(string(text), b.old, b.new, 1)
}

// TestPlantedBugs plants each bug in a copy of its file, and tries seeds until one finds it.
// Without the environment variable it only checks that each can be planted.
func TestPlantedBugs(t *testing.T) {
	chosen := os.Getenv(bugsVariable)
	for _, b := range planted {
		text := b.plant(t)
		if chosen == "all" || chosen != "" && strings.HasPrefix(b.name, chosen) {
			t.Run(b.name, func(t *testing.T) { b.find(t, text) })
		}
	}
}

// mostSeeds is more seeds than 100,000 lives take.
const mostSeeds = 25_000

// foundBy is what a process says of the seed that failed.
var foundBy = regexp.MustCompile(`seed \d+: (.*)`)

func (b bug) find(t *testing.T, text string) {
	dir := t.TempDir()
	planted, overlay, binary := filepath.Join(dir, "planted.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "world.test")
	file, err := filepath.Abs(filepath.Join(module, b.file))
	must(t, err, os.WriteFile(planted, []byte(text), 0o600))
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {file: planted}})
	must(t, err, os.WriteFile(overlay, replace, 0o600))
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := part{first: 1, step: 1, seeds: mostSeeds}.try(t, binary, "TestWorld")
	if err == nil {
		t.Fatalf("no seed finds it: %s", out)
	}
	said := foundBy.FindStringSubmatch(out)
	if said == nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%s: %v: %s", b.name, err, said[1])
}
