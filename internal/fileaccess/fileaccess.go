//go:build unix

// Package fileaccess says who besides the process may use a file or folder.
package fileaccess

import (
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// Others returns the bits of perm (0 to 0o7) that someone other than the process
// has: all other users, and the file's group unless the process is in it.
//
// A mounted secret has mode 0440 and a mounted volume 2775, both with a group
// that the process was given.
func Others(info fs.FileInfo, perm fs.FileMode) fs.FileMode {
	mode := info.Mode().Perm()
	granted := mode & perm
	if !isOwnGroup(info) {
		granted |= mode >> 3 & perm
	}
	return granted
}

// IsOwn reports whether a file belongs to the user of the process.
func IsOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// isOwnGroup reports whether the process is in the file's group.
func isOwnGroup(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	if int(stat.Gid) == os.Getegid() {
		return true
	}
	groups, err := os.Getgroups()
	return err == nil && slices.Contains(groups, int(stat.Gid))
}
