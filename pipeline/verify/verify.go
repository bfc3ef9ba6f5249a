// Package verify proves that a dataset is complete and correct. It checks the
// size and checksum of every file in the manifest, looks for unexpected files,
// compares every value that Arrow reads with the bytes of the pages that a second
// implementation of Parquet unpacks, counts the totals again, and checks the rows by the
// rules of their columns. Levels, indices and plain values in these bytes are decoded by
// this package (page_bytes.go); the second implementation decodes footers, page headers
// and dictionaries, and a sample of the values (decoded_values.go).
//
// Problems of a dataset are results, not errors: Check returns an error only
// when it could not read the dataset.
package verify

import (
	"context"

	"github.com/leadetl/leadetl/internal/progress"
	"github.com/leadetl/leadetl/sinks"
)

// A Dataset has the files of a dataset; *sinks.Reader is one. Check calls its methods
// from several goroutines at once. Names are relative to the
// dataset, with slashes. A file that does not exist is fs.ErrNotExist.
type Dataset interface {
	// List returns the names of all files of the dataset, in any order.
	List(ctx context.Context) ([]string, error)
	// ReadFile reads a small file.
	ReadFile(name string) ([]byte, error)
	// Open opens a file for reading.
	Open(name string) (*sinks.OpenFile, error)
}

// Rules say what a dataset of an operation must be like.
type Rules struct {
	// Own are all columns that the dataset can have after those kept from the
	// input, in their order. It has some or all of them.
	Own []sinks.Column
	// Rejects are the columns of a file of rejects. The last may be missing.
	Rejects []sinks.Column
	// Suppressed are the columns of a file of ids of suppressed rows.
	Suppressed []sinks.Column
	// Asked are the columns of a file of what several resolvers say. The first may be missing.
	Asked []sinks.Column
	// HashesKey says that hem_md5, hem_sha1 and hem_sha256 are digests of key.
	HashesKey bool
	// SeveralRows says that one input row may have several rows of output.
	SeveralRows bool
}

// Options say how a dataset is verified.
type Options struct {
	// Rules returns the rules of a dataset by its manifest; false if its operation or its
	// version is unknown.
	Rules func(*sinks.Manifest) (Rules, bool)
	// Workers bounds the columns that are read at a time, and the row groups
	// that these belong to: about 200 MB of memory for each row group. At least 1.
	Workers int
}

// Result is the result of Check.
type Result struct {
	Manifest *sinks.Manifest // nil when it cannot be read
	Failures []Failure       // in the order of files, row groups and columns
	More     int             // failures that are not listed
	Files    int             // in the manifest
	Bytes    int64           // of these files
	Rows     int64           // whose values are the same twice
	Rejects  int64           // malformed lines among them
	Columns  []ColumnFacts   // of the parts, in their order
}

// Whole reports whether there is no failure.
func (r *Result) Whole() bool { return len(r.Failures) == 0 }

// ColumnFacts describes the values of a column in all parts.
type ColumnFacts struct {
	sinks.Column
	Nulls   int64
	Longest int64 // bytes of the longest value; for a list of all its values together
}

// maxFailures bounds the failures that are listed.
const maxFailures = 200

// Check verifies the whole dataset.
func Check(ctx context.Context, d Dataset, o Options) (*Result, error) {
	c := &checker{
		dataset: d, options: o, result: &Result{}, found: &findings{}, work: progress.Of(ctx),
		reading: make(chan struct{}, o.Workers), spare: spareLeaves{kept: map[string][]*leaf{}},
	}
	if err := c.manifest(ctx); err != nil {
		return nil, err
	}
	if c.result.Manifest != nil {
		c.work.Expect(c.result.Manifest.Totals.Rows)
		if err := c.parts(ctx); err != nil {
			return nil, err
		}
		if err := c.changesIntact(ctx); err != nil {
			return nil, err
		}
	}
	c.result.Failures, c.result.More = c.found.sorted()
	return c.result, nil
}

// checker is one Check.
type checker struct {
	dataset Dataset
	options Options
	rules   Rules
	ruled   bool // the rules are known
	result  *Result
	found   *findings
	work    *progress.Work
	reading chan struct{} // has one for each column that is being read
	spare   spareLeaves
}
