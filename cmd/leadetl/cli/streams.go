// Package cli holds what every command is made of: its streams, its help and
// messages of wrong usage, its log, and the table from errors to exit codes.
package cli

import (
	"io"
)

// Streams are the three standard streams of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}
