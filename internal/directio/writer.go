// Package directio writes large new files past the page cache, where the system
// allows it: their bytes go from a buffer to the disk without a copy, and push
// nothing out of memory that will be read again.
//
// It is for the parts of a dataset, which a run writes and does not read. On a
// virtual machine with 2 cores, a file of 3 GB on ext4, with its fsync, took 6.9 s
// of processor time and 7.7 s in all through the page cache, and 1.9 s and 3.9 s
// past it in blocks of 1 MiB. email_to_hem of 10 M rows took 11.3 s of processor time
// through the page cache, and 8.7 s past it. Where the cache has free memory, there is
// little gain: 3 M rows took the same time.
package directio

import (
	"errors"
	"hash"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

const (
	// bufferBytes is the size of each of the two buffers of a large file. With 256 KiB
	// a file took a third more processor time, with 2 or 4 MiB not measurably less.
	bufferBytes = 1 << 20
	// smallBytes is the size of the one buffer of a small file.
	smallBytes = 64 << 10
	// alignment is what file systems ask of memory, offsets and lengths. One that
	// asks for more gets ordinary writes.
	alignment = 4 << 10
)

// Writer writes a new file through buffers, in one goroutine. Flush or Stop ends
// it. The caller closes the file.
//
// Nothing is durable before an fsync, also past the page cache: the size of the
// file is in memory then, and its bytes may be in the cache of the disk.
type Writer struct {
	file   *os.File
	sum    hash.Hash
	large  bool
	direct bool // the file is written past the page cache

	buffer []byte // being filled; nil before the first byte and after the end
	other  []byte // of a large file that filled one: being written, or free
	// writing has a goroutine while it writes a full buffer of a large file.
	writing sync.WaitGroup
	err     error // the first error; of that goroutine while it runs
}

// NewLarge returns a Writer for an empty file that may be large. Each full buffer
// is written and hashed in another goroutine, while the caller fills the other
// buffer. What does not fill a buffer, such as a whole small file, is written
// through the page cache. sum gets all bytes.
func NewLarge(file *os.File, sum hash.Hash) *Writer {
	return &Writer{file: file, sum: sum, large: true}
}

// NewSmall returns a Writer for an empty file that is small, or one of many. It
// takes little memory, and writes through the page cache. sum gets all bytes; it
// may be nil.
func NewSmall(file *os.File, sum hash.Hash) *Writer { return &Writer{file: file, sum: sum} }

// Write adds bytes to the file. An error of the file may be returned by a later
// call.
func (w *Writer) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if w.buffer == nil {
			w.buffer = w.newBuffer()
		}
		some := min(len(p)-n, cap(w.buffer)-len(w.buffer))
		w.buffer = append(w.buffer, p[n:n+some]...)
		n += some
		if len(w.buffer) == cap(w.buffer) {
			if err := w.pass(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// newBuffer returns an empty buffer with the alignment.
func (w *Writer) newBuffer() []byte {
	if !w.large {
		return make([]byte, 0, smallBytes)
	}
	memory := make([]byte, bufferBytes+alignment)
	start := -uintptr(unsafe.Pointer(&memory[0])) % alignment
	return memory[start : start : start+bufferBytes]
}

// pass has the full buffer written, and starts another one.
func (w *Writer) pass() error {
	if !w.large {
		w.write(w.buffer)
		w.buffer = w.buffer[:0]
		return w.err
	}
	if err := w.wait(); err != nil {
		return err
	}
	if w.other == nil {
		w.other, w.direct = w.newBuffer(), bypassCache(w.file, true) == nil
	}
	full := w.buffer
	w.buffer, w.other = w.other[:0], full
	w.writing.Go(func() { w.write(full) })
	return nil
}

// wait waits until nothing is being written.
func (w *Writer) wait() error {
	w.writing.Wait()
	return w.err
}

// write hashes and writes p. A write past the page cache may be refused with
// EINVAL: by a file system that takes no such writes or wants another alignment,
// or where the file cannot take all of p, so that the rest is not aligned. An
// ordinary write then works, or tells why it does not.
func (w *Writer) write(p []byte) {
	if w.sum != nil {
		w.sum.Write(p)
	}
	n, err := w.file.Write(p)
	if w.direct && errors.Is(err, syscall.EINVAL) {
		if err = w.useCache(); err == nil {
			_, err = w.file.Write(p[n:])
		}
	}
	w.err = err
}

// useCache has the rest of the file written through the page cache.
func (w *Writer) useCache() error {
	w.direct = false
	return bypassCache(w.file, false)
}

// Flush writes the rest of the file and frees the buffers.
func (w *Writer) Flush() error {
	rest := w.buffer
	w.Stop()
	if w.err == nil && w.direct {
		w.err = w.useCache()
	}
	if w.err == nil && len(rest) > 0 {
		w.write(rest)
	}
	return w.err
}

// Stop frees the buffers of a file that is not needed. When it returns, nothing is
// being written.
func (w *Writer) Stop() {
	w.writing.Wait()
	w.buffer, w.other = nil, nil
}
