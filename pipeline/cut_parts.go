package pipeline

import (
	"context"
	"fmt"
	"io"

	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// partSink takes the batches of one part, in order. Either end or abandon is
// called, once.
type partSink interface {
	take(ctx context.Context, b *sources.Batch) error
	end() error // all rows of the part were taken
	abandon()   // they will never all come
}

// cut cuts the rows of reader into parts. start begins a part that has to be
// made; keep is told of recorded parts whose rows are still the same.
func (d *decision) cut(ctx context.Context, reader *sources.Reader, start func(ctx context.Context, number int) (partSink, error), keep func(int, sinks.Part)) error {
	d.run.Progress.ReadFrom(reader.Position)
	c := partCutter{
		rowsPerPart: int64(d.run.Job.RowsPerPart), recorded: d.recorded, reader: reader, start: start, keep: keep, progress: d.run.Progress,
	}
	return c.run(ctx)
}

// partCutter cuts the stream of rows into parts by row count alone. Malformed
// lines go with the rows they are read with; what follows the very last row
// stays in its part.
type partCutter struct {
	rowsPerPart int64
	recorded    map[int]sinks.Part
	reader      *sources.Reader
	start       func(ctx context.Context, number int) (partSink, error)
	keep        func(number int, p sinks.Part)
	progress    *stats.Progress
}

func (c *partCutter) run(ctx context.Context) error {
	number, rows := 0, int64(0) // of the open part
	part, err := c.open(ctx, number)
	if err != nil {
		return err
	}
	for {
		room := c.rowsPerPart - rows
		if room == 0 {
			room = c.rowsPerPart // the part is full; what comes decides whether it ends
		}
		b, err := c.reader.Next(ctx, int(room))
		if err == io.EOF {
			break
		}
		if err != nil {
			part.abandon()
			return err
		}
		if b.Len() > 0 && rows == c.rowsPerPart {
			if err := part.end(); err != nil {
				return err
			}
			number, rows = number+1, 0
			if part, err = c.open(ctx, number); err != nil {
				return err
			}
		}
		rows += int64(b.Len())
		c.progress.CountRead(b.Len())
		if err := part.take(ctx, b); err != nil {
			part.abandon()
			return err
		}
	}
	if err := part.end(); err != nil {
		return err
	}
	return c.checkRecordedEnd(number + 1)
}

// checkRecordedEnd reports recorded parts beyond the end of the input.
func (c *partCutter) checkRecordedEnd(parts int) error {
	for number, p := range c.recorded {
		if number >= parts {
			return fmt.Errorf("%w: there are no rows of %s any more; use another --out, or --overwrite", ErrInputChanged, p.Name)
		}
	}
	return nil
}

// open starts a part: recorded ones are read past and compared.
func (c *partCutter) open(ctx context.Context, number int) (partSink, error) {
	if recorded, ok := c.recorded[number]; ok {
		return &recordedPart{cutter: c, number: number, recorded: recorded, digest: newInputDigest()}, nil
	}
	return c.start(ctx, number)
}

// recordedPart reads past the rows of a part that an earlier run made, and
// checks that they are the rows it was made from.
type recordedPart struct {
	cutter   *partCutter
	number   int
	recorded sinks.Part
	digest   *inputDigest
}

func (p *recordedPart) take(_ context.Context, b *sources.Batch) error {
	p.digest.add(b)
	b.Release()
	return nil
}

func (p *recordedPart) end() error {
	if p.digest.sum() != p.recorded.InputDigest {
		return fmt.Errorf("%w: rows of %s; use another --out, or --overwrite", ErrInputChanged, p.recorded.Name)
	}
	p.cutter.keep(p.number, p.recorded)
	p.cutter.progress.CountPart()
	p.cutter.progress.CountEarlier(p.recorded.Totals)
	return nil
}

func (p *recordedPart) abandon() {}
