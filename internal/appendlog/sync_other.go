//go:build !linux

package appendlog

import "os"

// File is an os.File that is a Storage.
type File struct{ *os.File }
