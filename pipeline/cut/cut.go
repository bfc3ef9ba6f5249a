// Package cut cuts the rows of an input into parts by row count alone, so that
// which row is in which part depends on the input and nothing else.
package cut

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// ErrInputChanged says that rows of a recorded part have changed since it was made.
var ErrInputChanged = errors.New("the input has changed since the dataset was begun")

// Sink takes the batches of one part, in order, from the goroutine of Cutter.Run. A batch
// that Take was given belongs to the Sink; Take waits while too much is taken and not yet
// processed. Either End or Abandon is called last, once.
type Sink interface {
	Take(ctx context.Context, b *sources.Batch) error
	End() error // all rows of the part were taken
	Abandon()   // not all rows will come
}

// Cutter cuts the rows of Reader into parts. Malformed lines go to the part of the rows that
// they are read with; those after the last row go to the last part.
type Cutter struct {
	Reader      *sources.Reader
	RowsPerPart int
	// First is the number of the first part, whose rows are the first of Reader. Until
	// is the number of the part before which to stop; 0 means at the end.
	First, Until int
	// Recorded are the parts of earlier runs. Their rows are only read and compared.
	// Keep, if not nil, is called for each.
	Recorded map[int]sinks.Part
	Keep     func(number int, p sinks.Part)
	// Start begins a part to be made.
	Start    func(ctx context.Context, number int) (Sink, error)
	Progress *stats.Progress
}

// Run reads to the end, to the first error, or until ctx ends. Rows that changed
// are ErrInputChanged.
func (c *Cutter) Run(ctx context.Context) error {
	perPart := int64(c.RowsPerPart)
	number, rows := c.First, int64(0) // of the open part
	part, err := c.open(ctx, number)
	if err != nil {
		return err
	}
	for {
		room := perPart - rows
		if room == 0 {
			room = perPart // the part is full, and ends if another row comes
		}
		b, err := c.Reader.Next(ctx, int(room))
		if err == io.EOF {
			break
		}
		if err != nil {
			part.Abandon()
			return err
		}
		if b.Len() == 0 && rows == 0 && number == c.First && number > 0 {
			b.Release() // malformed lines that belong to the part before
			continue
		}
		if b.Len() > 0 && rows == perPart {
			if err := part.End(); err != nil {
				return err
			}
			if number, rows = number+1, 0; number == c.Until {
				b.Release()
				c.Progress.CountAllRead()
				return nil
			}
			if part, err = c.open(ctx, number); err != nil {
				return err
			}
		}
		rows += int64(b.Len())
		position, total := c.Reader.Position()
		c.Progress.CountRead(b.Len(), position, total)
		if err := part.Take(ctx, b); err != nil {
			part.Abandon()
			return err
		}
	}
	if c.Until > 0 {
		part.Abandon()
		return fmt.Errorf("%w: it has fewer rows", ErrInputChanged)
	}
	c.Progress.CountAllRead()
	if err := part.End(); err != nil {
		return err
	}
	return c.checkRecordedEnd(number + 1)
}

// checkRecordedEnd reports recorded parts beyond the end of the input.
func (c *Cutter) checkRecordedEnd(parts int) error {
	for number, p := range c.Recorded {
		if number >= parts {
			return fmt.Errorf("%w: there are no rows of %s any more; use another --out, or --overwrite", ErrInputChanged, p.Name)
		}
	}
	return nil
}

// open starts a part. Recorded ones are only read and compared.
func (c *Cutter) open(ctx context.Context, number int) (Sink, error) {
	if recorded, ok := c.Recorded[number]; ok {
		return &recordedPart{cutter: c, number: number, recorded: recorded, digest: &Digest{}}, nil
	}
	return c.Start(ctx, number)
}

// recordedPart reads the rows of a part that an earlier run made, and checks that they have
// not changed.
type recordedPart struct {
	cutter   *Cutter
	number   int
	recorded sinks.Part
	digest   *Digest
}

func (p *recordedPart) Take(_ context.Context, b *sources.Batch) error {
	p.digest.Add(b)
	b.Release()
	return nil
}

func (p *recordedPart) End() error {
	if p.digest.Sum() != p.recorded.InputDigest {
		return fmt.Errorf("%w: rows of %s; use another --out, or --overwrite", ErrInputChanged, p.recorded.Name)
	}
	if p.cutter.Keep != nil {
		p.cutter.Keep(p.number, p.recorded)
	}
	p.cutter.Progress.CountPart()
	p.cutter.Progress.CountEarlier(p.recorded.Totals)
	return nil
}

func (p *recordedPart) Abandon() {}
