// Package largepages asks the system for large pages of memory. The processor finds a large
// page faster than the hundreds of small ones in its place.
package largepages

import "golang.org/x/sys/unix"

// Ask asks for large pages in some memory, which begins at a page. It is advice: without it,
// all is only slower.
func Ask(memory []byte) { _ = unix.Madvise(memory, unix.MADV_HUGEPAGE) }
