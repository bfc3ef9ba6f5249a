//go:build !linux

package disk

import "os"

// file is a File of the file system.
type file struct{ *os.File }
