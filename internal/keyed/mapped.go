package keyed

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"unsafe"

	"github.com/leadetl/leadetl/internal/disk"
)

// load returns the content of a file. A file of the file system is mapped, any other is read.
func load(in disk.Folder, name string) (data []byte, mapped bool, err error) {
	f, err := in.Open(name)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	if file, is := f.(descriptor); is {
		data, err = mapFile(file)
		return data, true, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	data = bytesOf(make([]uint64, (info.Size()+7)/8))[:info.Size()] // aligned for numbers
	if n, err := f.ReadAt(data, 0); n < len(data) {
		return nil, false, fmt.Errorf("read %s: %w", in.Path(name), err)
	}
	return data, false, nil
}

// descriptor is an open file of the file system.
type descriptor interface {
	Stat() (fs.FileInfo, error)
	Fd() uintptr
	Name() string
}

// mapFile maps a whole file for reading. The memory stays readable after the file is closed,
// and after its name is removed. It is nil for an empty file.
func mapFile(f descriptor) ([]byte, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return nil, err
	}
	return mapBytes(f, int(info.Size()), syscall.PROT_READ)
}

// mapMemory maps the first bytes of a file for reading and writing.
func mapMemory(f descriptor, size int) ([]byte, error) {
	return mapBytes(f, size, syscall.PROT_READ|syscall.PROT_WRITE)
}

func mapBytes(f descriptor, size, access int) ([]byte, error) {
	data, err := syscall.Mmap(int(f.Fd()), 0, size, access, syscall.MAP_SHARED)
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
