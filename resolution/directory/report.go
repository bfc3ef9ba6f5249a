package directory

import (
	"fmt"
	"time"
)

// Report says what an import took over and what it did not. It holds places
// and reasons, never values.
type Report struct {
	Kinds []KindReport // in the order of Kinds
}

// KindReport is the report of one kind.
type KindReport struct {
	Kind   Kind
	Source string // the file, as it was given
	Lines  int64  // data lines read
	Rows   int64  // lines taken over
	// Replaced counts the rows whose key came again further down: the last
	// line wins.
	Replaced int64
	// Bad counts the lines skipped, BadLines says which and why: the first
	// MaxListed of them.
	Bad      int64
	BadLines []BadLine
	// Dropped counts cells that were not what their column wants, on lines
	// that were taken over without them; DroppedCells the first MaxListed.
	Dropped      int64
	DroppedCells []BadLine
	Took         time.Duration
}

// MaxListed bounds each list of a KindReport; the counts go on.
const MaxListed = 10_000

// BadLine is a place in a source and what is wrong there.
type BadLine struct {
	File   string
	Line   int64  // 1-based line of a CSV file, data row of a Parquet file
	Reason string // "network_url: invalid_url", "column_count"
}

func (b BadLine) String() string { return fmt.Sprintf("%s:%d: %s", b.File, b.Line, b.Reason) }

func (r *KindReport) bad(line int64, reason string) {
	r.Bad++
	if len(r.BadLines) < MaxListed {
		r.BadLines = append(r.BadLines, BadLine{r.Source, line, reason})
	}
}

func (r *KindReport) dropped(line int64, reason string) {
	r.Dropped++
	if len(r.DroppedCells) < MaxListed {
		r.DroppedCells = append(r.DroppedCells, BadLine{r.Source, line, reason})
	}
}
