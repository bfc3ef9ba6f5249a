package changes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/internal/testkit/rapidtest"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// trimmed is a text without the indentation of a test's table.
func trimmed(lines string) (text string) {
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" {
			text += line + "\n"
		}
	}
	return text
}

// TestNights has a night after another. Columns: id key outcome reason city words credits.
func TestNights(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"nothing differs", "1 a matched - Oslo x 5", "1 a matched - Oslo x 5", ""},
		{"what an answer cost is not compared", "1 a matched - Oslo x 5", "1 a matched - Oslo x 0", ""},
		{"the order is not compared", "1 a matched - Oslo x 5\n2 b matched - Rome x 5", "2 b matched - Rome x 5\n1 a matched - Oslo x 5", ""},
		{"a new key", "", "1 a matched - Oslo x 5", "added a - -"},
		{"a key that is gone", "1 a matched - Oslo x 5", "", "removed a - -"},
		{"a value", "1 a matched - Oslo x 5", "1 a matched - Rome x 5", "changed a company_city Oslo"},
		{"a kept column", "1 a matched - Oslo x 5", "2 a matched - Oslo x 5", "changed a id Oslo"},
		{"a list", "1 a matched - Oslo x 5", "1 a matched - Oslo x,y 5", "changed a matched_keywords Oslo"},
		{"null and an empty list", "1 a matched - Oslo - 5", "1 a matched - Oslo , 5", "changed a matched_keywords Oslo"},
		{"a value that goes", "1 a matched - Oslo x 5", "1 a matched - - x 5", "changed a company_city Oslo"},
		{"a row that fails keeps its answer", "1 a matched - Oslo x 5", "1 a failed unavailable - - -", "changed a outcome,reason Oslo"},
		{"a row that fails with what another resolver found", "1 a matched - Oslo x 5", "1 a failed unavailable Rome - -", "changed a outcome,reason,company_city Oslo"},
		{"it fails again", "1 a failed unavailable - - -", "1 a failed unavailable - - -", ""},
		{"it heals", "1 a failed unavailable - - -", "1 a matched - Oslo x 5", "changed a outcome,reason,company_city,matched_keywords -"},
		{"a repeat more", "1 a matched - Oslo x 5", "1 a matched - Oslo x 5\n1 a matched - Oslo x 5", "added a - -"},
		{"a repeat less", "1 a matched - Oslo x 5\n2 a matched - Oslo x 5", "1 a matched - Oslo x 5", "removed a - -"},
		{"the second of two", "1 a matched - Oslo x 5\n2 a matched - Oslo x 5", "1 a matched - Oslo x 5\n3 a matched - Oslo x 5", "changed a id Oslo"},
		{"repeats that moved", "1 a matched - Oslo x 5\n2 a matched - Oslo x 5\n3 a matched - Oslo x 5", "3 a matched - Oslo x 5\n1 a matched - Oslo x 5\n2 a matched - Oslo x 5", ""},
		{"repeats that moved, and one that changed", "1 a matched - Oslo x 5\n2 a matched - Oslo x 5", "2 a matched - Oslo x 5\n3 a matched - Oslo x 5", "changed a id Oslo"},
		{"repeats that moved, and one that is gone", "1 a matched - Oslo x 5\n2 a matched - Oslo x 5\n3 a matched - Oslo x 5", "3 a matched - Oslo x 5\n2 a matched - Oslo x 5", "removed a - -"},
		{"rejected rows are found by their identifier", "x@ - rejected invalid Oslo - -\ny@ - rejected invalid - - -", "y@ - rejected invalid - - -\nx@ - rejected invalid Rome - -\nz@ - rejected invalid - - -", "changed - company_city Oslo\nadded - - -"},
		{"rejected rows without one have no key", "- - rejected empty Oslo - -\n- - rejected empty Rome - -", "- - rejected empty Rome - -\n- - rejected empty Bern - -", "without_key - - -\nwithout_key - - -"},
		{"suppressed rows are in neither", "- - suppressed x - - 5", "- - suppressed x - - 5\n- - suppressed x - - 5", ""},
		{"in the order of the new dataset, then of the old", "9 z matched - Oslo x 5\n8 y matched - Oslo x 5\n1 a matched - Oslo x 5", "3 c matched - Oslo x 5\n1 a matched - Rome x 5\n2 b matched - Oslo x 5",
			"added c - -\nchanged a company_city Oslo\nadded b - -\nremoved z - -\nremoved y - -"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, after := dataset(t, filepath.Join(t.TempDir(), "a"), "job", 2, parse(c.before)), dataset(t, filepath.Join(t.TempDir(), "b"), "job2", 2, parse(c.after))
			m := mustCompare(t, before, after, Settings{Was: []string{"company_city"}})
			if got := m.lines("change", "key", "changed", "was_company_city"); got != trimmed(c.want) {
				t.Errorf("got\n%swant\n%s", got, trimmed(c.want))
			}
		})
	}
}

// TestFirstNight: without an earlier dataset all rows are added, and a second one is compared
// with the first.
func TestFirstNight(t *testing.T) {
	after := dataset(t, filepath.Join(t.TempDir(), "a"), "job", 10, parse("1 a matched - Oslo x 5\n2 - rejected empty - - -\n- - rejected empty - - -\n- - suppressed x - - 5"))
	m := mustCompare(t, nil, after, Settings{})
	if got := m.lines("change", "id", "since", "key_hash", "was_row_hash"); got != "added 1 - - -\nadded 2 - - -\nwithout_key - - - -\n" || m.Added != 2 || m.WithoutKey != 1 || m.Since != "" {
		t.Errorf("%s%+v", got, m.Changes)
	}
}

// TestSuppressedPerson: a dataset that leaves people out does not say whom. So every row that is
// gone from it shows a salted hash alone.
func TestSuppressedPerson(t *testing.T) {
	before := dataset(t, filepath.Join(t.TempDir(), "a"), "yesterday", 10, parse("1 ada@x.example matched - Oslo x 5\n2 - rejected empty - - -\n3 b matched - Rome x 5"))
	after := dataset(t, filepath.Join(t.TempDir(), "b"), "today", 10, parse("- - suppressed listed - - -\n3 b matched - Oslo x 5"))
	m := mustCompare(t, before, after, Settings{Was: []string{"company_city"}})
	sum := sha256.Sum256([]byte("yesterday:ada@x.example"))
	want := "changed 3 b Oslo Rome -\nremoved - - - - " + hex.EncodeToString(sum[:]) + "\nremoved - - - - -\n"
	if got := m.lines("change", "id", "key", "company_city", "was_company_city", "key_hash"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for name, cell := range m.rows[1] {
		if cell != "-" && name != "change" && name != "since" && name != "key_hash" && name != "was_row_hash" {
			t.Errorf("%s of a suppressed person is %s", name, cell)
		}
	}
}

func TestSettings(t *testing.T) {
	before := dataset(t, filepath.Join(t.TempDir(), "a"), "a", 10, parse("1 a matched - Oslo x 5\n2 b matched - Rome x 5"))
	after := dataset(t, filepath.Join(t.TempDir(), "b"), "b", 10, parse("1 c matched - Oslo x 5\n2 b matched - Rome x 6"))
	for _, c := range []struct {
		s    Settings
		want string
	}{
		{Settings{}, "added 1 -\nremoved 1 -\n"},
		{Settings{By: "id"}, "changed 1 key\n"},
		{Settings{By: "ID"}, "changed 1 key\n"},
		{Settings{By: "Record ID", Was: []string{"record id"}}, "changed 1 key\n"},
		{Settings{By: "key"}, "added 1 -\nremoved 1 -\n"},
		{Settings{Compare: []string{"credits"}}, "added 1 -\nchanged 2 credits\nremoved 1 -\n"},
	} {
		if got := mustCompare(t, before, after, c.s).lines("change", "id", "changed"); got != c.want {
			t.Errorf("%+v: got\n%swant\n%s", c.s, got, c.want)
		}
	}
	for _, c := range []struct {
		s    Settings
		want string
	}{
		{Settings{By: "ids"}, `no column "ids"; did you mean "id"?`},
		{Settings{By: "Record-ID"}, `no column "Record-ID"; did you mean "Record ID"?`},
		{Settings{By: "credits"}, "rows are found by a column of text"},
		{Settings{Was: []string{"phone"}}, `no column "phone"`},
		{Settings{Compare: []string{"credit"}}, `no column "credit"`},
	} {
		if _, err := compare(t, filepath.Join(t.TempDir(), "x"), before, after, c.s); !errors.Is(err, ErrIncomparable) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.s, err, c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	rows := parse("1 a matched - Oslo x 5")
	after := dataset(t, filepath.Join(t.TempDir(), "b"), "b", 10, rows)
	for _, c := range []struct {
		change func(*sinks.Manifest)
		want   string
	}{
		{func(m *sinks.Manifest) { m.Operation = "enrichment" }, "one is of enrichment, the other of keyword_to_lead"},
		{func(m *sinks.Manifest) { m.RulesVersion-- }, "rules have version"},
		{func(m *sinks.Manifest) {
			m.Schema[0].Name = "number"
			m.Job = json.RawMessage(strings.Replace(string(m.Job), `{"id":`, `{"number":`, 1))
		}, "only the earlier one has number; only the new one has id"},
		{func(m *sinks.Manifest) { m.Parts[0].Rows++ }, "has 1 rows, not 2"},
		{func(m *sinks.Manifest) { m.Parts[0].Bytes++ }, "not as it was recorded"},
		{func(m *sinks.Manifest) { m.Parts[0].ModifiedAt, m.Parts[0].SHA256 = time.Time{}, "00" }, "has another checksum"},
	} {
		before := dataset(t, filepath.Join(t.TempDir(), "a"), "a", 10, rows, c.change)
		if _, err := compare(t, filepath.Join(t.TempDir(), "x"), before, after, Settings{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	shape, err := ShapeOf(after.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	shape.columns[0].Name = "Since"
	if err := shape.check(Settings{}); err == nil || !strings.Contains(err.Error(), `a column "Since", and the changes need that name`) {
		t.Error(err)
	}
}

// TestSeveralFiles: the same bytes, whatever the number of files is that the rows come from.
func TestSeveralFiles(t *testing.T) {
	defer func(n int64) { rowsPerFile = n }(rowsPerFile)
	rowsPerFile = 3
	var before, after []row
	for i := range 20 {
		r := row{fmt.Sprint(i), fmt.Sprint("k", i), "matched", "-", "Oslo", "x", "5"}
		before = append(before, r)
		if i%2 == 0 {
			r.phone = "Rome"
		}
		if i%5 > 0 {
			after = append([]row{r}, after...)
		}
	}
	var all [][]byte
	for _, size := range []int{1, 7, 100} {
		m := mustCompare(t, dataset(t, filepath.Join(t.TempDir(), "a"), "a", size, before), dataset(t, filepath.Join(t.TempDir(), "b"), "b", 8-size%8, after), Settings{Was: []string{"company_city", "id"}})
		if len(m.Files) != 4 || m.Added != 0 || m.Changed != 8 || m.Removed != 4 {
			t.Fatalf("%+v", m.Changes)
		}
		var content []byte
		for _, f := range m.Files {
			data, err := os.ReadFile(filepath.Join(m.dir, f.Name))
			if err != nil {
				t.Fatal(err)
			}
			content = append(content, data...)
		}
		all = append(all, content)
	}
	if string(all[0]) != string(all[1]) || string(all[0]) != string(all[2]) {
		t.Error("other bytes for the same rows in other parts")
	}
}

// TestOldAndChangesAreNew: whatever the datasets hold, the old rows with the changes are the
// new ones, and the check says so.
func TestOldAndChangesAreNew(t *testing.T) {
	pairs := 1000
	if testing.Short() {
		pairs = 100
	}
	rapidtest.Checks(t, pairs)
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		folder := func(name string) string { return filepath.Join(dir, fmt.Sprint(name, n)) }
		one := rapid.Custom(func(t *rapid.T) row {
			of := func(name string, values ...string) string { return rapid.SampledFrom(values).Draw(t, name) }
			r := row{of("id", "1", "2", "-"), of("key", "a", "b", "c", "d", "-"), "matched", "-", of("city", "Oslo", "Rome", "-"), of("words", "x", "x,y", ",", "-"), of("credits", "1", "2")}
			switch of("outcome", "matched", "matched", "failed", "suppressed") {
			case "failed":
				r = row{r.id, r.key, "failed", "unavailable", "-", "-", "-"}
			case "suppressed":
				r = row{"-", "-", "suppressed", "listed", "-", "-", "1"}
			}
			if r.key == "-" && r.outcome != "suppressed" {
				r = row{r.id, "-", "rejected", "empty", "-", "-", "-"}
			}
			return r
		})
		sets := [2]*Dataset{}
		rows := [2][]row{}
		for i, name := range []string{"old", "new"} {
			rows[i] = rapid.SliceOfN(one, 0, 12).Draw(t, name)
			sets[i] = dataset(t, folder(name), name, rapid.IntRange(3, 20).Draw(t, "rows of a part"), rows[i])
		}
		m, err := compare(t, folder("changes"), sets[0], sets[1], Settings{})
		if err != nil {
			t.Fatal(err)
		}
		if problems, err := Check(t.Context(), sets[0], *sets[1], reader(t, m.dir), m.Changes, dir); err != nil || len(problems) > 0 {
			t.Fatalf("the check finds %q, %v", problems, err)
		}
		old, fresh := hashesOf(t, folder("hashes"), sets[0]), hashesOf(t, folder("hashes"), sets[1])
		for _, c := range m.rows {
			if was := c["was_row_hash"]; was != "-" {
				if _, isThere := old[was]; !isThere {
					t.Fatalf("%v: no such row", c)
				}
				delete(old, was)
			}
			if hash := c["row_hash"]; hash != "-" {
				old[hash] = textOf(c)
			}
		}
		if fmt.Sprint(old) != fmt.Sprint(fresh) {
			t.Fatalf("old %v\nnew %v\nchanges %v\ngive %v", rows[0], rows[1], m.rows, old)
		}
		if got, want := m.ChangeCounts, countsOf(rows[0], rows[1]); got.Added != want.Added || got.Changed != want.Changed || got.Removed != want.Removed || got.WithoutKey != want.WithoutKey {
			t.Fatalf("old %v\nnew %v\nare %+v, want %+v", rows[0], rows[1], got, want)
		}
		for _, name := range []string{"old", "new", "changes", "hashes"} {
			os.RemoveAll(folder(name))
		}
	})
}

// textOf is what is compared of a row of changes.
func textOf(c map[string]string) string {
	return row{c["id"], c["key"], c["outcome"], c["reason"], c["company_city"], c["matched_keywords"], ""}.String()
}

// hashesOf are the rows of a dataset by their hashes.
func hashesOf(t interface{ Fatal(...any) }, dir string, d *Dataset) map[string]string {
	os.RemoveAll(dir)
	m, err := compare(t, dir, nil, d, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, c := range m.rows {
		all[c["row_hash"]] = textOf(c)
	}
	return all
}

// countsOf counts the differences of two datasets in the plain way: of each key, the rows whose
// content the other one has not, or not as often.
func countsOf(before, after []row) (n sinks.ChangeCounts) {
	left := map[string]map[string]int{} // by key and content: how many more the new dataset has
	for sign, rows := range map[int][]row{-1: before, 1: after} {
		for _, r := range rows {
			if r.outcome == "suppressed" {
				continue
			}
			key := "key " + r.key
			if r.key == "-" {
				key = "id " + r.id
			}
			if left[key] == nil {
				left[key] = map[string]int{}
			}
			r.credits = ""
			left[key][r.String()] += sign
		}
	}
	for key, contents := range left {
		var more, less int64
		for _, n := range contents {
			more, less = more+int64(max(n, 0)), less+int64(max(-n, 0))
		}
		if key == "id -" {
			n.WithoutKey += more + less
			continue
		}
		both := min(more, less)
		n.Added, n.Changed, n.Removed = n.Added+more-both, n.Changed+both, n.Removed+less-both
	}
	return n
}

// TestOrigins: who a value is from is no change of it, and stays with the value where a row fails.
func TestOrigins(t *testing.T) {
	text := func(name string) schema.Column { return schema.New(name, arrow.BinaryTypes.String, true) }
	s := NewShape(resolution.Enrichment, []schema.Column{text("lead_answered_by"), text("key"), text("email"), text("answered_by"), text("email_answered_by"), text("resolvers_skipped")}, "", false, map[string]string{"lead_answered_by": "lead_answered_by"}, "")
	var compared, answers []string
	places, _ := s.compared(Settings{}, true)
	for _, i := range places {
		compared = append(compared, s.columns[i].Name)
	}
	for i, c := range s.columns {
		if s.IsAnswer(i) {
			answers = append(answers, c.Name)
		}
	}
	if got, want := fmt.Sprint(compared, answers), "[email key lead_answered_by] [email email_answered_by]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
