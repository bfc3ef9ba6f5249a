package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/keys"

	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// five is a setup of five parts of ten rows in three files, the first two
// parts with rejects.
func five(t tb, dir string) setup {
	s := setup{dir: dir, rowsPerPart: 10, batchRows: 4}
	s.input(t, "1.csv", firstFile)
	s.input(t, "2.csv", strings.Replace(emails(8, 30), "\n16,", "\nmalformed\n16,", 1))
	s.input(t, "3.csv", emails(38, 12))
	return s
}

var firstFile = strings.Replace(emails(0, 8), "\n3,", "\nmalformed\n3,", 1)

// undisturbed is the content of five's dataset.
func undisturbed(t tb, s setup) map[string]string {
	s.out, s.state, s.resolver = "undisturbed", "undisturbed state", nil
	s.mustDo(t)
	files := content(t, s.outDir())
	if len(files) != 7 {
		t.Fatalf("%d files", len(files))
	}
	return files
}

// interrupt runs s until the given question is asked and stops it there.
func interrupt(t tb, s setup, question int64) *finish.Result {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.resolver = &hashing{before: func(n int64) error {
		if n == question {
			cancel()
		}
		return nil
	}}
	result, err := s.do(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted at question %d: %v", question, err)
	}
	if result.Manifest != nil {
		t.Errorf("an interrupted run has a manifest")
	}
	if names := listing(t, s.outDir()); names["_SUCCESS"] != (stamp{}) || names["_manifest.json"] != (stamp{}) {
		t.Errorf("an interrupted run left %q", slices.Sorted(maps.Keys(names)))
	}
	return result
}

// stop runs s with one worker and fails from the given question on: the parts
// before that row are made, and no other.
func stop(t tb, s setup, question int64) {
	failed := errors.New("stopped")
	s.workers = 1
	s.resolver = &hashing{before: func(n int64) error {
		if n >= question {
			return failed
		}
		return nil
	}}
	if _, err := s.do(context.Background()); !errors.Is(err, failed) {
		t.Fatalf("stopped at question %d: %v", question, err)
	}
	if n := len(parts(content(t, s.outDir()))); n != int(question-1)/s.rowsPerPart {
		t.Fatalf("stopped at question %d, %d parts are there", question, n)
	}
}

func TestInterruptedRunGoesOn(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 3} {
		for _, question := range []int64{1, 10, 11, 27, 50} {
			t.Run(fmt.Sprintf("question %d, %d workers", question, workers), func(t *testing.T) {
				s := five(t, t.TempDir())
				s.workers = workers
				want := undisturbed(t, s)
				result := interrupt(t, s, question)
				made := result.Parts.Made
				for name, data := range parts(content(t, s.outDir())) {
					if data != want[name] {
						t.Errorf("%s, made before the interruption, differs", name)
					}
				}
				result = s.mustDo(t)
				if result.Parts.Earlier != made || result.Parts.Made != 5-made {
					t.Errorf("first run made %d; second skipped %d and made %d", made, result.Parts.Earlier, result.Parts.Made)
				}
				if result.Fresh.Rows != int64(10*result.Parts.Made) {
					t.Errorf("%d fresh rows of %d parts", result.Fresh.Rows, result.Parts.Made)
				}
				requireSame(t, content(t, s.outDir()), want)
			})
		}
	}
}

// A run that makes several rows of a cell resumes where it was: its parts are cut by rows of the
// input.
func TestInterruptedRunOfSeveralValues(t *testing.T) {
	t.Parallel()
	for _, question := range []int64{1, 9, 22, 37} {
		s := setup{dir: t.TempDir(), rowsPerPart: 10, workers: 2, job: func(j *job.Job) { j.Multiple = keys.Each }}
		list := "id,email\n"
		for i := range 50 {
			list += fmt.Sprintf("%d,\"%s\"\n", i, strings.Repeat(fmt.Sprintf("p%d@mail.example, ", i), i%4))
		}
		s.input(t, "list.csv", list)
		whole := s
		whole.out, whole.state = "whole", "whole state"
		whole.mustDo(t)
		interrupt(t, s, question)
		result := s.mustDo(t)
		requireSame(t, content(t, s.outDir()), content(t, whole.outDir()))
		if got := result.Totals; got.SourceRows != 50 || got.Rows != 86 || got.Matched != 73 {
			t.Errorf("%d rows of %d, %d matched", got.Rows, got.SourceRows, got.Matched)
		}
	}
}

// A context that has ended before the run begins ends it at once.
func TestInterruptedAtOnce(t *testing.T) {
	s := five(t, t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.do(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	s.mustDo(t)
}

// journalOf is the path of a file of the one journal under the state folder, counted from the end.
func journalOf(t tb, s setup, last int) string {
	found, err := filepath.Glob(filepath.Join(s.stateDir(), "runs", "*", "journal", "*"))
	if err != nil || len(found) < last {
		t.Fatalf("journals %q, %v", found, err)
	}
	return found[len(found)-last]
}

// changeJournal gives the journal under the state folder other lines.
func changeJournal(t tb, s setup, change func(lines string) string) {
	p, err := journal.InFolder(disk.Dir(s.stateDir())).Progress(context.Background(), s.outDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := p.Read()
	if err != nil {
		t.Fatal(err)
	}
	changed := change(string(lines))
	if changed == string(lines) {
		t.Fatal("the journal stays as it is")
	}
	if err := p.Begin([]byte(changed)); err != nil {
		t.Fatal(err)
	}
}

// Parts of a killed run that recorded them without a checksum are not made again.
func TestPartsRecordedWithoutChecksum(t *testing.T) {
	s := five(t, t.TempDir())
	want := undisturbed(t, s)
	stop(t, s, 35)
	changeJournal(t, s, func(lines string) string {
		return regexp.MustCompile(`"sha256":"[0-9a-f]+",`).ReplaceAllString(lines, "")
	})
	if result := s.mustDo(t); result.Parts.Earlier != 3 || result.Parts.Made != 2 {
		t.Errorf("skipped %d and made %d parts, want 3 and 2", result.Parts.Earlier, result.Parts.Made)
	}
	requireSame(t, content(t, s.outDir()), want)
}

// However a journal's end was damaged, what is whole of it counts and the
// rest is made again.
func TestDamagedJournal(t *testing.T) {
	s := five(t, t.TempDir())
	want := undisturbed(t, s)
	stop(t, s, 35)
	path, before := journalOf(t, s, 1), journalOf(t, s, 2)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	half := content(t, s.outDir())
	saved, folder := t.TempDir(), filepath.Dir(filepath.Dir(path))
	if err := os.CopyFS(saved, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	write := func(path string, text []byte) func() error {
		return func() error { return os.WriteFile(path, text, 0o600) }
	}
	for name, c := range map[string]struct {
		damage  func() error
		damaged bool
	}{
		"no journal":              {func() error { return os.RemoveAll(filepath.Dir(path)) }, false},
		"an unfinished file":      {write(filepath.Join(filepath.Dir(path), ".0000000009.tmp"), whole[:20]), false},
		"garbage at the end":      {write(path, append(slices.Clone(whole), "garbage\n"...)), true},
		"a digit":                 {write(path, bytes.Replace(whole, []byte(`"rows":1`), []byte(`"rows":3`), 1)), true},
		"cut":                     {write(path, whole[:len(whole)/2]), true},
		"zeros":                   {write(path, make([]byte, len(whole))), true},
		"one before is cut":       {write(before, whole[:20]), true},
		"one before is missing":   {func() error { return os.Remove(before) }, true},
		"a record is there twice": {write(before, whole), true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.RemoveAll(s.outDir()); err != nil {
				t.Fatal(err)
			}
			restore(t, s.outDir(), half)
			if err := errors.Join(os.RemoveAll(folder), os.CopyFS(folder, os.DirFS(saved)), c.damage()); err != nil {
				t.Fatal(err)
			}
			if c.damaged {
				checkRepaired(t, s, folder)
			}
			s.mustDo(t)
			requireSame(t, content(t, s.outDir()), want)
		})
	}
}

// checkRepaired: a run stops at a damaged journal, and names a file of it. A repair keeps the file, if it is there.
func checkRepaired(t *testing.T, s setup, folder string) {
	t.Helper()
	if _, err := s.do(t.Context()); !errors.Is(err, appendlog.ErrDamaged) || !strings.Contains(err.Error(), folder) {
		t.Fatalf("got %v, want damage", err)
	}
	runs := journal.InFolder(disk.Dir(s.stateDir()))
	aside, err := runs.Repair(t.Context())
	if err != nil {
		t.Fatalf("repaired: %q, %v", aside, err)
	}
	for _, path := range aside {
		if _, err := os.Stat(path); err != nil || !strings.HasSuffix(path, ".damaged") {
			t.Errorf("set aside %s: %v", path, err)
		}
	}
	if found, err := runs.Inspect(t.Context()); err != nil || len(found) != 1 || len(found[0].Damages) > 0 || found[0].Header.Run == "" {
		t.Errorf("after the repair: %+v, %v", found, err)
	}
}

// restore writes files back; their times are other than before.
func restore(t tb, dir string, files map[string]string) {
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever happens to files of the dataset between two runs, finished or not,
// the second ends with the same bytes.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	flip := func(path string) error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		data[len(data)/2] ^= 1
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
		later := time.Now().Add(time.Hour)
		return os.Chtimes(path, later, later)
	}
	cut := func(path string) error { return os.Truncate(path, 100) }
	stray := func(path string) error { return os.WriteFile(path, []byte("stray"), 0o644) }
	for _, c := range []struct {
		name   string
		file   string
		damage func(path string) error
		made   int // parts that a finished dataset has made again
	}{
		{"nothing", "part-00000.parquet", func(string) error { return nil }, 0},
		{"part gone", "part-00001.parquet", os.Remove, 1},
		{"part cut short", "part-00000.parquet", cut, 1},
		{"part with a bit flipped", "part-00002.parquet", flip, 1},
		{"rejects gone", "_rejects/part-00000.parquet", os.Remove, 1},
		{"rejects cut short", "_rejects/part-00001.parquet", cut, 1},
		{"a part too many", "part-00005.parquet", stray, 0},
		{"a part's temporary file", ".part-00001.parquet.tmp", stray, 0},
		{"_SUCCESS gone", "_SUCCESS", os.Remove, 0},
		{"manifest gone", "_manifest.json", os.Remove, 5},
	} {
		for _, finished := range []bool{true, false} {
			if !finished && (c.made == 5 || c.file == "_SUCCESS" || c.name == "nothing") {
				continue
			}
			t.Run(fmt.Sprintf("%s, finished %v", c.name, finished), func(t *testing.T) {
				s := five(t, t.TempDir())
				want := undisturbed(t, s)
				if finished {
					s.mustDo(t)
				} else {
					stop(t, s, 35)
				}
				if err := c.damage(filepath.Join(s.outDir(), c.file)); err != nil {
					t.Fatal(err)
				}
				result, err := s.do(t.Context())
				if c.made == 5 {
					// Without the manifest there is nothing that says the folder is ours.
					if err == nil {
						t.Fatal("went on")
					}
					s.overwrite = true
					result, err = s.do(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				if finished {
					checkDataset(t, s.outDir(), result)
				}
				if finished && result.Parts.Made != c.made {
					t.Errorf("made %d parts again, want %d", result.Parts.Made, c.made)
				}
				requireSame(t, content(t, s.outDir()), want)
			})
		}
	}
}

// The same job on a finished dataset writes nothing.
func TestAgainIsNoWork(t *testing.T) {
	s := five(t, t.TempDir())
	first := s.mustDo(t)
	before := listing(t, s.dir)
	for range 2 {
		result := s.mustDo(t)
		if result.Parts.Made != 0 || result.Parts.Earlier != 5 || result.Manifest.JobID != first.Manifest.JobID {
			t.Errorf("again: %+v", result)
		}
	}
	s.workers, s.batchRows = 5, 7 // without influence on the dataset
	s.mustDo(t)
	if after := listing(t, s.dir); !maps.Equal(after, before) {
		t.Errorf("files before %v, after %v", before, after)
	}
}

// Settings that make no difference to the operation, and lists in another
// order, are the same job.
func TestSameJobInOtherWords(t *testing.T) {
	t.Parallel()
	s := five(t, t.TempDir())
	s.mustDo(t)
	for name, job := range map[string]func(*job.Job){
		"HEM types in another order": func(j *job.Job) { j.HEMTypes = []string{"sha256", "md5", "sha1"} },
		"default region":             func(j *job.Job) { j.DefaultRegion = "GB" },
		"network hosts":              func(j *job.Job) { j.NetworkHosts = []string{"network.example"} },
		"providers":                  func(j *job.Job) { j.IncludeProviders = true },
	} {
		again := s
		again.job = job
		if result := again.mustDo(t); result.Parts.Made != 0 {
			t.Errorf("%s: %d parts made again", name, result.Parts.Made)
		}
	}
}

// A run with --overwrite that was stopped continues with the same command; on
// its finished dataset it begins again, and so it does when an input was
// touched meanwhile.
func TestOverwriteGoesOnWithItsOwn(t *testing.T) {
	t.Parallel()
	s := five(t, t.TempDir())
	s.overwrite = true
	stop(t, s, 50)
	if result := s.mustDo(t); result.Parts.Earlier == 0 {
		t.Errorf("after a stop: %+v, want parts skipped", result)
	}
	if result := s.mustDo(t); result.Parts.Earlier != 0 || result.Parts.Made != 5 {
		t.Errorf("on the finished dataset: %+v, want all parts made", result)
	}
	stop(t, s, 50)
	now := time.Now()
	if err := os.Chtimes(filepath.Join(s.dir, "in", "1.csv"), now, now); err != nil {
		t.Fatal(err)
	}
	if result := s.mustDo(t); result.Parts.Earlier != 0 {
		t.Errorf("after a stop and a touched input: %+v, want all parts made", result)
	}
}

// A folder that holds another job's dataset, finished or not, is left as it
// is, and the error says what differs; --overwrite replaces it.
func TestOtherJobIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*setup)
		want   string // in the error, without the folder of the run
	}{
		{"rows per part", func(s *setup) { s.rowsPerPart = 21 }, "(rows_per_part was 20 and is 21)"},
		{"compression", func(s *setup) { s.job = func(j *job.Job) { j.Compression = sinks.Zstd } }, "(compression was snappy and is zstd)"},
		{"kept columns", func(s *setup) { s.job = func(j *job.Job) { j.Select = []string{"answers"} } }, "(list of input columns, by --select, was id,email and is not set)"},
		{"HEM types", func(s *setup) { s.job = func(j *job.Job) { j.HEMTypes = []string{"md5"} } }, "(list of HEM columns, by --hem-types and --hem-profiles, was hem_md5,hem_sha1,hem_sha256 and is hem_md5)"},
		{"identifier dropped", func(s *setup) { s.job = func(j *job.Job) { j.DropIdentifier = true } }, "--drop-identifier was false and is true"},
		{"answers", func(s *setup) { s.answers = "another directory" }, "(source of answers changed)"},
		{"a service", func(s *setup) { s.answers = "service https://leads.example" }, "(source of answers was not set and is service https://leads.example)"},
		{"operation", func(s *setup) {
			s.op, s.job = resolution.NetworkToHEM, func(j *job.Job) { j.IDColumn = "email" }
		}, "(operation was email_to_hem and is network_to_hem; "},
		{"fewer inputs", func(s *setup) { s.in = []string{filepath.Join(s.dir, "in", "1.csv")} }, "(inputs gone: in/2.csv, in/3.csv)"},
		{"other inputs", func(s *setup) {
			s.rowsPerPart = 21
			for _, name := range []string{"4.csv", "5.csv", "6.csv", "7.csv"} {
				s.input(t, "../more/"+name, emails(0, 2))
			}
			s.in = []string{filepath.Join(s.dir, "more", "*"), filepath.Join(s.dir, "in", "[12].csv")}
		}, "(rows_per_part was 20 and is 21; inputs added: more/4.csv, more/5.csv, more/6.csv and 1 more; inputs gone: in/3.csv)"},
	} {
		for _, finished := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, finished %v", c.name, finished), func(t *testing.T) {
				s := five(t, t.TempDir())
				s.rowsPerPart = 20
				if finished {
					s.mustDo(t)
				} else {
					stop(t, s, 35)
				}
				other := s
				c.change(&other)
				before := listing(t, s.dir)
				if _, err := other.do(t.Context()); !errors.Is(err, begin.ErrOtherJob) {
					t.Errorf("%v, want ErrOtherJob", err)
				} else if got := strings.ReplaceAll(err.Error(), s.dir+"/", ""); !strings.Contains(got, c.want) {
					t.Errorf("%s\nwant %s", got, c.want)
				}
				if after := listing(t, s.dir); !maps.Equal(after, before) {
					t.Errorf("files before %v, after %v", before, after)
				}
				if !finished && c.name != "operation" {
					return
				}
				other.overwrite = true
				other.mustDo(t)
				alone := other
				alone.out, alone.state = "alone", "alone state"
				alone.mustDo(t)
				requireSame(t, content(t, other.outDir()), content(t, alone.outDir()))
			})
		}
	}
}

// A finished dataset that has lost _SUCCESS or its report is the same job's: the
// same run puts the files back, and makes no part again.
func TestLostFilesAreMended(t *testing.T) {
	t.Parallel()
	for _, lost := range [][]string{{"_SUCCESS"}, {"_report.json"}, {"_report.html"}, {"_SUCCESS", "_report.json", "_report.html"}} {
		t.Run(strings.Join(lost, " "), func(t *testing.T) {
			s := five(t, t.TempDir())
			s.rowsPerPart = 20
			s.mustDo(t)
			want := content(t, s.outDir())
			parts := listing(t, s.outDir())["part-00000.parquet"]
			for _, name := range lost {
				if err := os.Remove(filepath.Join(s.outDir(), name)); err != nil {
					t.Fatal(err)
				}
			}
			other := s
			other.rowsPerPart = 21
			if _, err := other.do(t.Context()); !errors.Is(err, begin.ErrOtherJob) || !strings.Contains(err.Error(), "rows_per_part was 20 and is 21") {
				t.Errorf("%v, want ErrOtherJob and why", err)
			}
			if lost[0] == "_SUCCESS" {
				s.state = "another state folder" // the manifest says enough
			}
			if result := s.mustDo(t); result.Parts.Made != 0 || result.Parts.Earlier == 0 {
				t.Errorf("%d parts made, %d skipped", result.Parts.Made, result.Parts.Earlier)
			}
			after := listing(t, s.outDir())
			for _, name := range []string{"_SUCCESS", "_report.json", "_report.html"} {
				if _, found := after[name]; !found {
					t.Errorf("%s is not back", name)
				}
			}
			requireSame(t, content(t, s.outDir()), want)
			if after["part-00000.parquet"] != parts {
				t.Error("a part was made again")
			}
			if result := s.mustDo(t); result.Report != nil {
				t.Error("the mended dataset is not complete")
			}
		})
	}
}

// TestOlderRules: an unfinished dataset of a version with other rules is made anew, and its
// parts are all of one version.
func TestOlderRules(t *testing.T) {
	t.Parallel()
	s := five(t, t.TempDir())
	want := undisturbed(t, s)
	stop(t, s, 35)
	var before string
	changeJournal(t, s, func(lines string) string {
		before = strings.Replace(lines, fmt.Sprintf(`"rules_version":%d`, columns.RulesVersion), `"rules_version":4`, 1)
		before = strings.Replace(before, `"job_id":"`, `"job_id":"0`, 1)
		return before
	})
	first := filepath.Join(s.outDir(), "part-00000.parquet") // as if the older rules gave other bytes
	if err := os.WriteFile(first, []byte("of older rules"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.resolver = nil
	for _, s.overwrite = range []bool{true, false} { // as for the same job, what was paid counts on
		if err := s.open(t.Context(), func(r *job.Run) error {
			d, err := begin.Decide(t.Context(), r)
			if err == nil && !strings.Contains(before, `"run":"`+d.Header.Run+`"`) {
				t.Errorf("overwrite %v: another run", s.overwrite)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	s.mustDo(t)
	requireSame(t, content(t, s.outDir()), want)
}

// An unfinished dataset is known by its journal. Without it no one can say
// whose the parts are.
func TestOtherStateFolderIsRefused(t *testing.T) {
	s := five(t, t.TempDir())
	stop(t, s, 35)
	before := listing(t, s.outDir())
	lost := s
	lost.state = "other"
	if _, err := lost.do(t.Context()); !errors.Is(err, begin.ErrOtherJob) || !strings.Contains(err.Error(), "--overwrite") {
		t.Errorf("%v, want ErrOtherJob and what to do", err)
	}
	if after := listing(t, s.outDir()); !maps.Equal(after, before) {
		t.Errorf("files before %v, after %v", before, after)
	}
	s.mustDo(t)
}

// rewrite replaces an input, with the modification time it had before.
func rewrite(t tb, s setup, name, content string) {
	path := filepath.Join(s.dir, "in", name)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	s.input(t, name, content)
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
}

func TestChangedInput(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour)
	for _, c := range []struct {
		name     string
		change   func(t *testing.T, s setup)
		finished error // of the run after a finished one
		half     error // of the run after one that stopped in part 3
	}{
		{"touched", func(t *testing.T, s setup) { os.Chtimes(filepath.Join(s.dir, "in", "1.csv"), later, later) }, nil, nil},
		{"written again", func(t *testing.T, s setup) { s.input(t, "3.csv", emails(38, 12)) }, nil, nil},
		{"another value", func(t *testing.T, s setup) {
			s.input(t, "1.csv", strings.Replace(firstFile, "person7@", "persona@", 1))
		}, cut.ErrInputChanged, cut.ErrInputChanged},
		{"a column the job does not resolve", func(t *testing.T, s setup) {
			s.input(t, "1.csv", strings.Replace(firstFile, "\n7,", "\n8,", 1))
		}, cut.ErrInputChanged, cut.ErrInputChanged},
		{"a malformed line fewer", func(t *testing.T, s setup) { s.input(t, "1.csv", emails(0, 8)) }, cut.ErrInputChanged, cut.ErrInputChanged},
		{"a row more at the front", func(t *testing.T, s setup) {
			s.input(t, "1.csv", strings.Replace(firstFile, "\n0,", "\n0,new@mail.example\n0,", 1))
		}, cut.ErrInputChanged, cut.ErrInputChanged},
		// What was not made yet is made of what is there now.
		{"rows fewer at the end", func(t *testing.T, s setup) { s.input(t, "3.csv", emails(38, 7)) }, cut.ErrInputChanged, nil},
		{"a part fewer", func(t *testing.T, s setup) { s.input(t, "3.csv", emails(38, 2)) }, cut.ErrInputChanged, nil},
		{"no rows left", func(t *testing.T, s setup) {
			for _, name := range []string{"1.csv", "2.csv", "3.csv"} {
				s.input(t, name, "id,email\n")
			}
		}, cut.ErrInputChanged, cut.ErrInputChanged},
		// The last part was full, so no part changes.
		{"a row more at the end", func(t *testing.T, s setup) { s.input(t, "3.csv", emails(38, 13)) }, nil, nil},
		{"a part more", func(t *testing.T, s setup) { s.input(t, "3.csv", emails(38, 22)) }, nil, nil},
		{"columns swapped", func(t *testing.T, s setup) {
			for name, from := range map[string]int{"1.csv": 0, "2.csv": 8, "3.csv": 38} {
				s.input(t, name, strings.Replace(emails(from, 15), "id,email", "email,id", 1))
			}
		}, begin.ErrOtherJob, begin.ErrOtherJob},
		{"another value, time restored", func(t *testing.T, s setup) {
			rewrite(t, s, "1.csv", strings.Replace(firstFile, "person7@", "persona@", 1))
		}, nil /* nothing tells */, cut.ErrInputChanged},
	} {
		for _, finished := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, finished %v", c.name, finished), func(t *testing.T) {
				s := five(t, t.TempDir())
				want := c.half
				if finished {
					s.mustDo(t)
					want = c.finished
				} else {
					stop(t, s, 35)
				}
				before := listing(t, s.outDir())
				c.change(t, s)
				_, err := s.do(t.Context())
				if !errors.Is(err, want) {
					t.Fatalf("%v, want %v", err, want)
				}
				switch {
				case want != nil && finished:
					if after := listing(t, s.outDir()); !maps.Equal(after, before) {
						t.Errorf("files before %v, after %v", before, after)
					}
				case want == nil && !strings.Contains(c.name, "restored"):
					alone := s
					alone.out, alone.state = "alone", "alone state"
					alone.mustDo(t)
					requireSame(t, content(t, s.outDir()), content(t, alone.outDir()))
					if again := s.mustDo(t); again.Parts.Made != 0 {
						t.Errorf("again made %d parts", again.Parts.Made)
					}
				}
			})
		}
	}
}

// Rows behind a last part that was not full change that part.
func TestGrownLastPart(t *testing.T) {
	s := setup{dir: t.TempDir(), rowsPerPart: 10}
	s.input(t, "a.csv", emails(0, 15))
	s.mustDo(t)
	before := listing(t, s.outDir())
	s.input(t, "a.csv", emails(0, 16))
	if _, err := s.do(t.Context()); !errors.Is(err, cut.ErrInputChanged) {
		t.Errorf("%v, want ErrInputChanged", err)
	}
	if after := listing(t, s.outDir()); !maps.Equal(after, before) {
		t.Errorf("files before %v, after %v", before, after)
	}
}

// A file that changes under the run ends it; nothing is published.
func TestInputChangesWhileRead(t *testing.T) {
	s := five(t, t.TempDir())
	s.workers = 1
	s.resolver = &hashing{before: func(n int64) error {
		if n == 1 {
			s.input(t, "3.csv", emails(38, 7))
		}
		return nil
	}}
	if _, err := s.do(t.Context()); !errors.Is(err, sources.ErrChanged) {
		t.Errorf("%v, want ErrChanged", err)
	}
	requireUnpublished(t, s)
	s.mustDo(t)
}

func requireUnpublished(t tb, s setup) {
	for name := range listing(t, s.outDir()) {
		if !strings.HasPrefix(name, "_report.") && !strings.HasPrefix(strings.TrimPrefix(name, "_rejects/"), "part-") {
			t.Errorf("the folder holds %s", name)
		}
	}
}

// Of standard input nothing is known before it is read, so a finished job
// reads it again and compares.
func TestStandardInput(t *testing.T) {
	s := setup{dir: t.TempDir(), in: []string{"-"}, stdin: emails(0, 45), rowsPerPart: 10}
	first := s.mustDo(t)
	before := content(t, s.outDir())
	if again := s.mustDo(t); again.Parts.Made != 0 || again.Parts.Earlier != first.Parts.Made || again.Fresh.Rows != 0 {
		t.Errorf("again %+v", again)
	}
	requireSame(t, content(t, s.outDir()), before)

	other := s
	other.stdin = emails(1, 45)
	if _, err := other.do(t.Context()); !errors.Is(err, cut.ErrInputChanged) {
		t.Errorf("%v, want ErrInputChanged", err)
	}
	requireSame(t, content(t, s.outDir()), before)
	other.overwrite = true
	other.mustDo(t)

	half := s
	half.out = "half"
	interrupt(t, half, 32)
	half.mustDo(t)
	requireSame(t, content(t, half.outDir()), before)
}

// A resolver that fails ends the run with its error, whoever works on what.
func TestFailingResolver(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, workers := range []int{1, 2, 8} {
		for _, question := range []int64{1, 18, 50} {
			s := five(t, t.TempDir())
			s.workers = workers
			want := undisturbed(t, s)
			s.resolver = &hashing{before: func(n int64) error {
				if n >= question {
					return broken
				}
				return nil
			}}
			if _, err := s.do(t.Context()); !errors.Is(err, broken) || errors.Is(err, context.Canceled) {
				t.Errorf("%d workers, question %d: %v, want %v", workers, question, err, broken)
			}
			requireUnpublished(t, s)
			s.resolver = nil
			s.mustDo(t)
			requireSame(t, content(t, s.outDir()), want)
		}
	}
}

// A finished dataset of which a part has to be made again is unfinished until
// it is.
func TestUnfinishedWhileMadeAgain(t *testing.T) {
	broken := errors.New("broken")
	s := five(t, t.TempDir())
	s.mustDo(t)
	want := content(t, s.outDir())
	if err := os.Remove(filepath.Join(s.outDir(), "part-00002.parquet")); err != nil {
		t.Fatal(err)
	}
	s.resolver = &hashing{before: func(int64) error {
		for _, name := range []string{"_SUCCESS", "_manifest.json"} {
			if _, err := os.Stat(filepath.Join(s.outDir(), name)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is there while a part is made again: %v", name, err)
			}
		}
		return broken
	}}
	if _, err := s.do(t.Context()); !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
	requireUnpublished(t, s)
	s.resolver = nil
	if result := s.mustDo(t); result.Parts.Made != 1 || result.Parts.Earlier != 4 {
		t.Errorf("made %d, skipped %d", result.Parts.Made, result.Parts.Earlier)
	}
	requireSame(t, content(t, s.outDir()), want)
}

// TestResumedByAnotherSpelling: the input of an interrupted run is named in
// another way by the next.
func TestResumedByAnotherSpelling(t *testing.T) {
	s := setup{dir: t.TempDir(), rowsPerPart: 10}
	s.input(t, "list.csv", emails(0, 100))
	s.in = []string{filepath.Join(s.dir, "in", "list.csv")}
	ctx, interrupt := context.WithCancel(t.Context())
	s.resolver = &hashing{before: func(n int64) error {
		if n == 50 {
			interrupt()
		}
		return nil
	}}
	begun, err := s.do(ctx)
	if !errors.Is(err, context.Canceled) || begun.Parts.Made == 0 {
		t.Fatalf("%d parts made, %v", begun.Parts.Made, err)
	}
	s.resolver = nil
	again := s
	again.in = []string{s.dir + "/in/../in/./list.csv"}
	if result := again.mustDo(t); result.Parts.Earlier != begun.Parts.Made || result.Manifest.Inputs[0].URI != s.in[0] {
		t.Errorf("%d parts of the run before, want %d; input %s", result.Parts.Earlier, begun.Parts.Made, result.Manifest.Inputs[0].URI)
	}
	want := s
	want.out, want.state = "undisturbed", "other"
	want.mustDo(t)
	requireSame(t, content(t, again.outDir()), content(t, want.outDir()))
}

// TestUnfinishedDatasetInAPartition: the folder of an unfinished dataset is
// no other's partition, also for a run that overwrites.
func TestUnfinishedDatasetInAPartition(t *testing.T) {
	inner := setup{dir: t.TempDir(), rowsPerPart: 10, out: "lake/dt=2026-11-20"}
	inner.input(t, "list.csv", emails(0, 50))
	stop(t, inner, 35)
	for _, name := range []string{"_report.json", "_report.html"} { // a killed run leaves none
		if err := os.Remove(filepath.Join(inner.outDir(), name)); err != nil {
			t.Fatal(err)
		}
	}
	before := listing(t, inner.outDir())
	for _, overwrite := range []bool{false, true} {
		outer := inner
		outer.out, outer.overwrite = "lake", overwrite
		if _, err := outer.do(t.Context()); !errors.Is(err, sinks.ErrNested) || !strings.Contains(err.Error(), "dt=2026-11-20") {
			t.Errorf("overwrite %v: %v, want ErrNested", overwrite, err)
		}
	}
	if after := listing(t, inner.outDir()); !maps.Equal(after, before) {
		t.Errorf("files before %v, after %v", before, after)
	}
	beside := inner
	beside.out = "lake/dt=2026-11-21"
	if _, err := beside.do(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestGrownInputIsTold: rows that were appended while a run was interrupted are
// not read silently.
func TestGrownInputIsTold(t *testing.T) {
	s := five(t, t.TempDir())
	stop(t, s, 35)
	s.input(t, "3.csv", emails(38, 13))
	var said bytes.Buffer
	err := s.open(t.Context(), func(run *job.Run) error {
		run.Log = slog.New(slog.NewTextHandler(&said, nil))
		_, err := pipeline.Do(t.Context(), run)
		return err
	})
	if told := strings.Count(said.String(), "an input has changed since the dataset was begun"); err != nil || told != 1 || !strings.Contains(said.String(), "3.csv bytes=") {
		t.Errorf("%v, said %d times:\n%s", err, told, &said)
	}
}
