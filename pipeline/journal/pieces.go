package journal

import (
	"errors"
	"io"
	"io/fs"
)

// pieceBytes is the size of all pieces but the last. What is kept in pieces may be larger
// than what should be in memory.
//
// The pieces of a list replace those of an attempt that was killed, which were the same. So
// another size, or another encoding, needs another name for the pieces.
const pieceBytes = 8 << 20

// pieceWriter puts what is written to it in pieces, which are numbered from 0.
type pieceWriter struct {
	put    func(piece int, data []byte) error
	pieces int
	data   []byte // of the next piece
}

func (w *pieceWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		if len(w.data) == pieceBytes {
			if err := w.flush(); err != nil {
				return n, err
			}
		}
		k := min(len(p), pieceBytes-len(w.data))
		w.data = append(w.data, p[:k]...)
		p, n = p[k:], n+k
	}
	return n, nil
}

// flush puts what is collected as the next piece.
func (w *pieceWriter) flush() error {
	if err := w.put(w.pieces, w.data); err != nil {
		return err
	}
	w.pieces, w.data = w.pieces+1, w.data[:0]
	return nil
}

// pieceReader reads what a pieceWriter has put.
type pieceReader struct {
	get  func(piece int) ([]byte, error)
	next int
	data []byte // that was not read yet
}

func (r *pieceReader) Read(p []byte) (int, error) {
	if len(r.data) == 0 {
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.data)
	r.data = r.data[n:]
	return n, nil
}

// fill gets the next piece; io.EOF after the last.
func (r *pieceReader) fill() (err error) {
	r.data, err = r.get(r.next)
	if errors.Is(err, fs.ErrNotExist) {
		return io.EOF
	}
	if err == nil {
		r.next++
	}
	return err
}
