package steps

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/pipeline/exchange"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
)

// Spread counts what a window was spread into.
type Spread struct {
	Parts int   `json:"parts"`
	Rows  int64 `json:"rows"`
	Asked int64 `json:"asked"` // rows that a service can be asked about
	Keys  int64 `json:"keys"`  // distinct keys of these rows, part by part
}

func (s *Spread) add(more Spread) {
	s.Parts, s.Rows, s.Asked, s.Keys = s.Parts+more.Parts, s.Rows+more.Rows, s.Asked+more.Asked, s.Keys+more.Keys
}

// scope is that of the run's questions.
func (r *Run) scope() answers.Scope { return r.run.Remote.Scope(r.run.Job.Operation) }

// needService refuses a paid step of a run without a service, and of a search.
func (r *Run) needService() error {
	if r.run.Remote == nil || r.run.Job.Operation.IsKeyword() {
		return &job.Error{Err: errors.New("the run does not ask a service about rows, so it has no such step")}
	}
	return nil
}

// Spread reads the rows of a window. For each part it writes the rows, and its
// distinct keys. What suppression lists hold is no key, so no call is made about
// it.
func (r *Run) Spread(ctx context.Context, window int) (done Spread, err error) {
	if r.Finished() {
		return done, nil
	}
	if err := r.needService(); err != nil {
		return done, err
	}
	w, err := r.window(ctx, window)
	if err != nil {
		return done, err
	}
	left := 0
	for part := w.First; part < w.First+w.Parts; part++ {
		var s Spread
		switch err := r.getJSON(ctx, spreadName(part), &s); {
		case errors.Is(err, fs.ErrNotExist):
			left++
		case err != nil:
			return done, err
		}
		done.add(s)
	}
	if left == 0 {
		return done, nil
	}
	done = Spread{}
	err = r.begun.Spread(ctx, w, r.partsIn(ctx, w), func(ctx context.Context, part int) (cut.Sink, error) {
		return r.newSpreadPart(ctx, part, &done)
	})
	return done, err
}

// window returns a window of the division.
func (r *Run) window(ctx context.Context, window int) (w pipeline.Window, err error) {
	d, err := r.Division(ctx)
	if err != nil {
		return w, err
	}
	if window < 0 || window >= len(d.Windows) {
		return w, fmt.Errorf("window %d of %d does not exist", window, len(d.Windows))
	}
	return d.Windows[window], nil
}

// spreadPart takes the rows of a part.
type spreadPart struct {
	ctx       context.Context
	run       *Run
	number    int
	questions *pipeline.Questions
	hash      func(key []byte) answers.Hash
	keys      *exchange.Sorter
	rows      *exchange.RowsWriter
	file      *spool
	counted   Spread
	done      *Spread
}

func (r *Run) newSpreadPart(ctx context.Context, number int, done *Spread) (*spreadPart, error) {
	file, err := newSpool(r.run.StateDir)
	if err != nil {
		return nil, err
	}
	rows, err := exchange.NewRowsWriter(file)
	if err != nil {
		return nil, errors.Join(err, file.close())
	}
	return &spreadPart{
		ctx: ctx, run: r, number: number, questions: r.begun.Questions(), hash: r.scope().Hasher(),
		keys: exchange.NewSorter(r.run.StateDir, exchange.DefaultSortBytes), rows: rows, file: file, counted: Spread{Parts: 1}, done: done,
	}, nil
}

// Take takes a batch.
func (p *spreadPart) Take(_ context.Context, b *sources.Batch) error {
	defer b.Release()
	if err := p.rows.Write(b); err != nil {
		return err
	}
	distinct, rows := p.questions.Of(b)
	p.counted.Rows += int64(b.Len())
	p.counted.Asked += int64(rows)
	for _, asked := range distinct {
		key, _ := resolution.CutAddress(asked)
		if err := p.keys.Add(p.hash([]byte(key)), []byte(asked)); err != nil {
			return fmt.Errorf("sort the keys of part-%05d: %w", p.number, err)
		}
	}
	return nil
}

// End writes the objects, and the record last.
func (p *spreadPart) End() (err error) {
	defer func() { err = errors.Join(err, p.close()) }()
	if err := p.rows.Close(); err != nil {
		return err
	}
	if err := p.file.create(p.ctx, p.run, rowsName(p.number)); err != nil {
		return err
	}
	if err := p.createKeys(); err != nil {
		return err
	}
	p.done.add(p.counted)
	return p.run.createJSON(p.ctx, spreadName(p.number), p.counted)
}

func (p *spreadPart) createKeys() (err error) {
	file, err := newSpool(p.run.run.StateDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.close()) }()
	w := bufio.NewWriterSize(file, 1<<20)
	err = exchange.WriteKeys(w, func(yield func(exchange.Key, error) bool) {
		for k, err := range p.keys.Sorted() {
			p.counted.Keys++
			if !yield(k, err) {
				return
			}
		}
	})
	if err := errors.Join(err, w.Flush()); err != nil {
		return err
	}
	return file.create(p.ctx, p.run, keysName(p.number))
}

// Abandon frees everything.
func (p *spreadPart) Abandon() { _ = p.close() }

func (p *spreadPart) close() error { return errors.Join(p.keys.Close(), p.file.close()) }
