package hashlanes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

// forStreams is forKernels, SHA instructions or not.
func forStreams(t *testing.T, test func(t *testing.T)) {
	defer func(has bool) { hasSHA = has }(hasSHA)
	hasSHA = false
	forKernels(t, test)
	if shaInstructions() {
		hasSHA = true
		t.Run("sha", test)
	}
}

// noise returns n bytes in which no two blocks are alike.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

// compareStreams checks SHA256Streams against crypto/sha256.
func compareStreams(t *testing.T, wrap func(io.Reader) io.Reader, contents ...[]byte) {
	t.Helper()
	readers := make([]io.Reader, len(contents))
	for i, c := range contents {
		readers[i] = wrap(bytes.NewReader(c))
	}
	sums, err := SHA256Streams(t.Context(), readers)
	if err != nil || len(sums) != len(contents) {
		t.Fatalf("%d sums of %d streams, error %v", len(sums), len(contents), err)
	}
	for i, c := range contents {
		if want := sha256.Sum256(c); sums[i] != want {
			t.Errorf("stream %d of %d, %d bytes: %x, want %x", i, len(contents), len(c), sums[i], want)
		}
	}
}

func whole(r io.Reader) io.Reader { return r }

// borders are lengths around those of a block, its padding and a chunk.
var borders = []int{
	0, 1, 55, 56, 63, 64, 65, 128,
	chunkBytes - 64, chunkBytes - 1, chunkBytes, chunkBytes + 1, chunkBytes + 55, chunkBytes + 56, chunkBytes + 64,
	2*chunkBytes - 1, 2 * chunkBytes, 2*chunkBytes + 1, 3*chunkBytes + 77,
}

// TestStreamsOfOneLength has every lane end in the same turn.
func TestStreamsOfOneLength(t *testing.T) {
	data := noise(4*chunkBytes + lanes)
	forStreams(t, func(t *testing.T) {
		for _, n := range borders {
			var contents [][]byte
			for i := range lanes {
				contents = append(contents, data[i:i+n])
			}
			compareStreams(t, whole, contents...)
		}
	})
}

// TestStreamsSideBySide has every length beside others, in every lane: their
// number is odd.
func TestStreamsSideBySide(t *testing.T) {
	data := noise(4*chunkBytes + lanes*len(borders))
	var contents [][]byte
	for i := range lanes * len(borders) {
		contents = append(contents, data[i:i+borders[i%len(borders)]])
	}
	forStreams(t, func(t *testing.T) { compareStreams(t, whole, contents...) })
}

func TestStreamsOfEveryNumber(t *testing.T) {
	data := noise(6 * chunkBytes)
	forStreams(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(3, 4))
		for n := range 21 {
			contents := make([][]byte, n)
			for i := range contents {
				from, to := random.IntN(len(data)), random.IntN(len(data))
				contents[i] = data[min(from, to):max(from, to)]
			}
			compareStreams(t, whole, contents...)
		}
	})
}

func TestStreamsInShortReads(t *testing.T) {
	data := noise(2*chunkBytes + 100)
	contents := [][]byte{data, data[1:], data[:chunkBytes], data[:2*chunkBytes], {}, data[7:80]}
	forStreams(t, func(t *testing.T) {
		for _, c := range []struct {
			name string
			wrap func(io.Reader) io.Reader
		}{
			{"one byte", iotest.OneByteReader},
			{"half", iotest.HalfReader},
			{"end with the data", iotest.DataErrReader},
			{"nothing now and then", func(r io.Reader) io.Reader { return &halting{r: r} }},
		} {
			t.Run(c.name, func(t *testing.T) { compareStreams(t, c.wrap, contents...) })
		}
	})
}

// halting yields nothing every second time.
type halting struct {
	r   io.Reader
	odd bool
}

func (h *halting) Read(p []byte) (int, error) {
	if h.odd = !h.odd; h.odd {
		return 0, nil
	}
	return h.r.Read(p)
}

func TestStreamsErrors(t *testing.T) {
	data := noise(2 * chunkBytes)
	broken := errors.New("broken")
	after := func(n int, err error) io.Reader {
		return io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(err))
	}
	forStreams(t, func(t *testing.T) {
		for _, c := range []struct {
			name   string
			reader io.Reader
			want   error
		}{
			{"at once", after(0, broken), broken},
			{"within a chunk", after(100, broken), broken},
			{"after a chunk", after(chunkBytes, broken), broken},
			{"with a chunk's end", iotest.DataErrReader(after(chunkBytes, broken)), broken},
			{"the last one open", after(2*chunkBytes, broken), broken},
			{"cut off, which is no end", after(100, io.ErrUnexpectedEOF), io.ErrUnexpectedEOF},
		} {
			for beside := range 3 {
				readers := []io.Reader{strings.NewReader("short")}
				for range beside {
					readers = append(readers, bytes.NewReader(data[:chunkBytes+1]))
				}
				sums, err := SHA256Streams(t.Context(), append(readers, c.reader))
				prefix := "stream " + string(rune('0'+len(readers))) + ": "
				if sums != nil || !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), prefix) {
					t.Errorf("%s, %d beside: %v, want %s%v", c.name, beside, err, prefix, c.want)
				}
			}
		}
	})
}

// TestStreamsCancelled cancels while endless streams are read.
func TestStreamsCancelled(t *testing.T) {
	forStreams(t, func(t *testing.T) {
		for _, n := range []int{1, 2, 3, lanes, lanes + 1} {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			readers := make([]io.Reader, n)
			for i := range readers {
				readers[i] = &endless{chunks: 5, then: cancel}
			}
			if sums, err := SHA256Streams(ctx, readers); sums != nil || err != context.Canceled {
				t.Errorf("%d streams: error %v, want %v", n, err, context.Canceled)
			}
		}
	})
}

// endless yields zeros, and calls then after some chunks.
type endless struct {
	chunks int
	then   func()
}

func (e *endless) Read(p []byte) (int, error) {
	if e.chunks--; e.chunks == 0 {
		e.then()
	}
	clear(p)
	return len(p), nil
}

// FuzzStreams cuts data into streams at the lengths in cuts, in units large
// enough to fill chunks, and compares with crypto/sha256.
func FuzzStreams(f *testing.F) {
	f.Add([]byte("abc"), []byte{0, 1, 2, 3})
	f.Add([]byte("jane@example.com"), []byte{255, 254, 253, 252, 251, 250, 249, 248, 247})
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, unit, cuts []byte) {
		cuts = cuts[:min(len(cuts), 3*lanes)]
		data := bytes.Repeat(append([]byte{1, 2, 3}, unit...), 3*chunkBytes/(len(unit)+3)+1)
		contents := make([][]byte, len(cuts))
		for i, c := range cuts {
			contents[i] = data[i:max(i, len(data)*int(c)/255)]
		}
		defer func(k kernel, has bool) { use, hasSHA = k, has }(use, hasSHA)
		hasSHA = false
		for use = none; use <= best(); use++ {
			compareStreams(t, whole, contents...)
		}
	})
}
