package steps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/parquet-go/parquet-go"
	"go.uber.org/goleak"

	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/parts"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// list is a list of emails with everything that moves parts: malformed lines,
// also many in a row, rows over several lines, empty lines, quotes that never end.
func list(r *rand.Rand, lines int) string {
	var b strings.Builder
	b.WriteString("id,email\néé,first@x.io\n")
	for i := range lines {
		switch r.IntN(12) {
		case 0:
			fmt.Fprintf(&b, "%d,a%d@x.io,more\n", i, i)
		case 1:
			b.WriteString(strings.Repeat("malformed\n", r.IntN(6)))
		case 2:
			fmt.Fprintf(&b, "%d,\"a\n\n%d\"\"@x.io\"\n", i, i)
		case 3:
			b.WriteString("\n\r\n")
		case 4:
			fmt.Fprintf(&b, "%d,\"open%d\n", i, i)
		case 5:
			fmt.Fprintf(&b, "%d,\"x\"%d\n\xff,1\n", i, i)
		default:
			fmt.Fprintf(&b, "é%d,p%d@x.io%s\n", i, r.IntN(50), strings.Repeat("; a@x.io", i%3))
		}
	}
	return b.String()
}

func packed(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func parquetOf(t testing.TB, rows int) string {
	t.Helper()
	type row struct {
		ID    string `parquet:"id"`
		Email string `parquet:"email"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.MaxRowsPerRowGroup(9))
	for i := range rows {
		if _, err := w.Write([]row{{fmt.Sprint(i), fmt.Sprintf("q%d@x.io", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// inputs writes the files of an input, of all kinds.
func inputs(t testing.TB, r *rand.Rand, lines int) (uris []string) {
	t.Helper()
	dir := t.TempDir()
	for i := range 1 + r.IntN(5) {
		name, text := fmt.Sprintf("%d.csv", i), list(r, r.IntN(lines))
		switch r.IntN(6) {
		case 0:
			name, text = name+".gz", packed(t, text)
		case 1:
			name, text = fmt.Sprintf("%d.parquet", i), parquetOf(t, r.IntN(lines))
		case 2:
			name, text = fmt.Sprintf("%d.jsonl", i), "{\"id\":1,\"email\":\"j@x.io\"}\n"+strings.Repeat("{\"email\":\"k@x.io, l@x.io\",\"id\":2}\n\nbad\n", r.IntN(lines))
		}
		uris = append(uris, filepath.Join(dir, name))
		if err := os.WriteFile(uris[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return uris
}

// openEnds opens an input and a dataset for as long as the test lasts.
func openEnds(t testing.TB, uris []string, from sources.Options, out string, o sinks.Options) (*sources.List, *sinks.Dataset) {
	t.Helper()
	input, err := sources.Open(t.Context(), uris, from)
	if err != nil {
		t.Fatal(err)
	}
	output, err := sinks.Open(t.Context(), out, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(output.Close(), input.Close()); err != nil {
			t.Error(err)
		}
	})
	return input, output
}

// openRun opens a run of an input, without a journal.
func openRun(t testing.TB, uris []string, out string, perPart int, o sinks.Options) *job.Run {
	t.Helper()
	input, output := openEnds(t, uris, sources.Options{BatchRows: 4, Objects: o.Objects}, out, o)
	j := job.Default(resolution.EmailToHEM)
	j.RowsPerPart = perPart
	return &job.Run{
		Job: j, Input: input, Output: output, Order: &order.Order{Steps: []*order.Step{{Directory: embedded.New(nil, embedded.Options{})}}}, StateDir: t.TempDir(), Workers: 2, Program: "leadetl test",
		Log: slog.New(slog.DiscardHandler), Progress: &stats.Progress{},
	}
}

// memory is a journal in memory.
type memory struct {
	mu    sync.Mutex
	lines []byte
	files map[string][]byte
}

func (m *memory) Read() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lines == nil {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(m.lines), nil
}
func (m *memory) Begin(lines []byte) error { m.lines = slices.Clone(lines); return nil }
func (m *memory) Append(lines []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = append(m.lines, lines...)
	return nil
}
func (m *memory) Put(name string, data []byte) error {
	m.files[name] = slices.Clone(data)
	return nil
}
func (m *memory) Get(name string) ([]byte, error) {
	if data, ok := m.files[name]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}
func (m *memory) Drop(string, string) error { return nil }
func (m *memory) Remove() error             { m.lines = nil; return nil }
func (m *memory) Close() error              { return nil }
func (m *memory) String() string            { return "memory" }

// dataset are the files of parts and rejects in a folder.
func dataset(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, pattern := range []string{"*.parquet", "_rejects/*.parquet"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files[strings.TrimPrefix(path, dir)] = string(data)
		}
	}
	return files
}

// TestWindows: whatever the input, the parts of windows are those of a run in one
// piece, byte for byte, in whatever order the windows are made.
func TestWindows(t *testing.T) {
	windows := 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 7))
		uris := inputs(t, r, 60)
		perPart, windowBytes := 2+r.IntN(20), []int64{1, 100, 1000}[r.IntN(3)]
		multiple := []keys.Multiple{"", keys.Each}[seed%2]
		where := [][]job.Condition{nil, {{Column: "id", Value: "é7"}}}[seed/2%2]
		windows = max(windows, compareWindows(t, r, uris, perPart, windowBytes, func(j *job.Job) { j.Multiple, j.Where = multiple, where }))
	}
	if windows < 8 {
		t.Errorf("at most %d windows", windows)
	}
}

// compareWindows makes a dataset in windows, in any order, and in one piece.
func compareWindows(t *testing.T, r *rand.Rand, uris []string, perPart int, windowBytes int64, change func(*job.Job)) (windows int) {
	t.Helper()
	one, many := t.TempDir(), t.TempDir()
	alone := openRun(t, uris, one, perPart, sinks.Options{})
	change(&alone.Job)
	whole, err := pipeline.Do(t.Context(), alone)
	if err != nil {
		t.Fatal(err)
	}
	run := openRun(t, uris, many, perPart, sinks.Options{})
	change(&run.Job)
	journals := &memory{files: map[string][]byte{}}
	run.Journal = func(string) (journal.Storage, error) { return journals, nil }
	begun, err := begin.Begin(t.Context(), run, nil)
	if err == nil {
		err = parts.NewLog(begun).BeginJournal()
	}
	if err != nil {
		t.Fatal(err)
	}
	var surveys []sources.Survey
	for file := range uris {
		s, err := run.Input.Survey(t.Context(), file, windowBytes)
		if err != nil {
			t.Fatal(err)
		}
		surveys = append(surveys, s)
	}
	d := divide(surveys, run.Input.Files(), int64(perPart), windowBytes)
	for _, i := range r.Perm(len(d.Windows)) {
		if _, err := makeWindow(t.Context(), begun, d.Windows[i], journals); err != nil {
			t.Fatalf("window %+v: %v", d.Windows[i], err)
		}
	}
	result, err := finishWindows(t.Context(), begun, d.Windows, journals, nil, func() ([]report.Machine, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	if got, want := dataset(t, many), dataset(t, one); !maps.Equal(got, want) {
		t.Fatalf("%d rows in a part: %d windows make %v, not %v", perPart, len(d.Windows),
			slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	compareManifests(t, result, whole)
	return len(d.Windows)
}

// TestWindowsBetweenMalformedLines: where many malformed lines are between two
// parts, a batch of a run has no row, and a batch of the survey ends elsewhere.
func TestWindowsBetweenMalformedLines(t *testing.T) {
	row := func(n int) string { return strings.Repeat("1,x@example.com\n", n) }
	bad := func(n int) string { return strings.Repeat("malformed\n", n) }
	path := filepath.Join(t.TempDir(), "a.csv")
	text := "id,email\n" + row(8) + bad(100) + row(1) + bad(9000) + row(20) + bad(20000) + row(3)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, perPart := range []int{3, 4} {
		if n := compareWindows(t, rand.New(rand.NewPCG(1, 1)), []string{path}, perPart, 1, func(*job.Job) {}); n < 4 {
			t.Errorf("%d windows", n)
		}
	}
}

// compareManifests: the records of the parts are the same, digests of the input
// included.
func compareManifests(t *testing.T, got, want *finish.Result) {
	t.Helper()
	if len(got.Manifest.Parts) != len(want.Manifest.Parts) {
		t.Fatalf("%d parts, not %d", len(got.Manifest.Parts), len(want.Manifest.Parts))
	}
	for i, p := range got.Manifest.Parts {
		q := want.Manifest.Parts[i]
		if p.InputDigest != q.InputDigest || p.SHA256 != q.SHA256 || fmt.Sprint(p.Totals, p.FirstReject == nil) != fmt.Sprint(q.Totals, q.FirstReject == nil) {
			t.Errorf("part %d: %+v\nnot %+v", i, p, q)
		}
	}
	if got.Manifest.JobID != want.Manifest.JobID || fmt.Sprint(got.Totals) != fmt.Sprint(want.Totals) {
		t.Errorf("%+v\nnot %+v", got.Totals, want.Totals)
	}
}

// TestWindowOfShorterInput: an input with fewer rows than were counted is an
// error, and no part is made of half its rows.
func TestWindowOfShorterInput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte("id,email\n1,a@x.io\n2,b@x.io\n3,c@x.io\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, w := range []job.Window{{Parts: 2}, {Parts: 3, Last: true}, {First: 4, Parts: 1, Last: true, From: sources.Start{Skip: 4}}} {
		run := openRun(t, []string{path}, t.TempDir(), 2, sinks.Options{})
		journals := &memory{files: map[string][]byte{}}
		run.Journal = func(string) (journal.Storage, error) { return journals, nil }
		begun, err := begin.Begin(t.Context(), run, nil)
		if err == nil {
			err = parts.NewLog(begun).BeginJournal()
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = makeWindow(context.Background(), begun, w, journals)
		if err == nil || !strings.Contains(err.Error(), "changed") {
			t.Errorf("%+v: %v", w, err)
		}
	}
}
