package rows

import (
	"errors"
	"fmt"
	"strings"
)

// ErrChanged says that a file was not the same after reading as before.
// It comes wrapped with the file's name.
var ErrChanged = errors.New("file changed while it was read")

// FormatError says that an input cannot be read as it is, and what to do
// about it. It is a mistake in the input or in how it was named (usage), not
// of the machine, and never holds a value of the file.
type FormatError struct {
	File    string // as the user named it
	Line    int64  // 1-based physical line, 0 when it is about the whole file
	Problem string // continues the sentence that File begins: "is empty"
	Advice  string // a sentence without its full stop, empty when there is none
	Err     error  // the cause, nil when Problem says it all; its text is not shown
}

func (e *FormatError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	b.WriteByte(' ')
	b.WriteString(e.Problem)
	if e.Advice != "" {
		b.WriteString(". ")
		b.WriteString(e.Advice)
	}
	return b.String()
}

func (e *FormatError) Unwrap() error { return e.Err }
