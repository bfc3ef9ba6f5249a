package rows

import (
	"errors"
	"fmt"
	"strings"
)

// ErrChanged means that a file changed while it was read. It is wrapped with the
// name of the file.
var ErrChanged = errors.New("file changed while it was read")

// FormatError says why an input cannot be read, and what to do. The cause is the
// input or its name, not the machine. It never contains a value of the file.
type FormatError struct {
	File    string // as the user named it
	Line    int64  // from 1; 0 for the whole file
	Problem string // continues a sentence that begins with File: "is empty"
	Advice  string // a sentence without its full stop, or ""
	Err     error  // the cause, whose text is not shown; may be nil
}

func (e *FormatError) Error() string {
	var b strings.Builder
	b.WriteString(Shown(e.File))
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

// Shown is the name of a file in texts for people, who need not know that "-"
// stands for standard input.
func Shown(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}
