package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"
)

// File is the record of a file.
type File struct {
	Name       string
	Bytes      int64
	SHA256     string    // lower-case hex; "" if it was not taken yet
	ModifiedAt time.Time // a file with this time need not be read again, on a disk
	ETag       string    // the name of these bytes at the store, on S3: what ModifiedAt is on a disk
}

// Same reports whether a file is as it was recorded, as far as its size and its time or ETag say.
func (f File) Same(i Info) bool {
	if i.Size != f.Bytes {
		return false
	}
	if i.ETag != "" || f.ETag != "" {
		return i.ETag == f.ETag
	}
	return i.ModTime.Equal(f.ModifiedAt)
}

// CheckObject compares an open file with its record.
func (f File) CheckObject(o *Object) error {
	switch {
	case f.Same(o.Info):
		return nil
	case o.Size != f.Bytes:
		return fmt.Errorf("%s has %d bytes, not %d: %w", f.Name, o.Size, f.Bytes, ErrChanged)
	case f.SHA256 == "":
		return fmt.Errorf("%s was changed before its checksum was taken: %w", f.Name, ErrChanged)
	}
	sum, err := o.Sum()
	if err == nil && sum != f.SHA256 {
		err = fmt.Errorf("%s has another checksum: %w", f.Name, ErrChanged)
	}
	return err
}

// Sum is the SHA-256 of an open file, in lower-case hex.
func (o *Object) Sum() (string, error) {
	content := o.Reader()
	defer content.Close()
	h := sha256.New()
	if _, err := io.Copy(h, content); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
