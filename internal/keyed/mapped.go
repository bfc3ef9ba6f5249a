package keyed

import (
	"os"
	"syscall"
	"unsafe"
)

// mapFile maps a whole file for reading. The memory stays readable after the file is closed,
// and after its name is removed. It is nil for an empty file.
func mapFile(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return nil, err
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	return data, nil
}

func unmap(data []byte) error {
	if data == nil {
		return nil
	}
	return syscall.Munmap(data)
}

// Fixed are the types of columns of fixed width, which have no pointers.
type Fixed interface {
	uint8 | uint16 | uint32 | uint64 | int64 | [16]byte | [8]uint64
}

// view returns memory as numbers in the byte order of this machine, without an incomplete last
// one. The memory must be aligned for T.
func view[T Fixed](memory []byte) []T {
	var one T
	n := len(memory) / int(unsafe.Sizeof(one))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), n)
}

// bytesOf is the inverse of view.
func bytesOf[T Fixed](column []T) []byte {
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(column))), len(column)*int(unsafe.Sizeof(one)))
}
