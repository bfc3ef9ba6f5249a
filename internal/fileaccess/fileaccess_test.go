//go:build unix

package fileaccess_test

import (
	"io/fs"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/fileaccess"
)

// file is a file's mode and group.
type file struct {
	mode fs.FileMode
	gid  uint32
}

func (f file) Name() string       { return "file" }
func (f file) Size() int64        { return 0 }
func (f file) Mode() fs.FileMode  { return f.mode }
func (f file) ModTime() time.Time { return time.Time{} }
func (f file) IsDir() bool        { return false }
func (f file) Sys() any           { return &syscall.Stat_t{Gid: f.gid} }

func TestOthers(t *testing.T) {
	own, foreign := uint32(syscall.Getegid()), uint32(4_000_000_000)
	for _, c := range []struct {
		file       file
		perm, want fs.FileMode
	}{
		{file{0o600, own}, 0o7, 0},
		{file{0o440, own}, 0o4, 0},
		{file{0o440, foreign}, 0o4, 0o4},
		{file{0o444, own}, 0o4, 0o4},
		{file{0o404, foreign}, 0o4, 0o4},
		{file{fs.ModeDir | fs.ModeSetgid | 0o775, own}, 0o2, 0},
		{file{fs.ModeDir | fs.ModeSetgid | 0o775, foreign}, 0o2, 0o2},
		{file{fs.ModeDir | fs.ModeSticky | 0o777, own}, 0o2, 0o2},
		{file{fs.ModeDir | 0o755, foreign}, 0o2, 0},
	} {
		if got := fileaccess.Others(c.file, c.perm); got != c.want {
			t.Errorf("Others(%v of group %d, %o) = %o, want %o", c.file.mode, c.file.gid, c.perm, got, c.want)
		}
	}
}
