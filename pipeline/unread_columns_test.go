package pipeline_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/keys"
	answering "github.com/leadetl/leadetl/pipeline/rows"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/sources"
)

// TestUnreadColumns: a column has the same values whichever others are written, and so
// whatever of people is not read.
func TestUnreadColumns(t *testing.T) {
	dir := t.TempDir()
	engine := embedded.New(someDirectory(t, dir), embedded.Options{})
	for _, op := range []resolution.Operation{resolution.NetworkToHEM, resolution.NetworkToPhone, resolution.Enrichment, resolution.Deanonymization} {
		list := filepath.Join(dir, string(op.Identifier())+".csv")
		all := layoutOf(t, op, nil)
		want := answered(t, engine, op, list, all)
		r := rand.New(rand.NewPCG(3, 4))
		for i := range 2 * len(all.Own()) {
			chosen := []string{all.Own()[i/2].Name} // alone, and among some
			for _, c := range all.Own() {
				if i%2 == 1 && c.Name != chosen[0] && r.IntN(4) == 0 {
					chosen = append(chosen, c.Name)
				}
			}
			for name, cells := range answered(t, engine, op, list, layoutOf(t, op, chosen)) {
				if !slices.Equal(cells, want[name]) {
					t.Fatalf("%s: %s has other values if the columns are %v", op, name, chosen)
				}
			}
		}
	}
}

func layoutOf(t *testing.T, op resolution.Operation, chosen []string) *columns.Layout {
	t.Helper()
	layout, err := columns.NewLayout(columns.Settings{Operation: op, Select: chosen})
	if err != nil {
		t.Fatal(err)
	}
	return layout
}

// answered are the columns of a list that the engine answers, by name.
func answered(t *testing.T, engine resolution.Resolver, op resolution.Operation, path string, layout *columns.Layout) map[string][]string {
	t.Helper()
	list, err := sources.Open(t.Context(), []string{path}, sources.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	reader, err := list.Reader([]string{string(op.Identifier())})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cells := map[string][]string{}
	maker, builder := keys.NewMaker(op, keys.Reading{}, 0, 0, -1, nil), layout.NewBuilder()
	answers := answering.NewEngine(engine, op, layout, semaphore.NewWeighted(1))
	for {
		in, err := reader.Next(t.Context(), 1000)
		if errors.Is(err, io.EOF) {
			return cells
		}
		if err != nil {
			t.Fatal(err)
		}
		var b columns.Batch
		maker.Fill(&b, in)
		if err := answers.Answer(t.Context(), &b, func(b *columns.Batch) error {
			record := builder.Record(b)
			for i, column := range record.Columns() {
				for row := range column.Len() {
					cells[record.ColumnName(i)] = append(cells[record.ColumnName(i)], column.ValueStr(row))
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		in.Release()
	}
}

// TestSuppressedByUnreadColumns: whom a suppression list leaves out does not depend on the columns
// that are written.
func TestSuppressedByUnreadColumns(t *testing.T) {
	dir := t.TempDir()
	engine := embedded.New(someDirectory(t, dir), embedded.Options{})
	for _, op := range []resolution.Operation{resolution.NetworkToHEM, resolution.NetworkToPhone, resolution.Enrichment, resolution.Deanonymization} {
		for _, listed := range []string{"+442079460000", "+12025550100", "q7@mail.example", "p9@mail.example", strings.Repeat("cd", 32), "n.example/in/5"} {
			suppressed := func(chosen ...string) int64 {
				s := setup{dir: dir, op: op, in: []string{filepath.Join(dir, string(op.Identifier())+".csv")}, resolver: engine, suppress: listOf(t, listed), overwrite: true}
				s.job = func(j *job.Job) { j.Select = chosen }
				result, err := s.do(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return result.Totals.Suppressed
			}
			want := suppressed()
			if got := suppressed("credits"); got != want {
				t.Errorf("%s: %d rows are suppressed by %.8s… where only credits is written, want %d", op, got, listed, want)
			}
		}
	}
}
