package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leadetl/leadetl/internal/inorder"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/exchange"
	"github.com/leadetl/leadetl/sources"
)

// Build makes a part from its rows and slices, with the code of an offline run.
func (r *Run) Build(ctx context.Context, part int) (done Done, err error) {
	if r.Finished() {
		return done, nil
	}
	within := pipeline.Window{First: part, Parts: 1}
	storage := r.partsIn(ctx, within)
	w, err := r.wave(ctx, part/PartsPerWave)
	if err != nil {
		return done, err
	}
	index := slices.Index(w.Parts, part)
	if recorded, err := r.begun.Recorded(within, storage); err != nil || index < 0 && !recorded[part] {
		return done, errors.Join(err, fmt.Errorf("part-%05d of wave %d does not exist", part, part/PartsPerWave))
	} else if recorded[part] {
		return r.built(r.begun.Build(ctx, part, storage, noRows, nil))
	}
	stored, err := exchange.NewStored(fmt.Sprintf("part-%05d", part), r.run.StateDir, r.scope())
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, stored.Close()) }()
	if err := r.load(ctx, w, part/PartsPerWave, index, stored); err != nil {
		return done, err
	}
	info, err := r.stat(ctx, rowsName(part))
	if err != nil {
		return done, err
	}
	o, err := r.folder.Store().Open(ctx, info)
	if err != nil {
		return done, err
	}
	stream := o.Stream()
	defer func() { err = errors.Join(err, stream.Close()) }()
	rows, err := exchange.NewRowsReader(info.Location.String(), stream, info.Size, r.begun.Columns())
	if err != nil {
		return done, err
	}
	defer rows.Close()
	return r.built(r.begun.Build(ctx, part, storage, rows.Next, stored))
}

// noRows is for a part that is recorded, whose rows are not read.
func noRows() (*sources.Batch, error) {
	return nil, fmt.Errorf("%w: a recorded part was damaged in the meantime", ErrNotReady)
}

func (r *Run) built(result *pipeline.Result, err error) (done Done, _ error) {
	if result != nil {
		done = Done{Parts: result.Made + result.Skipped, Made: result.Made, Totals: result.Totals}
	}
	return done, err
}

// load loads the slices of a part, some lots at a time, in order.
func (r *Run) load(ctx context.Context, w wave, number, index int, into *exchange.Stored) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type slice struct {
		records []exchange.Record
		err     error
	}
	queue := inorder.NewOf(slicesAtOnce, func(s slice) {
		for _, record := range s.records {
			if s.err == nil {
				s.err = into.Add(record)
			}
		}
		if s.err != nil {
			cancel(s.err) // the first counts
		}
	})
	for lot := range w.Lots {
		if ctx.Err() != nil {
			break
		}
		queue.Do(func() (s slice) {
			s.records, s.err = r.slice(ctx, number, lot, index)
			return s
		})
	}
	queue.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return into.Filled()
}

// slicesAtOnce bounds the slices in memory, each of up to lotKeys answers.
const slicesAtOnce = 4

// slice reads the slice of a part in a lot.
func (r *Run) slice(ctx context.Context, number, lot, index int) (records []exchange.Record, err error) {
	o, closeObject, err := r.openObject(ctx, slicesName(number, lot))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeObject()) }()
	f, err := exchange.OpenSlices(o)
	if err != nil || !f.Has(index) {
		return nil, err
	}
	return records, f.Each(index, func(record exchange.Record) error {
		records = append(records, record.Clone())
		return nil
	})
}
