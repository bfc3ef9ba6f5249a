package wire

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"testing"
)

// TestReserveHeap: a reserve takes no memory, also where the heap was used before, and
// no collections.
func TestReserveHeap(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	t.Setenv("GOGC", "")
	used := make([]byte, 32<<20)
	for i := range used {
		used[i] = 1
	}
	runtime.KeepAlive(used)
	used = nil
	runtime.GC()
	runtime.GC()
	const reserve = 256 << 20
	before, collected := ownMemory(t), collections()
	release := ReserveHeap(reserve)
	after := ownMemory(t)
	if grown := after - before; grown > reserve/4 {
		t.Errorf("a reserve of %d bytes takes %d", reserve, grown)
	}
	if n := collections() - collected; n > 2 {
		t.Errorf("%d collections", n)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

// ownMemory is how many bytes of memory the process has that are not of files.
func ownMemory(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("RssAnon:"))
	var kB int
	if _, err := fmt.Sscan(string(rest), &kB); err != nil {
		t.Fatal(err)
	}
	return kB << 10
}

func collections() uint32 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.NumGC
}
