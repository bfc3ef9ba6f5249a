//go:build !linux

package keyed

import "golang.org/x/sys/unix"

// inLargePages asks for nothing: only Linux takes that advice.
const inLargePages = unix.MADV_NORMAL
