// Package cli holds what all commands share: streams, help, usage errors, the
// log, and the table from errors to exit codes.
package cli

import (
	"io"
)

// Streams are the three standard streams of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}
