package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

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
	err  error
	code int
}

func (e codedError) Error() string { return e.err.Error() }
func (e codedError) Unwrap() error { return e.err }

// withCode makes the program exit with code because of err.
func withCode(code int, err error) error { return codedError{err, code} }

// usageError makes the program exit with exitUsage because of err. It is nil
// when err is.
func usageError(err error) error {
	if err == nil {
		return nil
	}
	return withCode(exitUsage, err)
}

// exitRule gives errors an exit code.
type exitRule struct {
	code    int
	applies func(error) bool
}

// exitRules is the table from errors to exit codes. The first rule that
// applies decides.
var exitRules = []exitRule{
	{exitBudget, isAny(pipeline.ErrBudget, pipeline.ErrNoCredits)},
	{exitService, isAny(pipeline.ErrRefused, pipeline.ErrUnreachable, objects.ErrUnavailable)},
	{exitInterrupted, isAny(context.Canceled)},
	{exitUsage, isAny(pipeline.ErrOtherJob, pipeline.ErrInputChanged, sources.ErrChanged, sinks.ErrForeign, filelock.ErrLocked, objects.ErrLockLost)},
	{exitUsage, isType[*sources.FormatError]},
	{exitUsage, isType[*objects.RefusedError]},
	{exitUsage, isType[*pipeline.JobError]},
	{exitUsage, isFolderRefused},
}

// exitCode is the one place where errors become exit codes.
func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	if coded, ok := errors.AsType[codedError](err); ok {
		return coded.code
	}
	for _, rule := range exitRules {
		if rule.applies(err) {
			return rule.code
		}
	}
	return exitFailure
}

func isAny(kinds ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
	}
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// isFolderRefused reports whether a folder could not be made for another
// reason than a full disk.
func isFolderRefused(err error) bool {
	path, ok := errors.AsType[*fs.PathError](err)
	return ok && path.Op == "mkdir" && !errors.Is(err, syscall.ENOSPC)
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

// report prints why a command failed, in the form its log has.
func report(c *cobra.Command, err error, to io.Writer) {
	if format := c.Flags().Lookup("log-format"); format != nil && format.Value.String() == "json" {
		slog.New(slog.NewJSONHandler(to, nil)).Error(err.Error())
		return
	}
	fmt.Fprintln(to, message(err))
}

// dataError tells data that is not as it should be from a machine that is not.
func dataError(err error) error {
	if errors.Is(err, resolution.ErrInvalid) {
		return usageError(err)
	}
	return err
}
