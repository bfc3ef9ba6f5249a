package job

import (
	"time"

	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// Keep drops the rows of a batch that the job does not select, and returns how many.
func (c *Columns) Keep(in *sources.Batch) (dropped int) {
	if len(c.Where) == 0 {
		return 0
	}
	return in.Keep(func(i int) bool {
		for n, column := range c.Where {
			if in.Columns[column].Value(i) != c.job.Where[n].Value {
				return false
			}
		}
		return true
	})
}

// Suppressor makes what suppresses the people of lists in rows, for one goroutine.
func (c *Columns) Suppressor(lists *suppression.Set, remember bool) *keys.Suppressor {
	return keys.NewSuppressor(lists, c.job.Operation, c.job.Multiple, remember, c.Read[:c.Kept], c.Identifier)
}

// Keys makes what makes the keys of rows, for one goroutine.
func (c *Columns) Keys(suppress *keys.Suppressor) *keys.Maker {
	reading := c.job.Reading()
	reading.From, reading.Nameless = c.From, c.Nameless
	return keys.NewMaker(c.job.Operation, reading, c.Kept, c.Identifier, c.SuppressedID, suppress)
}

// Searches makes what makes searches of rows. today is the day that they treat as such.
func (c *Columns) Searches(today time.Time) keys.SearchReader {
	return keys.SearchReader{Fields: c.Fields, Defaults: c.job.SearchDefaults, Today: today, Count: c.job.Operation.Gives() == resolution.GivesCount}
}
