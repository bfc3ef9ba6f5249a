package cli

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

	"github.com/leadetl/leadetl/internal/columnfile"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// The exit codes other tools rely on.
const (
	ExitDone        = 0
	exitFailure     = 1
	ExitUsage       = 2
	ExitRejects     = 3
	ExitBudget      = 4
	ExitService     = 5
	ExitInterrupted = 130
)

// commonExits are the exit codes of every command, and what they mean.
var commonExits = map[int]string{
	ExitDone:    "done",
	exitFailure: "internal failure, such as a full disk",
	ExitUsage:   "usage, configuration or unreadable input",
}

// codedError is an error whose exit code was decided where it came up.
type codedError struct {
	err  error
	code int
}

func (e codedError) Error() string { return e.err.Error() }
func (e codedError) Unwrap() error { return e.err }

// WithCode makes the program exit with code because of err.
func WithCode(code int, err error) error { return codedError{err, code} }

// UsageError makes the program exit with exitUsage because of err. It is nil
// when err is.
func UsageError(err error) error {
	if err == nil {
		return nil
	}
	return WithCode(ExitUsage, err)
}

// exitRule gives errors an exit code.
type exitRule struct {
	code    int
	applies func(error) bool
}

// exitRules is the table from errors to exit codes. The first rule that
// applies decides.
var exitRules = []exitRule{
	{ExitBudget, isAny(purchase.ErrBudget, purchase.ErrNoCredits)},
	{ExitService, isAny(purchase.ErrRefused, purchase.ErrUnreachable, objects.ErrUnavailable)},
	{ExitInterrupted, isAny(context.Canceled)},
	{ExitUsage, isAny(columnfile.ErrDamaged, pipeline.ErrOtherJob, cut.ErrInputChanged, sources.ErrChanged, sinks.ErrForeign, filelock.ErrLocked, objects.ErrLockLost)},
	{ExitUsage, isType[*sources.FormatError]},
	{ExitUsage, isType[*objects.RefusedError]},
	{ExitUsage, isType[*pipeline.JobError]},
	{ExitUsage, isFolderRefused},
}

// ExitCode is the one place where errors become exit codes.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
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

// ReportError prints why a command failed, in the form its log has.
func ReportError(c *cobra.Command, err error, to io.Writer) {
	if format := c.Flags().Lookup("log-format"); format != nil && format.Value.String() == "json" {
		slog.New(slog.NewJSONHandler(to, nil)).Error(err.Error())
		return
	}
	fmt.Fprintln(to, message(err))
}

// DataError tells data that is not as it should be from a machine that is not.
func DataError(err error) error {
	if errors.Is(err, resolution.ErrInvalid) {
		return UsageError(err)
	}
	return err
}
