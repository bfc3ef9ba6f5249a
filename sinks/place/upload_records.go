package place

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/atomicfile"
)

// Uploads in pieces are recorded in the work folder before they are begun, so that the
// next run can abort those of a killed run. A listing is not enough: MinIO lists the
// uploads of a name, but not of a folder.

// uploadRecord begins the names of the records. There is a file for each object, with its
// name, a line for each try to begin an upload, and a line for the id of each upload.
const uploadRecord = "upload-"

const tryLine = "try"

func (w *workFolder) uploadRecord(name string) string {
	hash := sha256.Sum256([]byte(name))
	return filepath.Join(w.dir, uploadRecord+hex.EncodeToString(hash[:8]))
}

// begun records the id of an upload to an object, or, with "", a try to begin one.
func (w *workFolder) begun(name, upload string) error {
	path := w.uploadRecord(name)
	record, err := readSealed(path)
	if errors.Is(err, os.ErrNotExist) {
		record, err = []byte(name+"\n"), nil
	}
	if err != nil {
		return err
	}
	return writeSealed(path, append(record, cmp.Or(upload, tryLine)+"\n"...))
}

// writeSealed writes a file of a work folder, as one record.
func writeSealed(path string, content []byte) error {
	sealed, err := appendlog.Seal(filepath.Base(path), content)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, sealed)
}

func readSealed(path string) ([]byte, error) {
	sealed, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	content, err := appendlog.Unseal(filepath.Base(path), sealed)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return content, err
}

// InspectWork reads the records of unfinished uploads in a state folder. It returns the damaged files,
// and what is wrong with them. Without its record, an upload stays in the store until that removes it.
func InspectWork(stateDir string) (files []string, damages []error, err error) {
	found, err := filepath.Glob(filepath.Join(stateDir, workFolders, "*", "*"))
	for _, path := range found {
		if name := filepath.Base(path); name != holderName && (!strings.HasPrefix(name, uploadRecord) || strings.HasSuffix(name, damagedSuffix)) {
			continue
		}
		if _, err := readSealed(path); errors.Is(err, appendlog.ErrDamaged) {
			files, damages = append(files, path), append(damages, err)
		} else if err != nil {
			return files, damages, err
		}
	}
	return files, damages, err
}

// damagedSuffix ends the name of a damaged file that was set aside.
const damagedSuffix = ".damaged"

// RepairWork sets damaged files aside, and returns their names.
func RepairWork(stateDir string) (setAside []string, err error) {
	files, _, err := InspectWork(stateDir)
	for _, path := range files {
		if err := os.Rename(path, path+damagedSuffix); err != nil {
			return setAside, err
		}
		setAside = append(setAside, path+damagedSuffix)
	}
	return setAside, err
}

// uploads are the uploads to an object.
type uploads struct {
	name  string
	known []string // ids
	lost  bool     // a try had no answer, and may have begun an upload
}

func readUploads(path string) (u uploads, err error) {
	record, err := readSealed(path)
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

// written forgets the uploads to a complete object, unless an unknown one may be left.
func (w *workFolder) written(name string) error {
	path := w.uploadRecord(name)
	u, err := readUploads(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && u.lost {
		return nil
	}
	return errors.Join(err, os.Remove(path))
}

// abortRecorded aborts the recorded uploads by their ids and, if the answer with an id was
// lost, those that the store lists for the name.
func (b *bucket) abortRecorded() error {
	records, err := filepath.Glob(filepath.Join(b.work.dir, uploadRecord+"*"))
	if err != nil {
		return err
	}
	for _, path := range records {
		if strings.HasSuffix(path, damagedSuffix) {
			continue
		}
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
