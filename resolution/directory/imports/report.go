package imports

import (
	"fmt"

	"github.com/leadetl/leadetl/sources"
)

// Report counts the imported and the rejected rows of a kind. It has places and reasons,
// never values.
type Report struct {
	Source string // the files, as given
	Lines  int64  // data lines read
	Rows   int64  // imported lines
	// Replaced counts the rows whose key came again in a later line, which is kept.
	Replaced int64
	// Bad counts the skipped lines. BadLines has the places and reasons of the first
	// MaxListed.
	Bad      int64
	BadLines []BadLine
	// Dropped counts the unreadable cells of lines that were imported without them.
	// DroppedCells lists the first MaxListed.
	Dropped      int64
	DroppedCells []BadLine
}

// MaxListed bounds each list of a Report, but not its counts.
const MaxListed = 10_000

// BadLine is the place and the reason of a bad line.
type BadLine struct {
	File   string
	Line   int64  // from 1, of a CSV file; data row of a Parquet file
	Reason string // "network_url: invalid_url", "ragged_row"
}

func (b BadLine) String() string { return fmt.Sprintf("%s:%d: %s", b.File, b.Line, b.Reason) }

// Skip counts a line that is not imported.
func (r *Report) Skip(line int64, reason string) {
	r.Bad++
	if len(r.BadLines) < MaxListed {
		r.BadLines = append(r.BadLines, BadLine{r.Source, line, reason})
	}
}

// reject counts a malformed line.
func (r *Report) reject(line sources.Reject) {
	r.Lines++
	r.Skip(line.Line, line.Reason)
}

// Drop counts a cell that is not imported.
func (r *Report) Drop(line int64, reason string) {
	r.Dropped++
	if len(r.DroppedCells) < MaxListed {
		r.DroppedCells = append(r.DroppedCells, BadLine{r.Source, line, reason})
	}
}

// add adds the report on the next lines.
func (r *Report) add(next Report) {
	r.Lines += next.Lines
	r.Rows += next.Rows
	r.Bad += next.Bad
	r.Dropped += next.Dropped
	r.BadLines = append(r.BadLines, next.BadLines[:min(len(next.BadLines), MaxListed-len(r.BadLines))]...)
	r.DroppedCells = append(r.DroppedCells, next.DroppedCells[:min(len(next.DroppedCells), MaxListed-len(r.DroppedCells))]...)
}
