// Package imports is what the imports of all kinds of reference data share:
// reading the rows of a file, the report on bad lines, and the text forms of
// cells.
package imports

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/profile"
)

// Settings are the choices of an import that the kinds need.
type Settings struct {
	// MaxBadLines is the share of bad lines, 0 to 1, up to which a kind is
	// imported without them.
	MaxBadLines float64
	// Region is the region of phone numbers written without one, two letters
	// (ISO 3166).
	Region string
	// Rules are those of profile addresses.
	Rules profile.Rules
	// Called says what columns are called in the files, where it is not as we
	// call them.
	Called map[string]string
	// Open opens the files that a URI names; nil opens those of this machine.
	Open OpenFiles
}

// OpenFiles opens the files that a URI names.
type OpenFiles func(ctx context.Context, uri string) (*sources.List, error)

// Content hashes normalised rows: every cell with its length in front, so
// that no two different tables are the same bytes.
type Content struct {
	hash hash.Hash
	buf  []byte
}

// NewContent returns the hash of no rows.
func NewContent() *Content { return &Content{hash: sha256.New()} }

// Add adds cells to the hash.
func (c *Content) Add(cells ...string) {
	c.buf = c.buf[:0]
	for _, cell := range cells {
		c.buf = binary.AppendUvarint(c.buf, uint64(len(cell)))
		c.buf = append(c.buf, cell...)
	}
	c.hash.Write(c.buf)
}

// Sum returns the hash of all cells, lower-case hex.
func (c *Content) Sum() string { return hex.EncodeToString(c.hash.Sum(nil)) }

// Result describes the file that the import of a kind has made.
type Result struct {
	Keys    int64  // distinct keys among the rows
	Content string // hash of the normalised rows
}
