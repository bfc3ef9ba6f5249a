package directio

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// folders are where tests write: a disk, and a file system in memory, which on older
// systems has no writes past the page cache.
func folders(t *testing.T) map[string]string {
	all := map[string]string{"temporary folder": t.TempDir()}
	if dir, err := os.MkdirTemp("/dev/shm", "directio"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		all["memory"] = dir
	}
	return all
}

// content returns random bytes, the same ones each time.
func content(size int) []byte {
	p := make([]byte, size)
	rand.NewChaCha8([32]byte{}).Read(p)
	return p
}

// writeInPieces writes p in pieces of the given size.
func writeInPieces(w *Writer, p []byte, piece int) error {
	defer w.Stop()
	for len(p) > 0 {
		n := min(piece, len(p))
		if _, err := w.Write(p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return w.Flush()
}

func TestWriter(t *testing.T) {
	t.Parallel()
	for kind, newWriter := range map[string]func(file *os.File) (*Writer, func() []byte){
		"large": func(file *os.File) (*Writer, func() []byte) {
			h := sha256.New()
			return NewLarge(file, h), func() []byte { return h.Sum(nil) }
		},
		"small": func(file *os.File) (*Writer, func() []byte) {
			h := sha256.New()
			return NewSmall(file, h), func() []byte { return h.Sum(nil) }
		},
	} {
		for on, dir := range folders(t) {
			for _, size := range []int{
				0, 1, 511, 512, 513, alignment - 1, alignment, alignment + 1, smallBytes - 1, smallBytes, smallBytes + 1,
				bufferBytes - 1, bufferBytes, bufferBytes + 1, 2*bufferBytes - 1, 2 * bufferBytes, 2*bufferBytes + alignment, 3*bufferBytes + 17,
				buffers*bufferBytes - 1, buffers * bufferBytes, 2*buffers*bufferBytes + 17,
			} {
				for _, piece := range []int{100_000, 2 * buffers * bufferBytes} {
					name := fmt.Sprintf("%s, %d bytes in pieces of %d, %s", kind, size, piece, on)
					file, err := os.Create(filepath.Join(dir, "file"))
					if err != nil {
						t.Fatal(err)
					}
					w, sum := newWriter(file)
					want := content(size)
					if err := writeInPieces(w, want, piece); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					if err := file.Close(); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					if got, err := os.ReadFile(file.Name()); err != nil || !bytes.Equal(got, want) {
						t.Errorf("%s: other content, %v", name, err)
					}
					if hash := sha256.Sum256(want); !bytes.Equal(sum(), hash[:]) {
						t.Errorf("%s: the hash is %x, want %x", name, sum(), hash)
					}
				}
			}
		}
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	for on, dir := range folders(t) {
		for _, size := range []int{0, 1, bufferBytes, 3*bufferBytes + 17, 2 * buffers * bufferBytes} {
			file, err := os.Create(filepath.Join(dir, "file"))
			if err != nil {
				t.Fatal(err)
			}
			w := NewLarge(file, sha256.New())
			if _, err := w.Write(content(size)); err != nil {
				t.Fatal(err)
			}
			w.Stop()
			w.Stop()
			if w.buffer != nil || w.free != nil {
				t.Errorf("%s, %d bytes: it has buffers after Stop", on, size)
			}
			if err := errors.Join(file.Close(), os.Remove(file.Name())); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestFull writes to a disk that has no space at all, and takes no writes past the page
// cache.
func TestFull(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, bufferBytes, 2 * bufferBytes, 2*buffers*bufferBytes + 17} {
		file, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
		if err != nil {
			t.Skip(err)
		}
		w := NewLarge(file, sha256.New())
		err = writeInPieces(w, content(size), 256<<10)
		if want := "write /dev/full: no space left on device"; !errors.Is(err, syscall.ENOSPC) || err.Error() != want {
			t.Errorf("%d bytes: %v, want %s", size, err, want)
		}
		if again := w.Flush(); !errors.Is(again, syscall.ENOSPC) {
			t.Errorf("%d bytes: another Flush: %v", size, again)
		}
		w.Stop()
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}
