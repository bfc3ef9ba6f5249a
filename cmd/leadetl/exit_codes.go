package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// The exit codes other tools rely on.
const (
	exitDone        = 0
	exitFailure     = 1
	exitUsage       = 2
	exitRejects     = 3
	exitBudget      = 4
	exitService     = 5
	exitInterrupted = 130
)

// exit is one exit code and what it means, as help texts say it.
type exit struct {
	code    int
	meaning string
}

// commonExits are those of every command.
var commonExits = []exit{
	{exitDone, "done"},
	{exitFailure, "internal failure, such as a full disk"},
	{exitUsage, "usage, configuration or unreadable input"},
}

// exitCodes lists exit codes for a help text, a line each.
func exitCodes(exits []exit) string {
	var b strings.Builder
	for _, e := range exits {
		fmt.Fprintf(&b, "\n  %-5d%s", e.code, e.meaning)
	}
	return b.String()
}

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
	var job *pipeline.JobError
	var refused *objects.RefusedError
	var path *fs.PathError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &coded):
		return coded.code
	case errors.Is(err, pipeline.ErrBudget), errors.Is(err, pipeline.ErrNoCredits):
		return exitBudget
	case errors.Is(err, pipeline.ErrRefused), errors.Is(err, pipeline.ErrUnreachable), errors.Is(err, objects.ErrUnavailable):
		return exitService
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &format),
		errors.As(err, &refused),
		errors.Is(err, objects.ErrLockLost),
		errors.As(err, &job),
		errors.Is(err, sources.ErrChanged),
		errors.Is(err, pipeline.ErrOtherJob),
		errors.Is(err, pipeline.ErrInputChanged),
		errors.Is(err, sinks.ErrForeign),
		errors.Is(err, filelock.ErrLocked),
		errors.As(err, &path) && path.Op == "mkdir" && !errors.Is(err, syscall.ENOSPC): // no place for a folder
		return exitUsage
	}
	return exitFailure
}

// message is an error as it is printed: each problem on a line of its own,
// behind the program's name. The words by which a service's client tells whose
// fault it was say nothing to who typed the command.
func message(err error) string {
	text := err.Error()
	for _, word := range []error{resolution.ErrInvalid, resolution.ErrUnavailable} {
		text = strings.ReplaceAll(text, word.Error()+": ", "")
	}
	return "leadetl: " + strings.ReplaceAll(text, "\n", "\nleadetl: ")
}
