package main

import (
	"io"
)

// streams are the three standard streams of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}
