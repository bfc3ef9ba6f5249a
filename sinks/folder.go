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
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/hashlanes"
)

// folder is a local folder.
type folder struct {
	dir  string
	made atomicfile.NewFolders
	lock *filelock.Lock // nil for a reader
	// below is held while a folder in it comes or goes, so that none goes
	// between its making and its first file.
	below sync.Mutex
}

var _ place = (*folder)(nil)

// openFolder makes the folder if need be and takes hold of it.
func openFolder(dir string) (*folder, error) {
	if strings.Contains(dir, "://") {
		return nil, fmt.Errorf("%s: no place for a dataset; name a local folder or s3://bucket/prefix/", dir)
	}
	made, err := atomicfile.MakeFolders(dir, 0o755)
	if err != nil {
		return nil, err
	}
	lock, err := filelock.Folder(dir)
	if err != nil {
		return nil, err
	}
	return &folder{dir: dir, made: made, lock: lock}, nil
}

func (f *folder) close() error {
	f.made.RemoveEmpty()
	if f.lock == nil {
		return nil
	}
	return f.lock.Close()
}

func (f *folder) uri() string             { return f.dir }
func (f *folder) path(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

func (f *folder) files() (own, foreign []string, err error) {
	folders := []string{"", rejectsFolder}
	for i := 0; i < len(folders); i++ {
		folder := folders[i]
		entries, err := os.ReadDir(filepath.Join(f.dir, folder))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if len(entries) == 0 && i > 1 {
			own = append(own, folder+"/")
		}
		for _, e := range entries {
			name := path.Join(folder, e.Name())
			switch {
			case name == rejectsFolder && e.IsDir():
			case folder == "" && e.IsDir() && partitionFolder.MatchString(name):
				folders = append(folders, name)
			case e.Type().IsRegular() && isDatasetFile(folder, e.Name()):
				own = append(own, name)
			default:
				foreign = append(foreign, name)
			}
		}
	}
	return own, foreign, nil
}

func (f *folder) read(name string) ([]byte, error) { return os.ReadFile(f.path(name)) }

func (f *folder) write(name string, data []byte) error { return atomicfile.Write(f.path(name), data) }

func (f *folder) remove(names ...string) error {
	folders := map[string]bool{}
	for _, name := range names {
		if err := os.Remove(f.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if folder := path.Dir(name); folder != "." {
			folders[folder] = true
		}
	}
	for _, folder := range sortedKeys(folders) {
		if err := f.removeEmpty(folder); err != nil {
			return err
		}
	}
	return atomicfile.SyncDir(f.dir)
}

// removeEmpty removes a folder when nothing is left in it.
func (f *folder) removeEmpty(name string) error {
	f.below.Lock()
	defer f.below.Unlock()
	dir := f.path(name)
	if err := os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return atomicfile.SyncDir(dir)
}

func (f *folder) create(name string) (construction, error) {
	folder := path.Dir(name)
	if folder == "." {
		file, err := atomicfile.Create(f.path(name))
		if err != nil {
			return nil, err
		}
		return &folderFile{File: file}, nil
	}
	f.below.Lock()
	defer f.below.Unlock()
	if err := f.makeFolder(folder); err != nil {
		return nil, err
	}
	file, err := atomicfile.Create(f.path(name))
	if err != nil {
		return nil, err
	}
	return &folderFile{file, func() error { return f.removeEmpty(folder) }}, nil
}

// makeFolder makes a folder, unless it is there. One that is there under another
// name, on a disk that ignores case, is refused: two files would be one.
func (f *folder) makeFolder(name string) error {
	err := os.Mkdir(f.path(name), 0o755)
	if err == nil {
		return atomicfile.SyncDir(f.dir)
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	entries, err := os.ReadDir(f.dir)
	if err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name }) {
		column, _, _ := strings.Cut(name, "=")
		return fmt.Errorf("%s: this disk takes two values of %s for one folder, because it ignores case; write to another disk, or part by another column", f.dir, column)
	}
	return err
}

// folderFile is a file under construction at the place where it will be.
type folderFile struct {
	*atomicfile.File
	leave func() error // removes the folder that was made for it; may be nil
}

func (f *folderFile) commit() (stored, error) {
	info, err := f.Stat()
	if err != nil {
		return stored{}, errors.Join(err, f.Abort())
	}
	f.leave = nil
	return stored{modifiedAt: modified(info)}, f.Commit()
}

func (f *folderFile) abort() error {
	err := f.Abort()
	if f.leave != nil {
		err = errors.Join(err, f.leave())
	}
	return err
}

func modified(info os.FileInfo) time.Time { return info.ModTime().UTC() }

func (f *folder) check(file File) error {
	path := f.path(file.Name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is missing: %w", file.Name, ErrCorrupt)
	}
	if err != nil {
		return err
	}
	if info.Size() != file.Bytes {
		return fmt.Errorf("%s has %d bytes, not %d: %w", file.Name, info.Size(), file.Bytes, ErrCorrupt)
	}
	if modified(info).Equal(file.ModifiedAt) {
		return nil
	}
	sum, err := fileSHA256(path)
	if err != nil {
		return err
	}
	if sum != file.SHA256 {
		return fmt.Errorf("%s has another checksum: %w", file.Name, ErrCorrupt)
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

// sum reads the files back side by side: together they cost a third of what
// they cost one by one on a CPU without SHA instructions (package hashlanes).
func (f *folder) sum(ctx context.Context, files []*File) error {
	for some := range slices.Chunk(files, 2*SumLanes) { // parts and as many rejects
		if err := f.sumTogether(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func (f *folder) sumTogether(ctx context.Context, files []*File) error {
	readers := make([]io.Reader, len(files))
	for i, published := range files {
		file, err := os.Open(f.path(published.Name))
		if err != nil {
			return err
		}
		defer file.Close()
		readers[i] = file
	}
	sums, err := hashlanes.SHA256Streams(ctx, readers)
	if err != nil {
		return fmt.Errorf("checksums of %s: %w", f.dir, err)
	}
	for i, published := range files {
		published.SHA256 = hex.EncodeToString(sums[i][:])
	}
	return nil
}

func (f *folder) open(name string) (*OpenFile, error) {
	file, err := os.Open(f.path(name))
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &OpenFile{file, info.Size(), file.Close}, nil
}
