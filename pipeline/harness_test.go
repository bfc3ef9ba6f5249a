package pipeline_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/journal"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"
	"go.uber.org/goleak"

	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/suppression"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setup is a run: a job, its input and what it is wired to. The zero value
// hashes the emails of in/*.csv.
type setup struct {
	dir         string // of in, out and state
	job         func(*job.Job)
	op          resolution.Operation
	in          []string // URIs; nil is every file of in
	stdin       string
	resolver    resolution.Resolver
	searcher    resolution.Searcher
	remote      *purchase.Remote
	order       *order.Order
	suppress    *suppression.Set
	answers     string
	rowsPerPart int
	batchRows   int
	workers     int
	overwrite   bool
	id          string
	out, state  string // other folders than out and state
	changes     *job.Changes
	objects     *objects.Store
	nights      store.Store // nil remembers none
}

// tb is a testing.TB or a rapid.T.
type tb interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

func (s setup) outDir() string {
	if objects.Is(s.out) {
		return s.out
	}
	if s.out != "" {
		return filepath.Join(s.dir, s.out)
	}
	return filepath.Join(s.dir, "out")
}

func (s setup) stateDir() string {
	if s.state != "" {
		return filepath.Join(s.dir, s.state)
	}
	return filepath.Join(s.dir, "state")
}

// do opens everything as the command does, and runs.
func (s setup) do(ctx context.Context) (result *finish.Result, err error) {
	err = s.open(ctx, func(run *job.Run) error {
		result, err = pipeline.Do(ctx, run)
		return err
	})
	return result, err
}

// open opens everything as the command does, for use.
func (s setup) open(ctx context.Context, use func(*job.Run) error) (err error) {
	if s.in == nil {
		s.in = []string{filepath.Join(s.dir, "in", "*")}
	}
	input, err := sources.Open(ctx, s.in, sources.Options{BatchRows: s.batchRows, Stdin: strings.NewReader(s.stdin)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, input.Close()) }()
	output, err := sinks.Open(ctx, s.outDir(), sinks.Options{Objects: s.objects, State: disk.Dir(s.stateDir())})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, output.Close()) }()
	settings := job.Default(resolution.EmailToHEM)
	if s.op != "" {
		settings.Operation = s.op
	}
	if s.rowsPerPart > 0 {
		settings.RowsPerPart = s.rowsPerPart
	}
	if s.job != nil {
		s.job(&settings)
	}
	run := &job.Run{
		Job: settings, Input: input, Output: output, Order: s.asked(), StateDir: s.stateDir(), Suppression: s.suppress,
		Overwrite: s.overwrite, Changes: s.changes, ID: s.id, Workers: max(s.workers, 1), Program: "leadetl test",
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Progress: &stats.Progress{},
	}
	if s.nights != nil {
		if run.Nights, err = journal.In(s.nights).Nights(context.Background(), "job", "monday"); err != nil {
			return err
		}
	}
	return use(run)
}

// engine makes searches, too.
type engine struct {
	resolution.Resolver
	resolution.Searcher
}

// asked is the order of the run.
func (s setup) asked() *order.Order {
	switch {
	case s.order != nil:
		return s.order
	case s.remote != nil:
		return orderOf(s.remote)
	case s.resolver == nil:
		s.resolver = embedded.New(nil, embedded.Options{})
	}
	return &order.Order{Steps: []*order.Step{{Name: "embedded", Directory: engine{s.resolver, s.searcher}, Fingerprint: s.answers}}}
}

// orderOf is the order of one service, whose budget is that of the job.
func orderOf(remote *purchase.Remote) *order.Order {
	one := *remote
	one.Budget.MaxCredits, one.Budget.MaxCalls, one.Budget.Allowance = -1, -1, cliflag.Allowance{}
	return &order.Order{Budget: remote.Budget, Steps: []*order.Step{{Name: "service", Remote: &one}}}
}

// mustDo runs to the end and checks the whole dataset.
func (s setup) mustDo(t tb) *finish.Result {
	result, err := s.do(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	checkDataset(t, s.outDir(), result)
	if entries, err := os.ReadDir(filepath.Join(s.stateDir(), "runs")); err == nil && len(entries) > 0 {
		t.Errorf("a finished run left its journal")
	}
	return result
}

// input writes an input file.
func (s setup) input(t tb, name, content string) {
	path := filepath.Join(s.dir, "in", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// emails is a CSV file of n addresses, numbered from first.
func emails(first, n int) string {
	var b strings.Builder
	b.WriteString("id,email\n")
	for i := first; i < first+n; i++ {
		fmt.Fprintf(&b, "%d,person%d@mail.example\n", i, i)
	}
	return b.String()
}

// hashing answers email_to_hem as the embedded engine does, one question at a
// time, so that the run asks instead of working it out in columns.
type hashing struct {
	asked  atomic.Int64
	before func(question int64) error // nil does nothing
}

func (h *hashing) Resolve(ctx context.Context, r resolution.Request) (resolution.Answer, error) {
	if n := h.asked.Add(1); h.before != nil {
		if err := h.before(n); err != nil {
			return resolution.Answer{}, err
		}
	}
	return resolution.NewSingle(embedded.New(nil, embedded.Options{})).Resolve(ctx, r)
}

func (h *hashing) NewBatch(op resolution.Operation) resolution.Batch {
	return resolutiontest.Singly(h.Resolve).NewBatch(op)
}

// content is the bytes of every Parquet file under dir, by slashed name.
func content(t tb, dir string) map[string]string {
	all := map[string]string{}
	for name := range listing(t, dir) {
		if strings.HasSuffix(name, ".parquet") {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all[name] = string(data)
		}
	}
	return all
}

// stamp tells whether a file was written again: also with the same content.
type stamp struct {
	size     int64
	modified time.Time
	inode    any
}

// listing is every file under dir, by slashed name.
func listing(t tb, dir string) map[string]stamp {
	all := map[string]stamp{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		all[filepath.ToSlash(name)] = stamp{info.Size(), info.ModTime(), inode(info)}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return all
}

// requireSame fails unless two sets of files hold the same bytes.
func requireSame(t tb, got, want map[string]string) {
	if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
		t.Fatalf("files %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	for name, data := range want {
		if got[name] != data {
			t.Fatalf("%s differs", name)
		}
	}
}

// rows are the rows of Parquet files in order of their names, each a JSON
// object of what is not null, in column order.
func rows(t tb, files map[string]string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		all = append(all, rowsOf(t, files[name])...)
	}
	return all
}

func rowsOf(t tb, data string) []string {
	f, err := file.NewParquetReader(strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	reader, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{BatchSize: 4096}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	records, err := reader.GetRecordReader(context.Background(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer records.Release()
	var all []string
	for records.Next() {
		rec := records.Record()
		for i := range int(rec.NumRows()) {
			all = append(all, rowOf(t, rec, i))
		}
	}
	if err := records.Err(); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return all
}

func rowOf(t tb, rec arrow.Record, i int) string {
	var row bytes.Buffer
	encoder := json.NewEncoder(&row)
	encoder.SetEscapeHTML(false)
	separator := "{"
	for c, column := range rec.Columns() {
		if column.IsNull(i) {
			continue
		}
		fmt.Fprintf(&row, "%s%q: ", separator, rec.ColumnName(c))
		if err := encoder.Encode(column.GetOneForMarshal(i)); err != nil {
			t.Fatal(err)
		}
		row.Truncate(row.Len() - 1)
		separator = ", "
	}
	return row.String() + "}"
}

// parts and rejects tell the two kinds of file apart.
func parts(files map[string]string) map[string]string   { return of(files, "part-") }
func rejects(files map[string]string) map[string]string { return of(files, "_rejects/") }

func of(files map[string]string, prefix string) map[string]string {
	some := maps.Clone(files)
	maps.DeleteFunc(some, func(name, _ string) bool { return !strings.HasPrefix(name, prefix) })
	return some
}

func readManifest(t tb, dir string) *sinks.Manifest {
	data, err := os.ReadFile(filepath.Join(dir, "_manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	m := new(sinks.Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// checkDataset compares the manifest with the files, every total recounted
// from their rows.
func checkDataset(t tb, dir string, result *finish.Result) {
	m := readManifest(t, dir)
	want := []string{"_SUCCESS", "_manifest.json", "_report.html", "_report.json"}
	files := content(t, dir)
	wanted := slices.DeleteFunc(slices.Clone(m.Schema), func(c sinks.Column) bool { return !strings.HasSuffix(c.Name, "_answered_by") })
	var total sinks.Totals
	for number, p := range m.Parts {
		if name := fmt.Sprintf("part-%05d.parquet", number); p.Name != name {
			t.Errorf("part %d is called %s", number, p.Name)
		}
		counted := sinks.Totals{}
		inputs := map[string]bool{}
		for _, f := range p.Data() {
			want = append(want, f.Name)
			for _, row := range checkFile(t, f, files) {
				counted.Rows++
				countRow(t, &counted, row)
				values := fields(t, row)
				lacks := func(c sinks.Column) bool { return values[c.Name] == nil }
				if len(wanted) > 0 && !slices.ContainsFunc(wanted, lacks) {
					counted.Complete++
				}
				inputs[inputRow(t, row)] = true
			}
		}
		if strings.HasPrefix(m.Operation, "keyword_") {
			counted.Searches = int64(len(inputs))
		}
		if p.Totals.SourceRows > 0 {
			counted.NotSelected = p.Totals.NotSelected // they are not in the files
			counted.SourceRows = int64(len(inputs)) + counted.NotSelected
		}
		if p.Asked != nil {
			want = append(want, p.Asked.Name)
			checkFile(t, *p.Asked, files)
			counted.Resolvers = p.Totals.Resolvers // TestAsked counts them
		}
		if p.Rejects != nil {
			want = append(want, p.Rejects.Name)
			for _, row := range checkFile(t, *p.Rejects, files) {
				counted.Malformed++
				counted.CountReason("malformed", field(t, row, "reason"), 1)
			}
		}
		if fmt.Sprint(counted) != fmt.Sprint(p.Totals) {
			t.Errorf("%s: totals %+v, its files have %+v", p.Name, p.Totals, counted)
		}
		total.Add(counted)
	}
	if fmt.Sprint(total) != fmt.Sprint(m.Totals) || fmt.Sprint(total) != fmt.Sprint(result.Totals) {
		t.Errorf("the files have %+v, the manifest %+v, the result %+v", total, m.Totals, result.Totals)
	}
	if result.Parts.Made+result.Parts.Earlier != len(m.Parts) {
		t.Errorf("%d parts made and %d skipped of %d", result.Parts.Made, result.Parts.Earlier, len(m.Parts))
	}
	if m.Changes != nil {
		for _, f := range m.Changes.Files {
			want = append(want, f.Name)
		}
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(listing(t, dir))); !slices.Equal(got, want) {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
}

// checkFile compares a file with what the manifest says of it, and returns
// its rows.
func checkFile(t tb, f sinks.File, files map[string]string) []string {
	data := files[f.Name]
	sum := sha256.Sum256([]byte(data))
	all := rowsOf(t, data)
	if f.Bytes != int64(len(data)) || f.SHA256 != hex.EncodeToString(sum[:]) || f.Rows != int64(len(all)) {
		t.Errorf("%s: %d bytes, %d rows, checksum %x; the manifest says %+v", f.Name, len(data), len(all), sum, f)
	}
	return all
}

func countRow(t tb, totals *sinks.Totals, row string) {
	outcome := field(t, row, "outcome")
	switch outcome {
	case "matched":
		totals.Matched++
		return
	case "no_match":
		totals.NoMatch++
	case "rejected":
		totals.Rejected++
	case "suppressed":
		totals.Suppressed++
	case "failed":
		totals.Failed++
	default:
		t.Errorf("outcome %q", outcome)
	}
	totals.CountReason(outcome, field(t, row, "reason"), 1)
}

// inputRow is which row of the input a row came of.
func inputRow(t tb, row string) string {
	var columns struct {
		Source string `json:"source"`
		Row    int64  `json:"source_row"`
	}
	if err := json.Unmarshal([]byte(row), &columns); err != nil {
		t.Fatalf("%s: %v", row, err)
	}
	return fmt.Sprint(columns.Source, ":", columns.Row)
}

// field is a text column of a row.
func field(t tb, row, name string) string {
	text, _ := fields(t, row)[name].(string)
	return text
}

// fields are the columns of a row that are not null.
func fields(t tb, row string) (columns map[string]any) {
	if err := json.Unmarshal([]byte(row), &columns); err != nil {
		t.Fatalf("%s: %v", row, err)
	}
	return columns
}
