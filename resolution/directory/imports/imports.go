// Package imports has what the imports of all kinds share: reading the rows of files, the
// report on bad lines, and the forms of cells.
package imports

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"io"

	"github.com/leadetl/leadetl/transforms/orgtype"
)

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
	c.buf = AppendCells(c.buf[:0], cells...)
	c.hash.Write(c.buf)
}

// AddAppended adds cells that AppendCells has appended.
func (c *Content) AddAppended(cells []byte) { c.hash.Write(cells) }

// AppendCells appends cells, each with its length in front.
func AppendCells(to []byte, cells ...string) []byte {
	for _, cell := range cells {
		to = binary.AppendUvarint(to, uint64(len(cell)))
		to = append(to, cell...)
	}
	return to
}

// NextCell returns the first of cells that AppendCells has appended, and the rest.
func NextCell(from []byte) (cell, rest []byte) {
	size, n := binary.Uvarint(from)
	end := n + int(size)
	return from[n:end], from[end:]
}

// Sum returns the hash of all cells, lower-case hex.
func (c *Content) Sum() string { return hex.EncodeToString(c.hash.Sum(nil)) }

// Result describes the file that the import of a kind has made.
type Result struct {
	Keys    int64  // distinct keys among the rows
	Content string // hash of the normalised rows
	// UnknownWords are the words of org_type that are no known kind, most rows first.
	UnknownWords []orgtype.Count
}

// File is where the import of a kind writes its file, from front to back.
type File struct {
	io.Writer
	Scratch string // the folder of temporary files
}
