package process

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// minMemory is the least limit: below, Go would collect garbage all the time.
	minMemory = 32 << 20
	// arena is how much address space Go reserves for its heap at a time.
	arena = 64 << 20
)

// limitMemory has Go collect garbage before the memory of the control group or the address space
// ends, unless GOMEMLIMIT is set. A tenth is left for what Go does not count.
func limitMemory() {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := min(groupLimit(os.DirFS("/")), addressLimit())
	if limit < math.MaxInt64 {
		debug.SetMemoryLimit(max(limit/10*9, minMemory))
	}
}

// addressLimit is how much Go's heap may take of the address space that ulimit -v leaves.
func addressLimit() int64 {
	var space unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &space) != nil || uint64(space.Cur) >= math.MaxInt64 {
		return math.MaxInt64
	}
	statm, err := os.ReadFile("/proc/self/statm")
	var pages int64
	if _, failed := fmt.Sscan(string(statm), &pages); err != nil || failed != nil {
		return math.MaxInt64
	}
	counted := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(counted)
	reserved := pages*int64(os.Getpagesize()) - int64(counted[0].Value.Uint64())
	return max(int64(space.Cur)-reserved-arena, 0)
}

// groupLimit is the least memory limit of the control groups of this process; math.MaxInt64
// without one. Sources: cgroups(7); Linux kernel, Control Group v2, Memory.
func groupLimit(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return least
	}
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		switch {
		case fields[1] == "": // version 2
			least = min(least, limitIn(root, "sys/fs/cgroup", fields[2], "memory.max", "memory.high"))
		case slices.Contains(strings.Split(fields[1], ","), "memory"):
			least = min(least, limitIn(root, "sys/fs/cgroup/memory", fields[2], "memory.limit_in_bytes"))
		}
	}
	return least
}

// limitIn is the least limit of a group and those above it. In a container the path may be that
// outside, and only the top is there.
func limitIn(root fs.FS, top, group string, files ...string) int64 {
	least := int64(math.MaxInt64)
	for group = path.Join("/", group); ; group = path.Dir(group) {
		for _, file := range files {
			text, err := fs.ReadFile(root, path.Join(top, group, file))
			if err != nil {
				continue
			}
			if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && n < unlimited {
				least = min(least, n)
			}
		}
		if group == "/" {
			return least
		}
	}
}

// unlimited is less than the number that version 1 has for no limit.
const unlimited = 1 << 60
