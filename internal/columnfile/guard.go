package columnfile

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// ErrDamaged says that a file is not what was written.
var ErrDamaged = errors.New("the file is damaged")

// damage is the panic of a page with a wrong checksum.
type damage struct {
	sections []string
	from, to int64
}

func (d damage) Error() string {
	return fmt.Sprintf("bytes %d to %d (%s) have a wrong checksum", d.from, d.to, strings.Join(d.sections, ", "))
}

func setPanicOnFault() bool { return debug.SetPanicOnFault(true) }

// Guard is deferred around the use of mapped columns:
//
//	defer columnfile.Guard(&err, debug.SetPanicOnFault(true))
//
// A page with a wrong checksum, a number that points out of its column, or a
// page that the disk does not give, is then ErrDamaged and not the end of the
// process. before is what SetPanicOnFault was.
func Guard(err *error, before bool) {
	debug.SetPanicOnFault(before)
	switch p := recover().(type) {
	case nil:
	case damage:
		*err = fmt.Errorf("%w: %w", ErrDamaged, p)
	case runtime.Error:
		*err = fmt.Errorf("%w: %w", ErrDamaged, p)
	default:
		panic(p)
	}
}
