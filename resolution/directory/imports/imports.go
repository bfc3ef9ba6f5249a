// Package imports is what the imports of all kinds of reference data share:
// reading the rows of a file, the report on bad lines, and the text forms of
// cells.
package imports

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"

	"github.com/leadetl/leadetl/internal/tabular"
	"github.com/leadetl/leadetl/resolution"
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
}

// Read hands the well-formed lines of r.Source to each, and counts all lines
// and the malformed ones in r. Too many bad lines are an error.
//
// Errors: resolution.ErrInvalid when the content of the file is wrong.
func (s Settings) Read(ctx context.Context, r *Report, want tabular.Columns, each func(tabular.Row) error) error {
	err := tabular.Read(ctx, r.Source, want, func(row tabular.Row) error {
		if row.Bad == "" {
			r.Lines++
			return each(row)
		}
		r.Lines += row.Spoiled
		r.Skip(row.Line, row.Bad)
		r.Bad += row.Spoiled - 1
		return nil
	})
	var content *tabular.FileError
	if errors.As(err, &content) {
		return fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
	}
	if err != nil {
		return err
	}
	if float64(r.Bad) > s.MaxBadLines*float64(r.Lines) {
		return fmt.Errorf("%w: %d of %d lines are bad, more than %.4g%%; the old data stays",
			resolution.ErrInvalid, r.Bad, r.Lines, 100*s.MaxBadLines)
	}
	return nil
}

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
