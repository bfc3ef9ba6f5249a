package objects

import (
	"io"
)

// A stream reads chunks of an object, some of them ahead and concurrently,
// because one connection to S3 is slower than most machines. It holds at most
// streamChunks of chunkSize in memory.
const (
	chunkSize    = 4 << 20
	streamChunks = 4
)

// stream is an object read to its end.
type stream struct {
	o       *Object
	next    int64            // offset of the next chunk to request
	pending []<-chan fetched // requested, in order
	free    [][]byte
	chunk   []byte // partly returned by Read
	buffer  []byte // holds chunk
	err     error
}

type fetched struct {
	chunk []byte
	err   error
}

// Stream reads the object from its beginning, ahead of the caller. It is for one
// goroutine. The object's Close interrupts it. The stream's own Close waits for
// requests in flight.
func (o *Object) Stream() io.ReadCloser { return o.StreamFrom(0) }

// StreamFrom is Stream from an offset on.
func (o *Object) StreamFrom(offset int64) io.ReadCloser {
	s := &stream{o: o, next: offset}
	s.ask()
	return s
}

func (s *stream) Read(p []byte) (int, error) {
	for len(s.chunk) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.recycle()
		s.ask()
		if len(s.pending) == 0 {
			s.err = io.EOF
			continue
		}
		f := <-s.pending[0]
		s.pending = s.pending[1:]
		s.chunk, s.buffer, s.err = f.chunk, f.chunk, f.err
	}
	n := copy(p, s.chunk)
	s.chunk = s.chunk[n:]
	return n, nil
}

// recycle reuses the buffer of a finished chunk.
func (s *stream) recycle() {
	if s.buffer != nil {
		s.free = append(s.free, s.buffer[:cap(s.buffer)])
		s.buffer = nil
	}
}

// ask requests chunks until enough are in flight.
func (s *stream) ask() {
	for len(s.pending) < streamChunks-1 && s.next < s.o.Size {
		size := min(chunkSize, s.o.Size-s.next)
		var buffer []byte
		if n := len(s.free); n > 0 {
			buffer, s.free = s.free[n-1], s.free[:n-1]
		} else {
			buffer = make([]byte, size)
		}
		buffer = buffer[:min(size, int64(cap(buffer)))]
		if int64(len(buffer)) < size {
			buffer = make([]byte, size)
		}
		done := make(chan fetched, 1) // buffered, so that the sender does not wait
		from := s.next
		go func() {
			err := s.o.fill(buffer, from)
			if err != nil {
				buffer = nil
			}
			done <- fetched{buffer, err}
		}()
		s.pending = append(s.pending, done)
		s.next += size
	}
}

// Close waits for the requests in flight.
func (s *stream) Close() error {
	s.o.cancel()
	for _, p := range s.pending {
		<-p
	}
	s.pending, s.err = nil, io.ErrClosedPipe
	return nil
}
