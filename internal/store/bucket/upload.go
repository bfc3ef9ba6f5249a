package bucket

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"strings"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/directio"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/store"
)

// upload is a file that is written on this machine and sent when it is complete.
type upload struct {
	*directio.Writer
	ctx    context.Context
	bucket *Bucket
	work   *workFolder // nil for a file without a name
	name   string
	file   disk.File
	spool  string // its name in the work folder
	sum    hash.Hash
	ended  bool
}

// startNameless starts a file that no other process can find.
func (b *Bucket) startNameless(ctx context.Context, name string) (store.Unfinished, error) {
	file, err := atomicfile.Nameless(b.options.Scratch)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	return &upload{Writer: directio.NewSmall(file, sum), ctx: ctx, bucket: b, name: name, file: file, sum: sum}, nil
}

// start starts a file.
func (w *workFolder) start(ctx context.Context, b *Bucket, name string) (store.Unfinished, error) {
	spool := strings.ReplaceAll(name, "/", "-")
	file, err := w.in.Create(spool, 0o600)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	return &upload{Writer: directio.NewSmall(file, sum), ctx: ctx, bucket: b, work: w, name: name, file: file, spool: spool, sum: sum}, nil
}

// Commit is that of store.Unfinished.
func (u *upload) Commit() (store.File, error) {
	stat, err := u.file.Stat()
	if err != nil {
		return store.File{}, errors.Join(err, u.Abort())
	}
	content := objects.Content{ReaderAt: u.file, Size: stat.Size(), SHA256: [sha256.Size]byte(u.sum.Sum(nil)), Type: mime(u.name)}
	info, err := u.bucket.put(u.ctx, u.name, content)
	if err := errors.Join(err, u.Abort()); err != nil {
		return store.File{}, err
	}
	return store.File{Name: u.name, Bytes: content.Size, SHA256: hex.EncodeToString(content.SHA256[:]), ModifiedAt: info.ModTime, ETag: info.ETag}, nil
}

// Abort is that of store.Unfinished.
func (u *upload) Abort() error {
	if u.ended {
		return nil
	}
	u.ended = true
	u.Stop()
	err := u.file.Close()
	if u.work != nil {
		err = errors.Join(err, u.work.in.Remove(u.spool))
	}
	return err
}

// workFolder is the folder, in the state folder, where large files for S3 are made. One
// process has it at a time.
type workFolder struct {
	in     disk.Folder
	holder string // names the folder in the lock of the store
	lock   lease.Lease
}

const (
	// workFolders is the folder of work folders in a state folder.
	workFolders = "s3"
	holderName  = "holder"
)

// openWorkFolder locks the work folder of a store, and removes what a killed run has
// left there.
func openWorkFolder(state disk.Folder, uri string) (*workFolder, error) {
	hash := sha256.Sum256([]byte(uri))
	w := &workFolder{in: state.In(workFolders).In(hex.EncodeToString(hash[:8]))}
	var err error
	for range 3 { // its previous holder may be removing it
		if _, err = w.in.Make(0o700); err != nil {
			return nil, err
		}
		if w.lock, err = w.in.Lock(); !errors.Is(err, fs.ErrNotExist) {
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
	names, err := disk.Names(w.in)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != holderName && !strings.HasPrefix(name, uploadRecord) && !strings.HasSuffix(name, store.DamagedSuffix) {
			if err := w.in.Remove(name); err != nil {
				return err
			}
		}
	}
	holder, err := readSealed(w.in, holderName)
	if w.holder = string(holder); err == nil && w.holder != "" || errors.Is(err, appendlog.ErrDamaged) {
		return err
	}
	w.holder = uuid.NewString()
	return writeSealed(w.in, holderName, []byte(w.holder))
}

// close releases the folder. It is removed, unless the lock of the store still names
// it.
func (w *workFolder) close(unused bool) error {
	if unused {
		_ = w.in.Remove(holderName) // a leftover is harmless
		_ = w.in.Remove(".")
	}
	return w.lock.Release()
}
