package hashlanes

import (
	"bytes"
	"syscall"
	"testing"
)

// TestReadsInsideData lays messages against the end of readable memory: a
// kernel that reads further crashes.
func TestReadsInsideData(t *testing.T) {
	page := syscall.Getpagesize()
	memory, err := syscall.Mmap(-1, 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Munmap(memory); err != nil {
			t.Error(err)
		}
	}()
	if err := syscall.Mprotect(memory[page:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	forKernels(t, func(t *testing.T) {
		for length := range maxShort + 1 {
			for n := range 3 * lanes {
				data := memory[page-n*length : page : page]
				copy(data, bytes.Repeat([]byte("x"), len(data)))
				offsets := make([]int32, n+1)
				for i := range offsets {
					offsets[i] = int32(i * length)
				}
				compare(t, data, offsets)
			}
		}
	})
}
