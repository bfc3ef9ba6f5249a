package hashlanes

import (
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
)

// chunkBytes is how much of a stream is read and hashed at a time. From 16 KiB
// to 256 KiB the speed is the same within a few per cent; a small chunk leaves
// little for the end and is hashed, which nothing can interrupt, in 0.15 ms.
const chunkBytes = 32 << 10

// initial256 is the initial value of SHA-256. Source: FIPS 180-4, 5.3.3
var initial256 = [8]uint32{
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
}

// hasSHA says that crypto/sha256 uses SHA instructions. Tests set it.
var hasSHA = shaInstructions()

// SHA256Streams returns the SHA-256 of all that each reader yields, in the
// order of the readers, reading up to eight of them in turns, 32 KiB at a
// time. When one ends, the next takes its lane.
//
// It is for long streams of similar speed, files rather than sockets: each
// waits for the slowest. The end of a stream, and streams that are too few for
// a kernel, go through crypto/sha256. On a CPU with SHA instructions all streams
// do: there one stream is said to be as fast as eight lanes.
//
// It stops at the first error: that of a reader, with the reader's index, or
// that of the context, which it checks before every Read. It allocates 256 KiB,
// starts no goroutine, and closes no reader.
//
// Streams of 64 MiB in memory, on the CPU of the package comment, in MB/s all
// together (go test -bench Streams):
//
//	streams      1    2    3     8
//	crypto/*   348  348  348   347
//	AVX2       348  346  465  1145
//	AVX-512    345  597  858  1974
func SHA256Streams(ctx context.Context, readers []io.Reader) ([][sha256.Size]byte, error) {
	s := streams{readers: readers, sums: make([][sha256.Size]byte, len(readers))}
	if len(readers) > 0 {
		s.data = make([]byte, lanes*chunkBytes)
	}
	for {
		open := 0
		for l := range s.lane {
			if err := s.fill(ctx, l); err != nil {
				return nil, err
			}
			if s.lane[l].open {
				open++
			}
		}
		switch {
		case open == 0:
			return s.sums, nil
		case open >= worthwhile():
			s.advance()
		default:
			for l := range s.lane {
				if !s.lane[l].open {
					continue
				}
				if err := s.finish(ctx, l, chunkBytes, nil); err != nil {
					return nil, err
				}
			}
		}
	}
}

// worthwhile returns how many streams must be open for a kernel to be faster
// than crypto/sha256 on one after the other. Measured: lanes take one stream at
// 312 MB/s with AVX-512, two at 319 MB/s with AVX2, crypto/sha256 at 348.
func worthwhile() int {
	switch {
	case use == none || hasSHA:
		return lanes + 1
	case use == avx2:
		return 3
	}
	return 2
}

// FasterTogether reports whether SHA256Streams takes less time for several streams than
// crypto/sha256 for one after the other.
func FasterTogether() bool { return worthwhile() <= lanes }

// streams is a call of SHA256Streams.
type streams struct {
	readers []io.Reader
	sums    [][sha256.Size]byte
	next    int // the next reader that gets a lane

	lane  [lanes]lane
	state [8][lanes]uint32 // word i of every lane's hash at i
	data  []byte           // every lane's chunk at chunkBytes times the lane
}

// lane is the stream of a lane. A lane that is not open hashes its old chunk,
// and the result is not used.
type lane struct {
	open   bool
	reader int    // its index
	hashed uint64 // bytes in state
}

// chunk returns a lane's chunk.
func (s *streams) chunk(l int) []byte { return s.data[l*chunkBytes:][:chunkBytes] }

// fill reads the lane's next chunk. When its stream ends within the chunk, the
// next stream takes the lane; without another the lane is closed.
func (s *streams) fill(ctx context.Context, l int) error {
	for s.lane[l].open || s.begin(l) {
		n, err := s.read(ctx, l)
		if err != io.EOF {
			return err
		}
		if err := s.finish(ctx, l, n, io.EOF); err != nil {
			return err
		}
	}
	return nil
}

// begin gives the lane the next reader, if there is one.
func (s *streams) begin(l int) bool {
	if s.next == len(s.readers) {
		return false
	}
	s.lane[l] = lane{open: true, reader: s.next}
	s.next++
	for i, word := range initial256 {
		s.state[i][l] = word
	}
	return true
}

// read fills the lane's chunk, or returns io.EOF when the stream ended first. It
// does not use io.ReadFull: that reports the end of a stream as
// io.ErrUnexpectedEOF, which readers use for truncated streams.
func (s *streams) read(ctx context.Context, l int) (n int, err error) {
	chunk, reader := s.chunk(l), s.lane[l].reader
	for n < chunkBytes && err == nil {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		var m int
		m, err = s.readers[reader].Read(chunk[n:])
		n += m
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("stream %d: %w", reader, err)
	}
	return n, err
}

// advance hashes the chunks of all lanes.
func (s *streams) advance() {
	blocks(use, &s.state, &s.data[0], chunkBytes/sha256.BlockSize)
	for l := range s.lane {
		s.lane[l].hashed += chunkBytes
	}
}

// finish closes the lane: crypto/sha256 hashes n bytes of the chunk and, if err
// is nil, the rest of the stream. err is that of the chunk's read.
func (s *streams) finish(ctx context.Context, l, n int, err error) error {
	h, failed := s.resume(l)
	if failed != nil {
		return failed
	}
	h.Write(s.chunk(l)[:n])
	for err == nil {
		n, err = s.read(ctx, l)
		h.Write(s.chunk(l)[:n])
	}
	if err != io.EOF {
		return err
	}
	h.Sum(s.sums[s.lane[l].reader][:0])
	s.lane[l].open = false
	return nil
}

// resume returns the lane's hash as one of crypto/sha256. It goes through the
// saved form of such a hash, which package hash promises to keep readable.
func (s *streams) resume(l int) (hash.Hash, error) {
	saved := append(make([]byte, 0, 128), "sha\x03"...)
	for i := range s.state {
		saved = binary.BigEndian.AppendUint32(saved, s.state[i][l])
	}
	saved = append(saved, make([]byte, sha256.BlockSize)...) // no unfinished block
	saved = binary.BigEndian.AppendUint64(saved, s.lane[l].hashed)

	h := sha256.New()
	if err := h.(encoding.BinaryUnmarshaler).UnmarshalBinary(saved); err != nil {
		return nil, fmt.Errorf("hand over to crypto/sha256: %w", err)
	}
	return h, nil
}
