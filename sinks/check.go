package sinks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/leadetl/leadetl/internal/hashlanes"
)

// Check reports whether f is still as it was recorded. A file of the same size
// and modification time is trusted; any other is read and its checksum
// compared. What differs, is gone, or cannot be told for want of a checksum is
// ErrCorrupt.
func (d *Dataset) Check(f File) error {
	path := filepath.Join(d.dir, f.Name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is missing: %w", f.Name, ErrCorrupt)
	}
	if err != nil {
		return err
	}
	if info.Size() != f.Bytes {
		return fmt.Errorf("%s has %d bytes, not %d: %w", f.Name, info.Size(), f.Bytes, ErrCorrupt)
	}
	if modified(info).Equal(f.ModifiedAt) {
		return nil
	}
	sum, err := fileSHA256(path)
	if err != nil {
		return err
	}
	if sum != f.SHA256 {
		return fmt.Errorf("%s has another checksum: %w", f.Name, ErrCorrupt)
	}
	return nil
}

// CheckPart checks both files of a part.
func (d *Dataset) CheckPart(p Part) error {
	if err := d.Check(p.File); err != nil {
		return err
	}
	if p.Rejects != nil {
		return d.Check(*p.Rejects)
	}
	return nil
}

func fileSHA256(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// SumLanes is how many files Sum reads side by side at the best.
const SumLanes = 8

// Sum takes the SHA-256 of published files that have none yet, reading them
// back side by side: together they cost a third of what they cost one by one
// on a CPU without SHA instructions (package hashlanes).
func (d *Dataset) Sum(ctx context.Context, files []*File) (err error) {
	readers := make([]io.Reader, len(files))
	for i, f := range files {
		file, err := os.Open(filepath.Join(d.dir, f.Name))
		if err != nil {
			return err
		}
		defer file.Close()
		readers[i] = file
	}
	sums, err := hashlanes.SHA256Streams(ctx, readers)
	if err != nil {
		return fmt.Errorf("checksums of %s: %w", d.dir, err)
	}
	for i, f := range files {
		f.SHA256 = hex.EncodeToString(sums[i][:])
	}
	return nil
}
