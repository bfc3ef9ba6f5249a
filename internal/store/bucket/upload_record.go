package bucket

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/store"
)

// Uploads in pieces are recorded in the work folder before they are begun, so that the
// next run can abort those of a killed run. A listing is not enough: MinIO lists the
// uploads of a name, but not of a folder.

// uploadRecord begins the names of the records. There is a file for each object, with its
// name, a line for each try to begin an upload, and a line for the id of each upload.
const uploadRecord = "upload-"

const tryLine = "try"

func recordName(name string) string {
	hash := sha256.Sum256([]byte(name))
	return uploadRecord + hex.EncodeToString(hash[:8])
}

// begun records the id of an upload to an object, or, with "", a try to begin one.
func (w *workFolder) begun(name, upload string) error {
	file := recordName(name)
	record, err := readSealed(w.in, file)
	if errors.Is(err, fs.ErrNotExist) {
		record, err = []byte(name+"\n"), nil
	}
	if err != nil {
		return err
	}
	return writeSealed(w.in, file, append(record, cmp.Or(upload, tryLine)+"\n"...))
}

// writeSealed writes a file of a work folder, as one record.
func writeSealed(in disk.Folder, name string, content []byte) error {
	sealed, err := appendlog.Seal(name, content)
	if err != nil {
		return err
	}
	return atomicfile.WriteIn(in, name, sealed)
}

func readSealed(in disk.Folder, name string) ([]byte, error) {
	sealed, err := in.ReadFile(name)
	if err != nil {
		return nil, err
	}
	content, err := appendlog.Unseal(name, sealed)
	if err != nil {
		err = fmt.Errorf("%s: %w", in.Path(name), err)
	}
	return content, err
}

// InspectWork reads the records of unfinished uploads in the folder of a state, and says what is wrong
// with damaged files. Without its record, an upload stays in the store until that removes it.
func InspectWork(state disk.Folder) (damages []error, err error) {
	return damages, damagedWork(state, func(_ disk.Folder, _ string, damage error) error {
		damages = append(damages, damage)
		return nil
	})
}

// damagedWork calls found for each damaged file.
func damagedWork(state disk.Folder, found func(in disk.Folder, name string, damage error) error) error {
	work := state.In(workFolders)
	folders, err := disk.Names(work)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, folder := range folders {
		in := work.In(folder)
		names, err := disk.Names(in)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if name != holderName && !isRecord(name) {
				continue
			}
			_, err := readSealed(in, name)
			if errors.Is(err, appendlog.ErrDamaged) {
				err = found(in, name, err)
			}
			if err != nil {
				return err
			}
		}
	}
	return err
}

// isRecord reports whether this is the name of a record that was not set aside.
func isRecord(name string) bool {
	return strings.HasPrefix(name, uploadRecord) && !strings.HasSuffix(name, store.DamagedSuffix)
}

// RepairWork sets damaged files aside, and returns their paths.
func RepairWork(state disk.Folder) (setAside []string, err error) {
	return setAside, damagedWork(state, func(in disk.Folder, name string, _ error) error {
		err := in.Rename(name, name+store.DamagedSuffix)
		if err == nil {
			setAside = append(setAside, in.Path(name+store.DamagedSuffix))
		}
		return err
	})
}

// uploads are the uploads to an object.
type uploads struct {
	name  string
	known []string // ids
	lost  bool     // a try had no answer, and may have begun an upload
}

func readUploads(in disk.Folder, name string) (u uploads, err error) {
	record, err := readSealed(in, name)
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
	file := recordName(name)
	u, err := readUploads(w.in, file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && u.lost {
		return nil
	}
	return errors.Join(err, w.in.Remove(file))
}

// abortRecorded aborts the recorded uploads by their ids and, if the answer with an id was
// lost, those that the store lists for the name.
func (w *workFolder) abortRecorded(ctx context.Context, b *Bucket) error {
	names, err := disk.Names(w.in)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !isRecord(name) {
			continue
		}
		u, err := readUploads(w.in, name)
		if err != nil {
			return err
		}
		object := b.at.Below(u.name)
		for _, id := range u.known {
			if err := b.objects.Abort(ctx, object, id); err != nil {
				return err
			}
		}
		if u.lost {
			if err := b.objects.AbortUploads(ctx, object, func(rest string) bool { return rest == "" }); err != nil {
				return err
			}
		}
		if err := w.in.Remove(name); err != nil {
			return err
		}
	}
	return nil
}
