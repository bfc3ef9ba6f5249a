package place

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/directio"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
)

// upload is a file that is written on this machine and sent when it is complete.
type upload struct {
	*directio.Writer
	bucket *bucket
	name   string
	file   *os.File
	sum    hash.Hash
}

func (u *upload) Commit() (File, error) {
	stat, err := u.file.Stat()
	if err != nil {
		return File{}, errors.Join(err, u.Abort())
	}
	content := objects.Content{ReaderAt: u.file, Size: stat.Size(), SHA256: [sha256.Size]byte(u.sum.Sum(nil)), Type: "application/vnd.apache.parquet"}
	info, err := u.bucket.put(u.name, content)
	if err := errors.Join(err, u.Abort()); err != nil {
		return File{}, err
	}
	return File{ModifiedAt: info.ModTime, ETag: info.ETag, SHA256: hex.EncodeToString(content.SHA256[:])}, nil
}

func (u *upload) Abort() error {
	if err := u.file.Close(); errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return os.Remove(u.file.Name())
}

// workFolder is the folder, in the state folder, where files for S3 are made. One
// process has it at a time.
type workFolder struct {
	dir    string
	holder string // names the folder in the lock of the dataset
	lock   *filelock.Lock
}

const (
	// workFolders is the folder of work folders in a state folder.
	workFolders = "s3"
	holderName  = "holder"
)

// openWorkFolder locks the work folder of a dataset, and removes what a killed run has
// left there.
func openWorkFolder(stateDir, uri string) (*workFolder, error) {
	hash := sha256.Sum256([]byte(uri))
	w := &workFolder{dir: filepath.Join(stateDir, workFolders, hex.EncodeToString(hash[:8]))}
	var err error
	for range 3 { // its previous holder may be removing it
		if err = os.MkdirAll(w.dir, 0o700); err != nil {
			return nil, err
		}
		if w.lock, err = filelock.Folder(w.dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if errors.Is(err, filelock.ErrLocked) {
		return nil, fmt.Errorf("%s: %w", uri, filelock.ErrLocked)
	}
	if err != nil {
		return nil, err
	}
	if err := w.begin(); err != nil {
		return nil, errors.Join(err, w.lock.Release())
	}
	return w, nil
}

func (w *workFolder) begin() error {
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != holderName && !strings.HasPrefix(e.Name(), uploadRecord) && !strings.HasSuffix(e.Name(), damagedSuffix) {
			if err := os.Remove(filepath.Join(w.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	holder, err := readSealed(filepath.Join(w.dir, holderName))
	if w.holder = string(holder); err == nil && w.holder != "" || errors.Is(err, appendlog.ErrDamaged) {
		return err
	}
	w.holder = uuid.NewString()
	return writeSealed(filepath.Join(w.dir, holderName), []byte(w.holder))
}

func (w *workFolder) create(name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(w.dir, strings.ReplaceAll(name, "/", "-")), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
}

// close releases the folder. It is removed, unless the lock of the dataset still names
// it.
func (w *workFolder) close(unused bool) error {
	if unused {
		_ = os.Remove(filepath.Join(w.dir, holderName)) // a leftover is harmless
		_ = os.Remove(w.dir)
	}
	return w.lock.Release()
}
