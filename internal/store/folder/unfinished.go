package folder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"strings"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/directio"
	"github.com/leadetl/leadetl/internal/store"
)

// unfinished is an unfinished file, in its folder.
type unfinished struct {
	*directio.Writer
	folder    *Folder
	name      string
	file      *atomicfile.File
	sum       hash.Hash // nil leaves the checksum to others
	committed bool
}

// Begin is that of store.Store.
func (f *Folder) Begin(_ context.Context, name string) (store.Unfinished, error) {
	file, err := f.start(name)
	if err != nil {
		return nil, err
	}
	u := &unfinished{folder: f, name: name, file: file}
	switch {
	case f.SumLater: // the file stays in the page cache until then
		u.Writer = directio.NewSmall(file.File, nil)
	case f.Large && !strings.Contains(name, "/"):
		u.sum = sha256.New()
		u.Writer = directio.NewLarge(file.File, u.sum)
	default:
		u.sum = sha256.New()
		u.Writer = directio.NewSmall(file.File, u.sum)
	}
	return u, nil
}

// Commit is that of store.Unfinished.
func (u *unfinished) Commit() (store.File, error) {
	info, err := u.file.Stat()
	if err != nil {
		return store.File{}, errors.Join(err, u.file.Abort())
	}
	u.committed = true
	f := store.File{Name: u.name, Bytes: info.Size(), ModifiedAt: info.ModTime().UTC()}
	if u.sum != nil {
		f.SHA256 = hex.EncodeToString(u.sum.Sum(nil))
	}
	return f, u.file.Commit()
}

// Abort is that of store.Unfinished. It removes a folder that was made for the file.
func (u *unfinished) Abort() error {
	u.Stop()
	if u.committed {
		return nil
	}
	err := u.file.Abort()
	if in := folderOf(u.name); in != "" {
		_, tidied := u.folder.tidy(in)
		err = errors.Join(err, tidied)
	}
	return err
}
