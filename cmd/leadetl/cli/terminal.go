package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether somebody reads what is written, as it is written.
func IsTerminal(w io.Writer) bool {
	f := fileOf(w)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// Width returns the columns of a terminal, 0 if w is none.
func Width(w io.Writer) int {
	if f := fileOf(w); f != nil {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			return columns
		}
	}
	return 0
}

// fileOf returns the file behind a writer, nil if there is none.
func fileOf(w io.Writer) *os.File {
	switch w := w.(type) {
	case *os.File:
		return w
	case *Output:
		f, _ := w.to.(*os.File)
		return f
	}
	return nil
}
