package wire

import (
	"os"
	"runtime/debug"
)

// How much the heap may grow before it is collected, in percent of what is in
// use.
const (
	// A run holds a few large buffers and makes little garbage, so collecting
	// early saves memory (3 M emails: 258 MB at 25, 291 at 40) and costs next to
	// no time (IP look-ups, which make the most: 3 % more CPU at 25 than at 40).
	RunGC = 40
	// A run against a service has one part in work, and makes garbage with every
	// call (60,000 calls: 6.6 s of processor time and 198 MB at 40, 5.6 s and 236
	// MB at 100).
	RemoteGC = 50
	// A service holds little and makes much: collecting late costs it some
	// tens of megabytes, and collecting early a tenth of its speed.
	ServeGC = 400
	// The second reader of verify boxes each value: at 40, collecting took half of
	// the time (1 M rows of enrichment: 15.7 s of processor time, 9.7 s at 400).
	// VerifyHeap bounds the memory.
	VerifyGC   = 400
	VerifyHeap = 340 << 20
)

// SetGC sets how late garbage is collected, unless GOGC says.
func SetGC(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// SetHeap sets the bytes from which on garbage is collected earlier, unless
// GOMEMLIMIT says.
func SetHeap(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
}
