package cli

import (
	"fmt"
	"io"
	"os"
)

// Output is a standard output that remembers whether it failed: no command
// that could not say what it had to say has succeeded.
type Output struct {
	to     io.Writer
	failed error
}

// NewOutput returns an Output that writes to to.
func NewOutput(to io.Writer) *Output { return &Output{to: to} }

func (o *Output) Write(p []byte) (n int, err error) {
	if n, err = o.to.Write(p); err != nil && o.failed == nil {
		o.failed = err
	}
	return n, err
}

// File is the file behind the output, nil when it is something else.
func (o *Output) File() *os.File {
	f, _ := o.to.(*os.File)
	return f
}

// Err is the first error of a Write.
func (o *Output) Err() error {
	if o.failed == nil {
		return nil
	}
	return WithCode(ExitFailure, fmt.Errorf("standard output: %w", o.failed))
}
