// Package sources turns input files into batches of rows: CSV, JSON Lines and Parquet, from
// paths, globs, S3 and standard input, compressed or not.
//
// Other packages use only this package, not its subpackages. Open inspects
// every file before the first row is returned. So a problem in the tenth file
// is known before rows of the first one are paid for.
package sources

import (
	"io"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/rows"
	"github.com/leadetl/leadetl/sources/csvfile"
)

// The types batches are made of.
type (
	Batch       = rows.Batch
	Reject      = rows.Reject
	FormatError = rows.FormatError
)

// ErrChanged means that a file changed while it was read.
var ErrChanged = rows.ErrChanged

// Encodings are the values of Options.Encoding.
var Encodings = csvfile.Encodings

// DefaultBatchRows is the default of Options.BatchRows.
const DefaultBatchRows = 8192

// A batch of many columns has fewer rows: where each value ends takes memory, also if it is empty.
const (
	batchCells     = 1 << 18
	leastBatchRows = 1 << 10
)

// Options say how inputs are read. The zero value is the default.
type Options struct {
	// Delimiter separates CSV fields; 0 detects one of , ; tab | per file.
	Delimiter byte
	// Wanted are names of columns of which a list has one. A delimiter that gives such a column is
	// detected before others.
	Wanted []string
	// Encoding is that of CSV files, utf-8, utf-16, windows-1252 or latin-1; empty is UTF-8, without
	// advice to choose another.
	Encoding string
	// SkipLines is how many lines of a CSV file precede its header.
	SkipLines int
	// Stdin is read for "-"; nil means os.Stdin.
	Stdin io.Reader
	// StdinName is the name of "-" in rows and errors; empty means "-".
	StdinName string
	// BatchRows bounds the rows of a batch; 0 means DefaultBatchRows.
	BatchRows int
	// Sample is how many lines, spread over all files, a Reader returns; 0
	// means all, and MaxSample is the maximum. The whole input is read for it.
	Sample int
	// AllowEmpty treats an empty file as a file without columns and rows.
	// Otherwise an empty file is an error.
	AllowEmpty bool
	// Archives reads the files in ZIP archives, whose names end in .zip; otherwise they are refused.
	Archives bool
	// Objects reads s3:// URIs; nil refuses them.
	Objects *objects.Store

	whole *wholeTexts // that Open keeps
}

// File is one input, as Open found it.
type File struct {
	URI     string    // path as given or as the glob found it; "-" is standard input
	Format  string    // csv, json or parquet
	Size    int64     // stored (compressed) bytes, -1 if unknown
	ModTime time.Time // zero if unknown
	ETag    string    // for objects; it changes with the content
	Columns []string  // names from the header, trimmed
}
