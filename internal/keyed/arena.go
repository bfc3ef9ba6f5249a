package keyed

import "unsafe"

// Arena is memory for texts that are freed together. The zero value is ready to use.
type Arena struct {
	free   []byte
	chunks [][]byte
	used   int // chunks
	taken  int // bytes
}

// Chunks grow, so that a record takes a small one and a batch few.
const minChunk, maxChunk = 512, 256 << 10

// Take returns n bytes. Their content is undefined.
func (a *Arena) Take(n int) []byte {
	if n > len(a.free) {
		a.grow(n)
	}
	a.taken += n
	b := a.free[:n:n]
	a.free = a.free[n:]
	return b
}

func (a *Arena) grow(n int) {
	if a.used == len(a.chunks) || len(a.chunks[a.used]) < n {
		a.chunks = append(a.chunks[:a.used], make([]byte, max(n, min(minChunk<<(2*a.used), maxChunk))))
	}
	a.free = a.chunks[a.used]
	a.used++
}

// Copy returns a copy of b.
func (a *Arena) Copy(b []byte) []byte {
	c := a.Take(len(b))
	copy(c, b)
	return c
}

// Text returns a copy of b.
func (a *Arena) Text(b []byte) string {
	c := a.Copy(b)
	return unsafe.String(unsafe.SliceData(c), len(c))
}

// Size is the number of taken bytes.
func (a *Arena) Size() int { return a.taken }

// Join returns the parts as one text.
func (a *Arena) Join(parts ...string) string {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b := a.Take(n)[:0]
	for _, p := range parts {
		b = append(b, p...)
	}
	return unsafe.String(unsafe.SliceData(b), n)
}

// Reset frees all memory for new use. Do not use what was taken before.
func (a *Arena) Reset() { a.free, a.used, a.taken = nil, 0, 0 }
