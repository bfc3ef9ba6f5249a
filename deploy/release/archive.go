package main

import (
	"archive/tar"
	"compress/gzip"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// writeArchive writes the tar.gz, whose files lie in a folder of its name.
func (r *release) writeArchive(of program, p platform, files []file) (err error) {
	out, err := r.create(r.name(of, p, ".tar.gz"))
	if err != nil {
		return err
	}
	defer func() { err = closed(out, err) }()
	z := gzip.NewWriter(out)
	t := tarFile{tar.NewWriter(z), r.time}
	folder := r.name(of, p, "/")
	for _, name := range append([]string{folder}, foldersOf(files, folder)...) {
		if err := t.add(&tar.Header{Name: name, Mode: 0o755, Typeflag: tar.TypeDir}, nil); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := t.add(&tar.Header{Name: folder + f.path, Mode: int64(f.mode)}, f.data); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

// foldersOf returns the folders of the files, the outer ones first.
func foldersOf(files []file, below string) (folders []string) {
	for _, f := range files {
		for folder := path.Dir(f.path); folder != "."; folder = path.Dir(folder) {
			folders = append(folders, below+folder+"/")
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// tarFile writes entries that are all of one time and of root, if they name no other.
type tarFile struct {
	*tar.Writer
	time time.Time
}

func (t tarFile) add(h *tar.Header, data []byte) error {
	h.Size, h.ModTime, h.Format = int64(len(data)), t.time, tar.FormatPAX
	if !strings.HasSuffix(h.Name, "/") {
		h.Typeflag = tar.TypeReg
	}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err := t.Write(data)
	return err
}

// closed closes a file that was written, and returns the first error.
func closed(f *os.File, err error) error {
	if closing := f.Close(); err == nil {
		return closing
	}
	return err
}
