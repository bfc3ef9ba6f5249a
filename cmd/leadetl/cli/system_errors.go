package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/leadetl/leadetl/internal/invisible"
)

// inSentences returns the text of an error with the system's words about paths
// replaced by sentences with a next step. Control characters, which names may hold,
// are escaped, except for the line ends between joined errors.
func inSentences(err error) string {
	var inner []error
	joined := false
	switch e := err.(type) {
	case *fs.PathError:
		if sentence := aboutPath(e); sentence != "" {
			return invisible.Escape(sentence)
		}
	case interface{ Unwrap() []error }:
		inner, joined = e.Unwrap(), true
	case interface{ Unwrap() error }:
		inner = []error{e.Unwrap()}
	}
	var b strings.Builder
	left := err.Error()
	for _, e := range inner {
		if e == nil {
			continue
		}
		before, after, found := strings.Cut(left, e.Error())
		if !found {
			continue // its text is not shown
		}
		if !joined || before != "\n" {
			before = invisible.Escape(before)
		}
		b.WriteString(before + inSentences(e))
		left = after
	}
	return b.String() + invisible.Escape(left)
}

// aboutPath returns a sentence about an error, or "" to keep the system's
// words.
func aboutPath(e *fs.PathError) string {
	path := finalName(e.Path)
	switch {
	case errors.Is(e.Err, fs.ErrNotExist):
		above := filepath.Dir(path)
		if _, err := os.Stat(above); err != nil {
			return fmt.Sprintf("there is no folder %s; make it, or name another", above)
		}
		if e.Op == "mkdir" {
			return fmt.Sprintf("the folder %s cannot be made there; name another", path)
		}
		return path + " does not exist; check its name"
	case errors.Is(e.Err, fs.ErrExist) && e.Op == "mkdir":
		return fmt.Sprintf("%s is a file, or a link to a folder that does not exist; remove it, or name another folder", path)
	case errors.Is(e.Err, syscall.ENOTDIR):
		return fmt.Sprintf("%s is a file; name a folder", firstFile(path))
	case errors.Is(e.Err, syscall.EISDIR):
		return fmt.Sprintf("%s is a folder; name a file in it", path)
	case errors.Is(e.Err, fs.ErrPermission):
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Sprintf("%s cannot be made: %s may not be written to; change its permissions, or name another place", path, filepath.Dir(path))
		}
		return fmt.Sprintf("%s: permission denied; check who may use it", path)
	case errors.Is(e.Err, syscall.EMFILE):
		return fmt.Sprintf("%s cannot be opened: this process has as many open files as it may; raise the limit (ulimit -n)", path)
	case errors.Is(e.Err, syscall.EROFS):
		return fmt.Sprintf("%s is on a file system that cannot be written to; name another place", path)
	}
	return ""
}

// finalName returns the name that a temporary file will get, which is the one
// users know.
func finalName(path string) string {
	name, unfinished := strings.CutSuffix(filepath.Base(path), ".tmp")
	if name, hidden := strings.CutPrefix(name, "."); unfinished && hidden {
		return filepath.Join(filepath.Dir(path), name)
	}
	return path
}

// firstFile returns the closest existing file at or above path, which cannot
// contain the rest of the path.
func firstFile(path string) string {
	for above := path; filepath.Dir(above) != above; above = filepath.Dir(above) {
		if info, err := os.Stat(above); err == nil && !info.IsDir() {
			return above
		}
	}
	return path
}
