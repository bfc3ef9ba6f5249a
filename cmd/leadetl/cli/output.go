package cli

import (
	"fmt"
	"io"
)

// Output is a standard output that remembers write errors. A command that could
// not print its result has failed.
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

// Err returns the first error of a Write.
func (o *Output) Err() error {
	if o.failed == nil {
		return nil
	}
	return WithCode(ExitFailure, fmt.Errorf("standard output: %w", o.failed))
}
