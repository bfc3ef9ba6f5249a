package objects

import (
	"io"
)

// A stream reads chunks of an object, some of them ahead of its user and side
// by side: one connection to S3 is slower than most machines. What is in
// memory is streamChunks of chunkSize.
const (
	chunkSize    = 4 << 20
	streamChunks = 4
)

// stream is an object read from its beginning to its end.
type stream struct {
	o       *Object
	next    int64            // where the next chunk to be asked for begins
	pending []<-chan fetched // asked for, in order
	free    [][]byte
	chunk   []byte // handed out in part
	buffer  []byte // that chunk is in
	err     error
}

type fetched struct {
	chunk []byte
	err   error
}

// Stream begins to read the object from its beginning, ahead of its user. It is
// used by one goroutine; the object's Close interrupts it, its own waits for
// what was asked for.
func (o *Object) Stream() io.ReadCloser {
	s := &stream{o: o}
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

// recycle gives the buffer of a chunk that is used up to one to come.
func (s *stream) recycle() {
	if s.buffer != nil {
		s.free = append(s.free, s.buffer[:cap(s.buffer)])
		s.buffer = nil
	}
}

// ask asks for chunks until enough are on their way.
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
		done := make(chan fetched, 1) // it does not wait for its reader
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

// Close waits for what is under way.
func (s *stream) Close() error {
	s.o.cancel()
	for _, p := range s.pending {
		<-p
	}
	s.pending, s.err = nil, io.ErrClosedPipe
	return nil
}
