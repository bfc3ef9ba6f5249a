package wire

import (
	"os"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/leadetl/leadetl/internal/firstgc"
)

// How much the heap may grow before a garbage collection, in percent of the
// live heap.
const (
	// A run holds a few large buffers and makes little garbage. Collecting
	// early saves memory (3 M emails: 258 MB at 25, 291 at 40) and costs almost
	// no time (IP look-ups, which make the most garbage: 3 % more CPU at 25
	// than at 40).
	RunGC = 40
	// A run with a directory has LookupGC in place of RunGC, and LookupReserve counts
	// as live heap. Garbage then takes at most about 60 MB, whether little is live, so
	// that every few megabytes of it would end in a collection, or much.
	LookupGC      = 11
	LookupReserve = 256 << 20
	// A run against a service makes garbage with every call (60,000 calls: 6.6 s of
	// processor time and 198 MB at 40, 5.6 s and 236 MB at 100).
	RemoteGC = 50
	// A service holds little memory and makes much garbage. Collecting late
	// costs some tens of megabytes; collecting early costs a tenth of its
	// speed.
	ServeGC = 400
	// Verify unpacks pages for two readers. Collecting late saves a third of
	// its processor time (600,000 rows of enrichment: 2.8 s at 50, 2.0 s at
	// 400). VerifyHeap bounds the memory. Less makes datasets with large row
	// groups slow (2 M emails: 3.1 s, and 4.9 s at 256 MiB).
	VerifyGC   = 400
	VerifyHeap = 340 << 20
)

// SetGC sets the growth before a garbage collection after the first one, unless GOGC is set.
func SetGC(percent int) {
	if os.Getenv("GOGC") == "" {
		firstgc.Then(func() { debug.SetGCPercent(percent) })
	}
}

// ReserveHeap lets the heap grow as if so many more bytes of it were live, until
// release, unless GOGC is set. The system provides no memory for them. Call SetGC after it.
func ReserveHeap(bytes int) (release func() error) {
	// Go counts a reserve as memory in use, so a limit must leave room for it.
	bytes = int(min(int64(bytes), debug.SetMemoryLimit(-1)/8))
	var reserve [][]byte
	if os.Getenv("GOGC") == "" {
		// Every few pieces would end in a collection: 0.3 s of processor time in all.
		percent := debug.SetGCPercent(-1)
		for range bytes / reservePiece {
			piece := make([]byte, reservePiece)
			// Where the heap was used before, make writes zeros, for which the system
			// provides memory. It may have it back.
			_ = unix.Madvise(piece, unix.MADV_DONTNEED)
			reserve = append(reserve, piece)
		}
		if !firstgc.Done() {
			percent = 150 + 100*bytes/firstgc.Reserve // the first collection is after the reserve, and some more
		}
		debug.SetGCPercent(percent)
	}
	return func() error {
		runtime.KeepAlive(reserve)
		return nil
	}
}

// reservePiece is how many bytes of a reserve may take memory for a moment.
const reservePiece = 4 << 20

// SetHeap sets the heap size above which garbage is collected more often, unless there is a lower
// limit already or GOMEMLIMIT is set.
func SetHeap(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(min(bytes, debug.SetMemoryLimit(-1)))
	}
}
