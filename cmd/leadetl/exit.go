package main

import (
	"context"
	"errors"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// The exit codes other tools rely on.
const (
	exitDone        = 0
	exitFailure     = 1   // internal failure: a bug, a full disk
	exitUsage       = 2   // usage, config or unreadable input
	exitRejects     = 3   // done, but rows failed or rejects passed --max-rejects
	exitInterrupted = 130 // stopped by a signal; the same command goes on
)

// exitHelp is the end of every help text of a command that does work.
const exitHelp = `
Exit codes:
  0    done
  1    internal failure
  2    usage, configuration or unreadable input; nothing was written
  3    done, but rows failed or rejects passed --max-rejects
  130  interrupted; the same command goes on where it stopped`

// codedError is an error whose exit code was decided where it came up.
type codedError struct {
	error
	code int
}

func (e codedError) Unwrap() error { return e.error }

func usageError(err error) error {
	if err == nil {
		return nil
	}
	return codedError{err, exitUsage}
}

// exitCode is the one place where errors become exit codes.
func exitCode(err error) int {
	var coded codedError
	var format *sources.FormatError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &coded):
		return coded.code
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &format),
		errors.Is(err, sources.ErrChanged),
		errors.Is(err, pipeline.ErrOtherJob),
		errors.Is(err, pipeline.ErrInputChanged),
		errors.Is(err, sinks.ErrForeign),
		errors.Is(err, filelock.ErrLocked):
		return exitUsage
	}
	return exitFailure
}
