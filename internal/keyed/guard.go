package keyed

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"unsafe"
)

// ErrDamaged says that a file is damaged.
var ErrDamaged = errors.New("the file is damaged")

// ErrFull says that there are more rows, or distinct texts, than a file can have.
var ErrFull = errors.New("more than 2,147,483,647 rows or distinct texts")

// damage is the panic of a page with a wrong checksum.
type damage struct {
	path     string
	sections []string
	from, to int64
}

func (d damage) Error() string {
	return fmt.Sprintf("bytes %d to %d of %s (%s) have a wrong checksum", d.from, d.to, d.path, strings.Join(d.sections, ", "))
}

func setPanicOnFault() bool { return debug.SetPanicOnFault(true) }

// Defer Guard where mapped columns are read:
//
//	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
//
// These then become ErrDamaged instead of ending the process: a page with a
// wrong checksum, a number that points outside its column, and a page that the
// disk cannot read. An error of a Remote is returned as it is. before is the result of
// SetPanicOnFault.
func Guard(err *error, before bool) {
	debug.SetPanicOnFault(before)
	switch p := recover().(type) {
	case nil:
	case damage:
		*err = fmt.Errorf("%w: %w", ErrDamaged, p)
	case unread:
		*err = p.error
	case runtime.Error:
		*err = fmt.Errorf("%w: %w", ErrDamaged, p)
	default:
		panic(p)
	}
}

// Has reports whether an error of Guard is of a page of this file, where it is of a page at all.
func (f *Columns) Has(err error) bool {
	if page, is := errors.AsType[damage](err); is {
		return page.path == f.path
	}
	fault, is := errors.AsType[interface {
		error
		Addr() uintptr
	}](err)
	return is && len(f.data) > 0 && fault.Addr()-uintptr(unsafe.Pointer(&f.data[0])) < uintptr(len(f.data))
}

// GuardFaults is Guard for code that is given memory of a mapped file: what is not a page that
// the disk cannot read stays a panic.
func GuardFaults(err *error, before bool) {
	debug.SetPanicOnFault(before)
	switch p := recover().(type) {
	case nil:
	case interface{ Addr() uintptr }:
		*err = fmt.Errorf("%w: a page of it cannot be read", ErrDamaged)
	default:
		panic(p)
	}
}
