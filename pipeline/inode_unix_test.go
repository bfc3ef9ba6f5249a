//go:build unix

package pipeline_test

import (
	"io/fs"
	"syscall"
)

// inode changes when a file is replaced by one with the same content.
func inode(info fs.FileInfo) any { return info.Sys().(*syscall.Stat_t).Ino }
