package place

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/leadetl/leadetl/internal/atomicfile"
)

// Uploads in pieces are recorded in the work folder before they are begun, so
// that the next run can abort those of a killed one. A listing of uploads alone
// does not do: MinIO lists those of a name, and none of a folder.

// uploadRecord begins the names of the records: a file for each object, with its
// name, a line for each try to begin an upload, and one for each upload's id.
const uploadRecord = "upload-"

const tryLine = "try"

func (w *workFolder) uploadRecord(name string) string {
	hash := sha256.Sum256([]byte(name))
	return filepath.Join(w.dir, uploadRecord+hex.EncodeToString(hash[:8]))
}

// begun records an upload to an object, or with the id "" a try to begin one.
func (w *workFolder) begun(name, upload string) error {
	path := w.uploadRecord(name)
	record, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		record, err = []byte(name+"\n"), nil
	}
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(record, cmp.Or(upload, tryLine)+"\n"...))
}

// uploads are those to one object.
type uploads struct {
	name  string
	known []string // ids
	lost  bool     // a try was not answered, and may have begun one
}

func readUploads(path string) (u uploads, err error) {
	record, err := os.ReadFile(path)
	if err != nil {
		return u, err
	}
	lines := strings.Split(strings.TrimSuffix(string(record), "\n"), "\n")
	tries := 0
	for _, line := range lines[1:] {
		if line == tryLine {
			tries++
		} else {
			u.known = append(u.known, line)
		}
	}
	u.name, u.lost = lines[0], tries > len(u.known)
	return u, nil
}

// written forgets the uploads to an object that is complete, unless one may be
// left that nobody knows of.
func (w *workFolder) written(name string) error {
	path := w.uploadRecord(name)
	u, err := readUploads(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && u.lost {
		return nil
	}
	return errors.Join(err, os.Remove(path))
}

// abortRecorded aborts the uploads that are recorded: those whose id is known,
// and what the store lists under the very name, if the answer with an id was lost.
func (b *bucket) abortRecorded() error {
	records, err := filepath.Glob(filepath.Join(b.work.dir, uploadRecord+"*"))
	if err != nil {
		return err
	}
	for _, path := range records {
		u, err := readUploads(path)
		if err != nil {
			return err
		}
		object := b.at.Below(u.name)
		for _, id := range u.known {
			if err := b.store.Abort(b.ctx, object, id); err != nil {
				return err
			}
		}
		if u.lost {
			if err := b.store.AbortUploads(b.ctx, object, func(rest string) bool { return rest == "" }); err != nil {
				return err
			}
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}
