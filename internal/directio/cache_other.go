//go:build !linux

package directio

import (
	"errors"
	"io"
)

// bypassCache is for Linux alone.
func bypassCache(io.WriterAt, bool) error { return errors.ErrUnsupported }
