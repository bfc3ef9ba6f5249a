//go:build !linux

package columnfile

import "golang.org/x/sys/unix"

// inLargePages asks for nothing: only Linux takes that advice.
const inLargePages = unix.MADV_NORMAL
