//go:build !linux

package appendlog

import "os"

// File is a file as Storage.
type File struct{ *os.File }
