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
	"io"
	"sync"
	"syscall"
	"unsafe"
)

const (
	// bufferBytes is the size of each buffer of a large file. With 256 KiB a file took a
	// third more processor time, with 2 or 4 MiB not measurably less.
	bufferBytes = 1 << 20
	// buffers is how many of them there are: one being filled, one ready, one being hashed
	// and one being written. With two, one being filled and the other hashed and then
	// written, email_to_hem of 10 M rows took 4% longer, and network_to_hem 10%.
	buffers = 4
	// smallBytes is the size of the one buffer of a small file.
	smallBytes = 64 << 10
	// alignment is what file systems ask of memory, offsets and lengths. One that
	// asks for more gets ordinary writes.
	alignment = 4 << 10
)

// Writer writes a new file through buffers. One goroutine calls it. Flush or Stop ends
// it. The caller closes the file. A file without a descriptor is written as it allows.
//
// Nothing is durable before an fsync, also past the page cache: the size of the
// file is in memory then, and its bytes may be in the cache of the disk.
type Writer struct {
	file   io.WriterAt
	at     int64 // where the next buffer is written
	sum    hash.Hash
	large  bool
	direct bool // the file is written past the page cache

	buffer []byte // being filled; nil without one

	// A large file that filled a buffer has two goroutines, which pass it on and give it back:
	full    chan []byte // to be hashed, and then written; closed by Stop
	free    chan []byte // to be filled; a nil one was never needed
	working sync.WaitGroup

	failing sync.Mutex
	err     error // the first error
}

// NewLarge returns a Writer for an empty file that may be large. While the caller fills
// a buffer, others are hashed and written. What does not fill a buffer, such as a whole
// small file, is written through the page cache. sum gets all bytes.
func NewLarge(file io.WriterAt, sum hash.Hash) *Writer {
	return &Writer{file: file, sum: sum, large: true}
}

// NewSmall returns a Writer for an empty file that is small, or one of many. It
// takes little memory, and writes through the page cache. sum gets all bytes; it
// may be nil.
func NewSmall(file io.WriterAt, sum hash.Hash) *Writer { return &Writer{file: file, sum: sum} }

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

// pass has the full buffer written, and takes another one.
func (w *Writer) pass() error {
	if !w.large {
		w.write(w.buffer)
		w.buffer = w.buffer[:0]
		return w.failed()
	}
	if w.full == nil {
		w.start()
	}
	w.full <- w.buffer
	w.buffer = <-w.free
	return w.failed()
}

// start starts the goroutines of a large file.
func (w *Writer) start() {
	w.direct = bypassCache(w.file, true) == nil
	w.full, w.free = make(chan []byte, 1), make(chan []byte, buffers)
	for range buffers - 1 {
		w.free <- nil
	}
	hashed := make(chan []byte)
	w.working.Go(func() {
		defer close(hashed)
		for p := range w.full {
			w.hash(p)
			hashed <- p
		}
	})
	w.working.Go(func() {
		for p := range hashed {
			w.writeHashed(p)
			w.free <- p[:0]
		}
	})
}

// write hashes and writes p.
func (w *Writer) write(p []byte) {
	w.hash(p)
	w.writeHashed(p)
}

func (w *Writer) hash(p []byte) {
	if w.sum != nil {
		w.sum.Write(p)
	}
}

// writeHashed writes p, unless a write failed before. A write past the page cache may be
// refused with EINVAL: by a file system that takes no such writes or wants another
// alignment, or where the file cannot take all of p, so that the rest is not aligned. An
// ordinary write then works, or tells why it does not.
func (w *Writer) writeHashed(p []byte) {
	if w.failed() != nil {
		return
	}
	n, err := w.file.WriteAt(p, w.at)
	if w.direct && errors.Is(err, syscall.EINVAL) {
		if err = w.useCache(); err == nil {
			_, err = w.file.WriteAt(p[n:], w.at+int64(n))
		}
	}
	w.at += int64(len(p))
	w.fail(err)
}

func (w *Writer) failed() error {
	w.failing.Lock()
	defer w.failing.Unlock()
	return w.err
}

func (w *Writer) fail(err error) {
	w.failing.Lock()
	defer w.failing.Unlock()
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
	if w.failed() == nil && w.direct {
		w.fail(w.useCache())
	}
	if len(rest) > 0 {
		w.write(rest)
	}
	return w.failed()
}

// Stop frees the buffers of a file that is not needed. When it returns, nothing is
// being written.
func (w *Writer) Stop() {
	if w.full != nil {
		close(w.full)
	}
	w.working.Wait()
	w.buffer, w.full, w.free = nil, nil, nil
}
