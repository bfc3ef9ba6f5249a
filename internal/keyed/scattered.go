package keyed

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A file that does not fit into memory is read from the disk again and again, at places far
// apart. For each of them the system would read as much as for a file that is read from front
// to back, up to megabytes, and throw out other pages for it. And each look-up would wait for
// its own read. So the system is told to read single pages, and which pages are needed next.

// scatter prepares for reads at scattered places if the file may not fit into memory. Any other
// file is read in large pages: look-ups in 1 GB of people then took a fifth less time.
func (f *Columns) scatter(free int64) {
	// A quarter is for the memory of the process itself.
	f.scattered = int64(len(f.data)) > free-free/4
	if f.scattered {
		f.advise(0, int64(len(f.data)), unix.MADV_RANDOM)
	} else {
		f.advise(0, int64(len(f.data)), inLargePages)
	}
}

// inOrder makes the system read ahead, until the function that it returns is called.
func (f *Columns) inOrder() (end func()) {
	if f == nil || !f.scattered {
		return func() {}
	}
	f.advise(0, int64(len(f.data)), unix.MADV_SEQUENTIAL)
	return func() { f.advise(0, int64(len(f.data)), unix.MADV_RANDOM) }
}

// advise says how a range will be read. It is advice: without it, all is only slower.
func (f *Columns) advise(from, to int64, advice int) {
	if f.mapped {
		_ = unix.Madvise(f.data[from:to], advice)
	}
}

// Expect says that Load will be called for places. If the file may not fit into memory, the
// disk then reads all of them at a time. A page that was never verified is read as a whole.
func (c *Checked[T]) Expect(places []uint64) {
	if f := c.file; f != nil && f.scattered {
		var one T
		f.expect(c.offset, int64(unsafe.Sizeof(one)), places)
	}
}

func (f *Columns) expect(offset, width int64, places []uint64) {
	if f.remote != nil {
		f.expectRemote(offset, width, places)
		return
	}
	last := int64(-1)
	for _, i := range places {
		at := min(offset+int64(i)*width, f.body-1)
		size := systemPage
		if !f.isChecked(at >> f.bits) {
			size = max(size, 1<<f.bits)
		}
		if from := at &^ (size - 1); from != last {
			last = from
			f.advise(from, min(from+size, int64(len(f.data))), unix.MADV_WILLNEED)
		}
	}
}

// expectRemote is expect for a file that is kept elsewhere.
func (f *Columns) expectRemote(offset, width int64, places []uint64) {
	var pages []int64
	for _, i := range places {
		at := min(offset+int64(i)*width, f.body-1)
		if page := at >> f.bits; !f.remote.isHere(page) {
			pages = append(pages, page)
		}
	}
	f.remote.expect(pages)
}

// systemPage is the size of a page of memory.
var systemPage = int64(os.Getpagesize())

// freeMemory is how many bytes of files the system can keep in memory for this process, as
// far as it says: what is available, or less where a control group is limited.
func freeMemory() int64 {
	free := int64(math.MaxInt64)
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		if _, rest, ok := bytes.Cut(b, []byte("MemAvailable:")); ok {
			var kB int64
			if _, err := fmt.Sscan(string(rest), &kB); err == nil {
				free = kB << 10
			}
		}
	}
	groups, _ := os.ReadFile("/proc/self/cgroup")
	return min(free, groupLimit("/sys/fs/cgroup", string(groups)))
}

// groupLimit is the lowest limit of memory of the control groups that /proc/self/cgroup
// lists, and those above them.
func groupLimit(mount, groups string) int64 {
	limit := int64(math.MaxInt64)
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		folder, name := mount, "memory.max"
		switch fields[1] {
		case "":
		case "memory":
			folder, name = mount+"/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// A container may see the path that its group has outside, and the group
		// itself at the top.
		for at := path.Join("/", fields[2]); ; at = path.Dir(at) {
			var n int64
			if b, err := os.ReadFile(path.Join(folder, at, name)); err == nil {
				if _, err := fmt.Sscan(string(b), &n); err == nil && n > 0 {
					limit = min(limit, n)
				}
			}
			if at == "/" {
				break
			}
		}
	}
	return limit
}
