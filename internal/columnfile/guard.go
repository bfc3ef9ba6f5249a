package columnfile

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// ErrDamaged says that a file is not what was written.
var ErrDamaged = errors.New("the file is damaged")

// Guard is deferred around the use of mapped columns:
//
//	defer columnfile.Guard(&err, debug.SetPanicOnFault(true))
//
// A number that points out of its column, or a page that the disk does not
// give, is then ErrDamaged and not the end of the process. before is what
// SetPanicOnFault was.
func Guard(err *error, before bool) {
	debug.SetPanicOnFault(before)
	switch p := recover().(type) {
	case nil:
	case runtime.Error:
		*err = fmt.Errorf("%w: %w", ErrDamaged, p)
	default:
		panic(p)
	}
}
