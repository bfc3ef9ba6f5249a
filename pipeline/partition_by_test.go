package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/job"

	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
)

// lands are values of the column that rows are parted by, and their folders.
var lands = []struct{ value, folder string }{
	{"US", "country=US"},
	{"", "country=__HIVE_DEFAULT_PARTITION__"},
	{"us", "country=us"},
	{"a/b=c %41", "country=a%2Fb%3Dc %2541"},
	{"🍕🇮🇹", "country=🍕🇮🇹"},
	{"..", "country=.."},
	{"\tשלום", "country=%09שלום"},
	{"__HIVE_DEFAULT_PARTITION__", "country=__HIVE_DEFAULT_PARTITION__"},
}

// landed are addresses of all lands, n in all. Each 13th row is rejected.
func landed(n int) string {
	var b strings.Builder
	b.WriteString("id,country,email\n")
	for i := range n {
		at := "@"
		if i%13 == 12 {
			at = " at "
		}
		fmt.Fprintf(&b, "%d,\"%s\",person%d%smail.example\n", i, lands[i%7*i%len(lands)].value, i, at)
	}
	return b.String()
}

func byCountry(j *job.Job) { j.PartitionBy = "Country" }

// partedRun is a setup of parts of 20 rows that are parted by their lands.
func partedRun(t tb, dir string, rows int) setup {
	s := setup{dir: dir, rowsPerPart: 20, batchRows: 7, job: byCountry}
	s.input(t, "in.csv", landed(rows))
	return s
}

// data are the files of rows that are parted.
func data(files map[string]string) map[string]string { return of(files, "country=") }

// Each row is in the folder of its value, in the order of the input, and is
// what it is in a dataset that is not parted, but for the column. It makes no
// difference how many workers there are, nor who answers.
func TestRowsPartedByColumn(t *testing.T) {
	dir := t.TempDir()
	plain := partedRun(t, dir, 90)
	plain.job, plain.out, plain.state = nil, "plain", "plain state"
	plain.mustDo(t)
	want := map[string][]string{}
	for _, row := range rows(t, parts(content(t, plain.outDir()))) {
		value := field(t, row, "country")
		i := slices.IndexFunc(lands, func(l struct{ value, folder string }) bool { return l.value == value })
		of := fields(t, row)
		delete(of, "country")
		want[lands[i].folder] = append(want[lands[i].folder], fmt.Sprint(of))
	}
	if len(want) < 6 {
		t.Fatalf("the list has %d values", len(want))
	}
	var first map[string]string
	for _, workers := range []int{1, 2, 5} {
		for name, resolver := range map[string]resolution.Resolver{"in columns": nil, "row by row": &hashing{}} {
			s := partedRun(t, dir, 90)
			s.workers, s.resolver = workers, resolver
			s.out, s.state = fmt.Sprint("out ", workers, name), fmt.Sprint("state ", workers, name)
			result := s.mustDo(t)
			if result.Manifest.PartitionBy != "country" || len(result.Manifest.Parts) != 5 {
				t.Errorf("parted by %q, %d parts", result.Manifest.PartitionBy, len(result.Manifest.Parts))
			}
			files := content(t, s.outDir())
			if first == nil {
				first = files
			}
			requireSame(t, files, first)
			got := map[string][]string{}
			for _, name := range slices.Sorted(maps.Keys(data(files))) {
				for _, row := range rowsOf(t, files[name]) {
					got[path.Dir(name)] = append(got[path.Dir(name)], fmt.Sprint(fields(t, row)))
				}
			}
			if !maps.EqualFunc(got, want, slices.Equal) {
				t.Errorf("%d workers, %s:\n got %v\nwant %v", workers, name, got, want)
			}
		}
	}
}

// Of somebody who is suppressed the path says nothing.
func TestSuppressedRowsAreInNoValuesFolder(t *testing.T) {
	s := partedRun(t, t.TempDir(), 40)
	s.suppress = listOf(t, "person0@mail.example", "person1@mail.example", "person5@mail.example", "person30@mail.example")
	s.mustDo(t)
	if n := suppressedByFolder(t, s); !maps.Equal(n, map[string]int{"country=__HIVE_DEFAULT_PARTITION__": 4}) {
		t.Errorf("suppressed rows: %v", n)
	}
}

// suppressedByFolder counts the suppressed rows of folders.
func suppressedByFolder(t tb, s setup) map[string]int {
	n := map[string]int{}
	for name, file := range data(content(t, s.outDir())) {
		for _, row := range rowsOf(t, file) {
			if field(t, row, "outcome") == "suppressed" {
				n[path.Dir(name)]++
			}
		}
	}
	return n
}

// A service's answers come to the same folders, and when one turns out to be
// about somebody who is suppressed, to none.
func TestAnswersPartedByColumn(t *testing.T) {
	a, _ := newAsking(t, 0, badservice.DefaultOptions())
	a.job, a.rowsPerPart = byCountry, 12
	var list strings.Builder
	list.WriteString("network_url,country\n")
	for i := range 40 {
		fmt.Fprintf(&list, "https://linkedin.com/in/canary-%d,C%d\n", i, i%3)
	}
	a.input(t, "in.csv", list.String())
	result, _, err := a.run(t, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkDataset(t, a.outDir(), result)
	listed := ""
	for name, file := range data(content(t, a.outDir())) {
		for _, row := range rowsOf(t, file) {
			of := fields(t, row)
			if want := fmt.Sprintf("country=C%v", (int(of["source_row"].(float64))-1)%3); path.Dir(name) != want {
				t.Errorf("row %v is in %s", of["source_row"], name)
			}
			if email, _ := of["email"].(string); email != "" {
				listed = email
			}
		}
	}
	if len(result.Manifest.Parts) != 4 || listed == "" {
		t.Fatalf("%d parts, %d matched", len(result.Manifest.Parts), result.Totals.Matched)
	}
	a.out, a.suppress = "suppressed", listOf(t, listed)
	if result, _, err = a.run(t, t.Context()); err != nil {
		t.Fatal(err)
	}
	checkDataset(t, a.outDir(), result)
	if n := suppressedByFolder(t, a.setup); !maps.Equal(n, map[string]int{"country=__HIVE_DEFAULT_PARTITION__": 1}) {
		t.Errorf("suppressed rows: %v", n)
	}
}

// A list without rows has a dataset without rows, which has a file.
func TestNoRowsToPart(t *testing.T) {
	s := partedRun(t, t.TempDir(), 0)
	s.mustDo(t)
	files := content(t, s.outDir())
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, []string{"country=__HIVE_DEFAULT_PARTITION__/part-00000.parquet"}) {
		t.Errorf("files %q", got)
	}
}

// Leads are in the folder of their search, whoever finds them.
func TestSearchesPartedByColumn(t *testing.T) {
	parted := func(t *testing.T) setup {
		s := searching(t, "keywords,country\ncrowd 3,US\nnobody,DE\ncrowd 2,\ncrowd 4,US\n")
		day := s.job
		s.job = func(j *job.Job) { day(j); byCountry(j) }
		return s
	}
	requireRows := func(t *testing.T, s setup) {
		t.Helper()
		got := map[string]int{}
		for name, file := range data(content(t, s.outDir())) {
			got[name] = len(rowsOf(t, file))
		}
		want := map[string]int{"country=US/part-00000.parquet": 7, "country=DE/part-00000.parquet": 1, "country=__HIVE_DEFAULT_PARTITION__/part-00000.parquet": 2}
		if !maps.Equal(got, want) {
			t.Errorf("rows %v, want %v", got, want)
		}
	}
	t.Run("engine", func(t *testing.T) {
		s := parted(t)
		s.searcher = &crowd{}
		s.mustDo(t)
		requireRows(t, s)
	})
	t.Run("service", func(t *testing.T) {
		in(t, func(t *testing.T) {
			s := parted(t)
			result, _, err := s.at(t.Context(), &desk{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			checkDataset(t, s.outDir(), result)
			requireRows(t, s)
		})
	})
}

// What cannot be a folder is the mistake of who wrote the job. Nothing is left.
func TestRefusedPartitions(t *testing.T) {
	var many strings.Builder
	many.WriteString("email,n\n")
	for i := range 2 * sinks.MaxPartitions {
		fmt.Fprintf(&many, "p%d@mail.example,%d\n", i, i)
	}
	for _, c := range []struct {
		name, list string
		job        func(*job.Job)
		want       string
	}{
		{"no such column", landed(1), func(j *job.Job) { j.PartitionBy = "city" }, `partition rows by "city": it is not among the kept input columns`},
		{"a column that is not kept", landed(1), func(j *job.Job) { j.PartitionBy, j.Select = "country", []string{"id", "answers"} }, "name it in --select"},
		{"the identifier", landed(1), func(j *job.Job) { j.PartitionBy = "email" }, "it identifies them"},
		{"another identifier", "email,Phone\na@b.example,1\n", func(j *job.Job) { j.PartitionBy = "phone" }, `its name says that it holds identifiers (phone)`},
		{"a name with a space", "email,my land\na@b.example,1\n", func(j *job.Job) { j.PartitionBy = "my land" }, "give it such a name with --rename"},
		{"too many values", many.String(), func(j *job.Job) { j.PartitionBy, j.RowsPerPart = "n", sinks.MaxPartitions+1 },
			"part-00000: its rows have more than 100 values of n"},
		{"a long value", "email,n\na@b.example,x\nb@b.example," + strings.Repeat("long ", 50) + "\n", func(j *job.Job) { j.PartitionBy = "n" },
			"part-00000: a value of n has 250 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := setup{dir: t.TempDir(), job: c.job}
			s.input(t, "in.csv", c.list)
			_, err := s.do(t.Context())
			var ofJob *job.Error
			if !errors.As(err, &ofJob) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			left, err := filepath.Glob(filepath.Join(s.outDir(), "*=*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left %q, %v", left, err)
			}
			planErr := s.open(t.Context(), func(run *job.Run) error { _, err := pipeline.MakePlan(t.Context(), run); return err })
			if !errors.As(planErr, &ofJob) || !strings.Contains(planErr.Error(), c.want) {
				t.Errorf("the plan has the error %v", planErr)
			}
		})
	}
	// As many as there may be in a part are no mistake.
	s := setup{dir: t.TempDir(), job: func(j *job.Job) { j.PartitionBy, j.RowsPerPart = "n", sinks.MaxPartitions }}
	s.input(t, "in.csv", many.String())
	var p *pipeline.Plan
	if err := s.open(t.Context(), func(run *job.Run) (err error) { p, err = pipeline.MakePlan(t.Context(), run); return err }); err != nil {
		t.Fatal(err)
	}
	s.mustDo(t)
	if files := content(t, s.outDir()); len(files) != 2*sinks.MaxPartitions || p.Files.Partitioned != len(files) || p.Files.Parts != 2 {
		t.Errorf("%d files, planned %+v", len(files), p.Files)
	}
}

// A run that was stopped continues with the parts that are whole in all their
// files; what is left of others goes, and the folders with it.
func TestStoppedRunOfPartedRows(t *testing.T) {
	dir := t.TempDir()
	whole := partedRun(t, dir, 100)
	whole.out, whole.state = "whole", "whole state"
	whole.mustDo(t)
	want := content(t, whole.outDir())

	s := partedRun(t, dir, 100)
	failed := errors.New("stopped")
	s.resolver = &hashing{before: func(n int64) error {
		if n > 60 {
			return failed
		}
		return nil
	}}
	if _, err := s.do(context.Background()); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	there := data(content(t, s.outDir()))
	if len(there) == 0 || len(there) >= len(want) {
		t.Fatalf("%d files of %d", len(there), len(want))
	}
	for name, file := range there {
		if file != want[name] {
			t.Errorf("%s differs", name)
		}
	}
	// What a kill leaves of a part, in folders of its own too.
	for _, name := range []string{"country=US/part-00099.parquet", "country=nowhere/part-00004.parquet", "country=gone/.part-00004.parquet.tmp", "country=empty/"} {
		at := filepath.Join(s.outDir(), name)
		if err := os.MkdirAll(filepath.Dir(at+"x"), 0o755); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "/") {
			if err := os.WriteFile(at, []byte("half"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A recorded part of which a file is damaged is made again.
	damaged := "country=US/part-00001.parquet"
	if err := os.WriteFile(filepath.Join(s.outDir(), damaged), []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.resolver = nil
	if result := s.mustDo(t); result.Parts.Earlier == 0 || result.Parts.Earlier+result.Parts.Made != 5 {
		t.Errorf("skipped %d, made %d", result.Parts.Earlier, result.Parts.Made)
	}
	requireSame(t, content(t, s.outDir()), want)
	folders, err := filepath.Glob(filepath.Join(s.outDir(), "country=*"))
	if err != nil || len(folders) != len(lands)-1 {
		t.Errorf("folders %q, %v", folders, err)
	}

	// Nothing is to be done any more, until a file is touched.
	before := listing(t, s.outDir())
	if result := s.mustDo(t); result.Parts.Made != 0 {
		t.Errorf("made %d parts of a whole dataset", result.Parts.Made)
	}
	if err := os.Remove(filepath.Join(s.outDir(), damaged)); err != nil {
		t.Fatal(err)
	}
	if result := s.mustDo(t); result.Parts.Made != 1 || result.Parts.Earlier != 4 {
		t.Errorf("made %d parts and skipped %d, of which one lacks a file", result.Parts.Made, result.Parts.Earlier)
	}
	after := listing(t, s.outDir())
	for name, stamp := range before {
		if strings.HasSuffix(name, "part-00000.parquet") && after[name] != stamp {
			t.Errorf("%s was written again", name)
		}
	}
	requireSame(t, content(t, s.outDir()), want)

	// Another column, or none, is another dataset.
	s.job = nil
	if _, err := s.do(context.Background()); !errors.Is(err, begin.ErrOtherJob) {
		t.Errorf("without the column: %v", err)
	}
	s.overwrite = true
	s.mustDo(t)
	if left, err := filepath.Glob(filepath.Join(s.outDir(), "country=*")); err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
}
