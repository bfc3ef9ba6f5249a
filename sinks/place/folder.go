package place

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/directio"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/hashlanes"
	"github.com/leadetl/leadetl/internal/lease"
)

// folder is a local folder.
type folder struct {
	dir  string
	in   disk.Folder
	made disk.Made
	lock lease.Lease // nil for a reader
	// below is held while folders are made or removed, so that none is removed
	// between its making and its first file.
	below   sync.Mutex
	durable map[string]bool // folders that are there also after a power cut
}

var _ Place = (*folder)(nil)

// openFolder makes the folder if it is missing, and locks it.
func openFolder(dir string, o Options) (*folder, error) {
	f, err := readFolder(dir, o)
	if err != nil {
		return nil, err
	}
	if f.made, err = f.in.Make(0o755); err != nil {
		return nil, err
	}
	f.lock, err = f.in.Lock()
	return f, err
}

// readFolder is openFolder for a reader, which makes and locks nothing.
func readFolder(dir string, o Options) (*folder, error) {
	if strings.Contains(dir, "://") {
		return nil, fmt.Errorf("%s: datasets are in local folders or on S3; name a folder or s3://bucket/prefix/", dir)
	}
	at := o.Disk
	if at == nil {
		at = disk.At
	}
	return &folder{dir: dir, in: at(dir), durable: map[string]bool{}}, nil
}

func (f *folder) Close() error {
	f.made.RemoveEmpty()
	if f.lock == nil {
		return nil
	}
	return f.lock.Release()
}

func (f *folder) URI() string             { return f.dir }
func (f *folder) Path(name string) string { return f.in.Path(name) }

func (f *folder) Files() (own, foreign []string, err error) {
	folders := append([]string{""}, HiddenFolders...)
	for i := 0; i < len(folders); i++ {
		folder := folders[i]
		entries, err := f.in.ReadDir(folder)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if len(entries) == 0 && i > len(HiddenFolders) {
			own = append(own, folder+"/")
		}
		for _, e := range entries {
			name := path.Join(folder, e.Name())
			switch {
			case slices.Contains(HiddenFolders, name) && e.IsDir():
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

// Walk lists the files of the folder and its subfolders, also links and pipes.
func (f *folder) Walk(ctx context.Context) (names []string, err error) {
	err = disk.Walk(f.in, ".", func(name string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || d.IsDir() {
			return err
		}
		names = append(names, name)
		return nil
	})
	return names, err
}

func (f *folder) Read(name string) ([]byte, error) {
	data, err := f.in.ReadFile(name)
	return data, noFolder(err)
}

// noFolder turns the error that a file is in the place of the folder into
// fs.ErrNotExist.
func noFolder(err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return err
}

func (f *folder) Write(name string, data []byte) error {
	return atomicfile.WriteIn(f.in, name, data)
}

func (f *folder) Remove(names ...string) error {
	folders := map[string]bool{}
	for _, name := range names {
		if err := f.in.Remove(name); err != nil && !isMissing(err) {
			return err
		}
		if folder := path.Dir(name); folder != "." {
			folders[folder] = true
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		if err := f.removeEmpty(folder); err != nil {
			return err
		}
	}
	return f.in.Sync()
}

// removeEmpty removes a folder if it is empty.
func (f *folder) removeEmpty(name string) error {
	f.below.Lock()
	defer f.below.Unlock()
	if err := f.in.Remove(name); err == nil || isMissing(err) {
		delete(f.durable, name)
		return nil
	}
	return f.in.In(name).Sync()
}

func (f *folder) Create(name string) (Unfinished, error) {
	folder, base := path.Split(name)
	folder = path.Clean(folder)
	if folder == "." {
		file, err := atomicfile.CreateIn(f.in, base, 0o644)
		if err != nil {
			return nil, err
		}
		return newFolderFile(file, directio.NewLarge), nil
	}
	f.below.Lock()
	defer f.below.Unlock()
	if err := f.makeFolder(folder); err != nil {
		return nil, err
	}
	file, err := atomicfile.CreateIn(f.in.In(folder), base, 0o644)
	if err != nil {
		return nil, err
	}
	u := newFolderFile(file, directio.NewSmall) // of many partitions, or of few rejects
	u.removeFolder = func() error { return f.removeEmpty(folder) }
	return u, nil
}

// makeFolder makes a folder if it is missing. On a disk that ignores case, it refuses a
// folder with another spelling, because two files would be one.
func (f *folder) makeFolder(name string) error {
	if f.durable[name] {
		return nil
	}
	made, err := f.in.In(name).Make(0o755)
	if err != nil {
		return err
	}
	if len(made) == 0 {
		names, err := disk.Names(f.in)
		if err != nil {
			return err
		}
		if !slices.Contains(names, name) {
			column, _, _ := strings.Cut(name, "=")
			return fmt.Errorf("%s: this disk ignores case, so two values of %s have one folder; write to another disk, or partition by another column", f.dir, column)
		}
	}
	f.durable[name] = true
	return nil
}

// folderFile is an unfinished file, in its folder.
type folderFile struct {
	*directio.Writer
	file         *atomicfile.File
	sum          hash.Hash    // nil leaves the checksum to Sum
	removeFolder func() error // removes the folder that was made for it, or nil
}

// newFolderFile takes the checksum of the file while it is written. Where Sum takes it
// faster, the file stays in the page cache until then.
func newFolderFile(file *atomicfile.File, newWriter func(io.WriterAt, hash.Hash) *directio.Writer) *folderFile {
	if sumTogether {
		return &folderFile{Writer: directio.NewSmall(file.File, nil), file: file}
	}
	sum := sha256.New()
	return &folderFile{Writer: newWriter(file.File, sum), file: file, sum: sum}
}

// sumTogether leaves checksums to Sum. Tests set it.
var sumTogether = hashlanes.FasterTogether()

func (f *folderFile) Commit() (File, error) {
	info, err := f.file.Stat()
	if err != nil {
		return File{}, errors.Join(err, f.file.Abort())
	}
	f.removeFolder = nil
	published := File{ModifiedAt: modified(info)}
	if f.sum != nil {
		published.SHA256 = hex.EncodeToString(f.sum.Sum(nil))
	}
	return published, f.file.Commit()
}

func (f *folderFile) Abort() error {
	f.Stop()
	err := f.file.Abort()
	if f.removeFolder != nil {
		err = errors.Join(err, f.removeFolder())
	}
	return err
}

func modified(info fs.FileInfo) time.Time { return info.ModTime().UTC() }

func (f *folder) Check(file File) error {
	info, err := f.in.Stat(file.Name)
	if isMissing(err) {
		return file.missing()
	}
	if err == nil {
		err = file.checkSize(info.Size())
	}
	if err != nil || modified(info).Equal(file.ModifiedAt) {
		return err
	}
	content, err := f.in.Open(file.Name)
	if err != nil {
		return err
	}
	defer content.Close()
	return file.checkSum(content)
}

func sha256Of(content io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, content); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// SumLanes is how many files Sum reads side by side at most.
const SumLanes = 8

// Sum reads several files side by side. On a CPU with vector instructions and without SHA
// instructions, that takes a third of the time or less (package hashlanes). Other CPUs
// need it only for files that were recorded without a checksum, by another CPU.
func (f *folder) Sum(ctx context.Context, files []*File) error {
	for some := range slices.Chunk(files, 2*SumLanes) { // parts and as many rejects
		if err := f.sumTogether(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func (f *folder) sumTogether(ctx context.Context, files []*File) error {
	opened, readers := make([]disk.File, len(files)), make([]io.Reader, len(files))
	for i, published := range files {
		file, err := f.in.Open(published.Name)
		if isMissing(err) {
			return published.missing()
		}
		if err != nil {
			return err
		}
		defer file.Close()
		opened[i], readers[i] = file, file
	}
	sums, err := hashlanes.SHA256Streams(ctx, readers)
	if err != nil {
		return fmt.Errorf("checksums of %s: %w", f.dir, err)
	}
	for i, published := range files {
		if err := published.isUnchanged(opened[i]); err != nil {
			return err
		}
		published.SHA256 = hex.EncodeToString(sums[i][:])
	}
	return nil
}

func (f *folder) Open(name string) (*OpenFile, error) {
	file, err := f.in.Open(name)
	if err != nil {
		return nil, noFolder(err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &OpenFile{file, file, info.Size()}, nil
}
