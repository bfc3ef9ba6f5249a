// Package readahead reads a stream in large blocks, one block ahead of its user.
// So it reads and unpacks while the user parses the previous block.
package readahead

import (
	"context"
	"io"
	"sync"
)

// Default sizes: a block is large compared with the cost of handing it over, and
// small enough that the blocks and a batch fit into a processor's second-level
// cache.
const (
	BlockSize = 512 << 10
	Headroom  = 64 << 10
)

// blocks is how many blocks there are: one being parsed, one ready, one being
// filled.
const blocks = 3

// Reader reads ahead in a goroutine of its own, which Close ends.
type Reader struct {
	full chan []byte   // filled blocks in stream order; closed at the stream's end
	free chan []byte   // buffers to fill
	quit chan struct{} // closed by Close
	once sync.Once
	done sync.WaitGroup
	head int
	err  error // why full was closed, nil at a clean end; read after full is closed
}

// New starts reading src in blocks of size bytes. Each block has head free bytes
// in front, for what the caller has left of the previous block.
func New(src io.Reader, size, head int) *Reader {
	r := &Reader{
		full: make(chan []byte, 1), // the one that is ready
		free: make(chan []byte, blocks),
		quit: make(chan struct{}),
		head: head,
	}
	for range blocks {
		r.free <- nil // allocated when first needed: most files are small
	}
	r.done.Go(func() { r.run(src, size) })
	return r
}

// Of reads one block, which the caller owns, without a goroutine.
func Of(block []byte) *Reader {
	r := &Reader{full: make(chan []byte, 1), quit: make(chan struct{})}
	if len(block) > 0 {
		r.full <- block
	}
	close(r.full)
	return r
}

func (r *Reader) run(src io.Reader, size int) {
	defer close(r.full)
	for {
		var buf []byte
		select {
		case buf = <-r.free:
		case <-r.quit:
			return
		}
		if buf == nil {
			buf = make([]byte, r.head+size)
		}
		n, err := fill(src, buf[r.head:r.head+size])
		if n > 0 {
			select {
			case r.full <- buf[:r.head+n]:
			case <-r.quit:
				return
			}
		}
		if err != nil {
			if err != io.EOF {
				r.err = err
			}
			return
		}
	}
}

// fill reads until p is full or src ends. Unlike io.ReadFull, it returns the
// stream's own error. io.ReadFull's io.ErrUnexpectedEOF would look like that of
// a decompressor for a truncated stream.
func fill(src io.Reader, p []byte) (n int, err error) {
	idle := 0
	for n < len(p) && err == nil {
		var m int
		m, err = src.Read(p[n:])
		n += m
		if idle++; m > 0 {
			idle = 0
		}
		if idle > 100 {
			err = io.ErrNoProgress
		}
	}
	return n, err
}

// Head is the number of free bytes in front of each block's data.
func (r *Reader) Head() int { return r.head }

// Next returns the next block. Its data begins after the head bytes given to
// New. The caller owns the buffer until it passes it to Recycle. At the end of
// the stream, Next returns io.EOF. An error of the stream is returned after all
// data read before it.
func (r *Reader) Next(ctx context.Context) ([]byte, error) {
	select {
	case b, ok := <-r.full:
		if ok {
			return b, nil
		}
		if r.err != nil {
			return nil, r.err
		}
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Recycle gives a buffer of Next back to be filled again.
func (r *Reader) Recycle(buf []byte) {
	select {
	case r.free <- buf[:cap(buf)]:
	default: // more buffers than blocks; leave it to the garbage collector
	}
}

// Stop ends the reading without waiting for a Read in progress.
func (r *Reader) Stop() { r.once.Do(func() { close(r.quit) }) }

// Close ends the reading and waits until src is no longer used.
func (r *Reader) Close() {
	r.Stop()
	r.done.Wait()
}
