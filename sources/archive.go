package sources

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/leadetl/leadetl/internal/objects"
)

// What is read of a ZIP archive.
const (
	maxEntries      = 1000
	maxUnzipped     = 16 << 30 // bytes of all entries together
	maxZipDirectory = 4 << 20  // bytes that are read to list the entries
	maxZipRatio     = 200      // unpacked to packed bytes of an entry that is not small
	smallEntry      = 1 << 20
)

// isArchive reports whether an input is a ZIP archive, by its name.
func isArchive(uri string) bool { return strings.HasSuffix(strings.ToLower(uri), ".zip") }

// entryName is the URI of an entry.
func entryName(archive, entry string) string { return archive + "/" + entry }

// unzip replaces archives by their entries, in the order of their names.
func unzip(ctx context.Context, names []named, o Options) (all []named, err error) {
	for _, name := range names {
		if !isArchive(name.uri) {
			all = append(all, name)
			continue
		}
		entries, err := listArchive(ctx, name, o)
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
	}
	return all, nil
}

// listArchive lists the entries of an archive.
func listArchive(ctx context.Context, name named, o Options) (entries []named, err error) {
	archive := &input{File: File{URI: name.uri}}
	if objects.Is(name.uri) {
		archive.store, archive.object = o.Objects, name.object
		object, err := o.Objects.Open(ctx, name.object)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, archive.missingObject(o, err)
		}
		if err != nil {
			return nil, archive.blame(nil, err)
		}
		archive.object, archive.Size, archive.ModTime, archive.ETag = object.Info, object.Size, object.ModTime, strings.Trim(object.ETag, `"`)
		object.Close()
	} else {
		f, info, err := openFile(name.uri)
		if err != nil {
			return nil, err
		}
		f.Close()
		if !info.Mode().IsRegular() {
			return nil, archive.refuse("is not a file, and a ZIP archive is read from its end", "Save it to a file and name that")
		}
		archive.info, archive.Size, archive.ModTime = info, info.Size(), info.ModTime()
	}
	f, err := archive.openStored(ctx)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	files, err := archive.entries(f)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		entries = append(entries, named{uri: entryName(name.uri, file.Name), folder: name.folder, listed: true, archive: archive})
	}
	return entries, nil
}

// refuse returns the error for an archive that is not read.
func (in *input) refuse(problem, advice string) error {
	return &FormatError{File: in.URI, Problem: problem, Advice: advice}
}

// entries returns the files of an archive, sorted by name, and refuses one that is not safe to read.
// As in a folder, names that begin with _ or . are left out.
func (in *input) entries(f stored) (files []*zip.File, err error) {
	bounded := &boundedReaderAt{r: f, left: maxZipDirectory}
	z, err := zip.NewReader(bounded, in.Size)
	switch {
	case errors.Is(err, errDirectorySize):
		return nil, in.refuse("has too many entries", "Unzip it, and name the folder")
	case errors.Is(err, zip.ErrFormat), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return nil, in.refuse("is not a whole ZIP archive", "Download or copy it again")
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return nil, in.blame(f, err)
	}
	bounded.left = math.MaxInt64
	if len(z.File) > maxEntries {
		return nil, in.refuse(fmt.Sprintf("has %d entries, more than %d", len(z.File), maxEntries), "Unzip it, and name the folder")
	}
	unzipped := uint64(0)
	for _, file := range z.File {
		if file.FileInfo().IsDir() || slices.ContainsFunc(strings.Split(file.Name, "/"), isHidden) && fs.ValidPath(file.Name) {
			continue
		}
		if err := in.checkEntry(file); err != nil {
			return nil, err
		}
		if unzipped += min(file.UncompressedSize64, maxUnzipped+1); unzipped > maxUnzipped {
			return nil, in.refuse("has more than 16 GiB of text", "Unzip it, and name the folder")
		}
		files = append(files, file)
	}
	slices.SortFunc(files, func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(files); i++ {
		if files[i].Name == files[i-1].Name {
			return nil, in.refuse("has two entries of the same name: "+files[i].Name, "Get it again, or unzip it and name the lists")
		}
	}
	if len(files) == 0 {
		return nil, in.refuse("is a ZIP archive without files to read", "Names that begin with _ or . are not read")
	}
	return files, nil
}

// checkEntry refuses an entry that cannot be read, or that is made to do harm.
func (in *input) checkEntry(file *zip.File) error {
	const encrypted = 1 // Source: APPNOTE.TXT, general purpose bit flag
	switch name := file.Name; {
	case !fs.ValidPath(name) || strings.ContainsAny(name, `\:`) || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }):
		return in.refuse(fmt.Sprintf("has an entry with a name that is not allowed: %.100q", name), "Get it from its source again")
	case !file.Mode().IsRegular():
		return in.refuse("has an entry that is not a file: "+name, "Get it from its source again")
	case isArchive(name):
		return in.refuse("has another archive inside: "+name, "Unzip the outer one, and name the folder")
	case file.Flags&encrypted != 0:
		return in.refuse("has an encrypted entry: "+name, "Unzip it with its password, and name the folder")
	case file.Method != zip.Store && file.Method != zip.Deflate:
		return in.refuse("has an entry packed by a method that is not read: "+name, "Unzip it, and name the folder")
	case file.UncompressedSize64 > smallEntry && file.UncompressedSize64/maxZipRatio > file.CompressedSize64:
		return in.refuse(fmt.Sprintf("has an entry that unpacks to more than %d times its size: %s", maxZipRatio, name), "Unzip it if that is right, and name the folder")
	}
	return nil
}

var errDirectorySize = errors.New("the directory of an archive is too large")

// boundedReaderAt reads a number of bytes, and no more.
type boundedReaderAt struct {
	r    io.ReaderAt
	left int64
}

func (b *boundedReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errDirectorySize
	}
	return b.r.ReadAt(p, off)
}

// entry is a file in an archive, read from its start on.
type entry struct {
	stored // the archive
	file   *zip.File
}

// openEntry opens the entry of an archive that in is.
func (in *input) openEntry(ctx context.Context) (stored, error) {
	archive, err := in.archive.openStored(ctx)
	if err != nil {
		return nil, err
	}
	files, err := in.archive.entries(archive)
	if err != nil {
		return nil, errors.Join(err, archive.Close())
	}
	for _, file := range files {
		if entryName(in.archive.URI, file.Name) == in.URI {
			return &entry{archive, file}, nil
		}
	}
	return nil, errors.Join(in.archive.changed(), archive.Close())
}

func (e *entry) stream(from int64) (io.ReadCloser, error) {
	text, err := e.file.Open()
	if err != nil {
		return nil, err
	}
	if _, err := io.CopyN(io.Discard, text, from); err != nil {
		return nil, errors.Join(err, text.Close())
	}
	return text, nil
}

// inspectEntry inspects the start of an entry.
func (in *input) inspectEntry(ctx context.Context, o Options) error {
	f, err := in.openEntry(ctx)
	if err != nil {
		return err
	}
	defer f.Close()
	in.store, in.ModTime, in.ETag = in.archive.store, in.archive.ModTime, in.archive.ETag
	in.Size = int64(f.(*entry).file.UncompressedSize64)
	text, err := f.stream(0)
	if err != nil {
		return in.blame(f, err)
	}
	defer text.Close()
	return in.inspectPacked(f, text, o)
}
