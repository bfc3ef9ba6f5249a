// Package sources turns input files into batches of rows: CSV and Parquet,
// from paths, globs, S3 and standard input, packed or plain.
//
// It is the only door to its subpackages. Open looks at every file before the
// first row is handed out, so that what is wrong with the tenth file is known
// before the first has been paid for.
package sources

import (
	"io"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/rows"
)

// The types batches are made of.
type (
	Batch       = rows.Batch
	Reject      = rows.Reject
	FormatError = rows.FormatError
)

// ErrChanged says that a file was not the same after reading as before.
var ErrChanged = rows.ErrChanged

// DefaultBatchRows is the most rows of a batch unless Options say otherwise.
const DefaultBatchRows = 8192

// Options are how inputs are read. The zero value is the default.
type Options struct {
	// Delimiter separates CSV fields; 0 detects one of , ; tab | per file.
	Delimiter byte
	// Stdin is what "-" reads; nil is os.Stdin.
	Stdin io.Reader
	// StdinName is what "-" is called in rows and errors; empty is "-".
	StdinName string
	// BatchRows bounds the rows of a batch; 0 is DefaultBatchRows.
	BatchRows int
	// Sample is how many lines, spread over all files, a Reader hands out; 0 is
	// all, and MaxSample the most. The whole input is read for it.
	Sample int
	// AllowEmpty takes a file with nothing in it for one without columns and
	// rows; otherwise it is an error.
	AllowEmpty bool
	// Objects is where s3:// URIs are read; nil refuses them.
	Objects *objects.Store
}

// File is one input, as it was when Open looked at it.
type File struct {
	URI     string    // path as given or as the glob found it; "-" is standard input
	Format  string    // csv or parquet
	Size    int64     // stored (packed) bytes, -1 when unknown
	ModTime time.Time // zero when unknown
	ETag    string    // of objects: another one is another content
	Columns []string  // names as the header has them, trimmed
}
