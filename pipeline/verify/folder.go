package verify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Folder is a dataset in a local folder.
type Folder string

// List names the files of the folder and of those in it. What is no regular
// file, a link say, is listed as well.
func (f Folder) List(ctx context.Context) (names []string, err error) {
	err = filepath.WalkDir(string(f), func(path string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(string(f), path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	return names, err
}

// Open opens a file of the folder.
func (f Folder) Open(_ context.Context, name string) (File, error) {
	file, err := os.Open(filepath.Join(string(f), filepath.FromSlash(name)))
	if errors.Is(err, syscall.ENOTDIR) { // the folder is a file
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("no regular file")}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return localFile{file, info.Size()}, nil
}

type localFile struct {
	*os.File
	size int64
}

func (f localFile) Size() int64 { return f.size }
