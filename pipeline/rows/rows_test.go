package rows

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/sources"
)

// listed is the Input of a list. It ends with an error after some batches, if that is set.
type listed struct {
	reader  *sources.Reader
	batches int // before the error
	err     error
	read    int
	done    atomic.Int64
}

func (l *listed) Next(ctx context.Context) (*sources.Batch, error) {
	if l.err != nil && l.read == l.batches {
		return nil, l.err
	}
	b, err := l.reader.Next(ctx, 3)
	if err == nil {
		l.read++
	}
	return b, err
}

func (l *listed) Done(b *sources.Batch) {
	b.Release()
	l.done.Add(1)
}

// TestSources: a source gives all rows in their order and frees each batch; its input's
// error ends it; and it may be closed after any number of rows.
func TestSources(t *testing.T) {
	const rows, batches = 30, 10
	broken := errors.New("broken")
	for name, answerer := range map[string]func(t *testing.T, in Input, maker *keys.Maker, layout *columns.Layout) (Source, outcome.Outcome){
		"engine": func(_ *testing.T, in Input, maker *keys.Maker, layout *columns.Layout) (Source, outcome.Outcome) {
			var lookers []Looker
			for range 3 {
				engine := NewEngine(embedded.New(nil, embedded.Options{}), resolution.EmailToHEM, layout, semaphore.NewWeighted(1))
				lookers = append(lookers, &EngineLooker{Keys: keys.NewMaker(resolution.EmailToHEM, keys.Reading{}, 1, 0, -1, nil), Layout: layout, Engine: engine, Repeats: &distinct.Repeats{}})
			}
			return FromLookers(in, lookers), outcome.Matched
		},
		"service": func(t *testing.T, in Input, maker *keys.Maker, layout *columns.Layout) (Source, outcome.Outcome) {
			store, err := answers.Open(context.Background(), answers.InFolder(t.TempDir()), answers.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			remote := &purchase.Remote{Name: "https://service.example", Answers: store, Offline: true, Counters: &stats.CallCounters{}}
			one := &order.Order{Budget: purchase.NoBudget, Steps: []*order.Step{{Name: "service", Remote: remote}}}
			chain, _, err := one.Open(t.Context(), order.Options{Operation: resolution.EmailToHEM, Run: "run", Layout: layout, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(chain.Close)
			waiting := 0
			t.Cleanup(func() {
				if waiting != 1 {
					t.Errorf("onlyWaiting was called %d times", waiting)
				}
			})
			return FromOrder(in, maker, NewOrdered(chain, nil), func() { waiting++ }), outcome.Skipped
		},
	} {
		for _, c := range []struct {
			name  string
			input error // after half of the batches
			pulls int   // then it is closed
			want  error // of the last pull
			freed int64
		}{
			{"all", nil, batches + 1, io.EOF, batches},
			{"closed early", nil, 2, nil, -1},
			{"an error of the input", broken, batches + 1, broken, -1},
		} {
			t.Run(name+": "+c.name, func(t *testing.T) {
				in := &listed{reader: openList(t, rows), batches: batches / 2, err: c.input}
				layout, err := columns.NewLayout(columns.Settings{Operation: resolution.EmailToHEM, Kept: []string{"email"}, Identifier: "email", HEMTypes: columns.HEMTypes, DefaultRegion: "US"})
				if err != nil {
					t.Fatal(err)
				}
				source, want := answerer(t, in, keys.NewMaker(resolution.EmailToHEM, keys.Reading{}, 1, 0, -1, nil), layout)
				var got []int64
				for range c.pulls {
					var b *columns.Batch
					if b, err = source.Next(t.Context()); err != nil {
						break
					}
					got = append(got, b.Rows...)
					if slices.ContainsFunc(b.Outcomes, func(o outcome.Outcome) bool { return o != want }) {
						t.Errorf("outcomes %v, want %v", b.Outcomes, want)
					}
				}
				source.Close()
				if !errors.Is(err, c.want) {
					t.Errorf("ended with %v, want %v", err, c.want)
				}
				if c.freed >= 0 && in.done.Load() != c.freed {
					t.Errorf("%d of %d batches are freed", in.done.Load(), c.freed)
				}
				for i, row := range got {
					if row != int64(i+1) {
						t.Fatalf("rows %v are not in their order", got)
					}
				}
				if c.want == io.EOF && len(got) != rows || c.want == nil && len(got) != 3*c.pulls {
					t.Errorf("%d rows", len(got))
				}
			})
		}
	}
}

func openList(t *testing.T, rows int) *sources.Reader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(path, []byte("email\n"+strings.Repeat("ada@example.com\n", rows)), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := sources.Open(t.Context(), []string{path}, sources.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = list.Close() })
	reader, err := list.Reader([]string{"email"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	return reader
}
