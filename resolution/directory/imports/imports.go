// Package imports has what the imports of all kinds share: reading the rows of files, the
// report on bad lines, and the forms of cells.
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

// Settings are the options of an import that the kinds need.
type Settings struct {
	// MaxBadLines is the share of bad lines, from 0 to 1, up to which a kind is
	// imported without them.
	MaxBadLines float64
	// Region is the region (ISO 3166 alpha-2) of phone numbers without a country
	// code.
	Region string
	// Rules are the rules for profile addresses.
	Rules profile.Rules
	// Called has the names of columns in the files that differ from ours.
	Called map[string]string
	// Open opens the files of a URI; nil opens files of this machine.
	Open OpenFiles
}

// OpenFiles opens the files of a URI.
type OpenFiles func(ctx context.Context, uri string) (*sources.List, error)

// Content hashes normalised rows. Every cell has its length in front, so that different
// tables never are the same bytes.
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
