//go:build !linux

package directio

import (
	"errors"
	"os"
)

// bypassCache is for Linux alone.
func bypassCache(*os.File, bool) error { return errors.ErrUnsupported }
