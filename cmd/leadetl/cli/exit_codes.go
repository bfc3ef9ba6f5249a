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

	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/sinks/typed"

	"github.com/spf13/cobra"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/changes"
	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// The exit codes. Other tools rely on them.
const (
	ExitDone        = 0
	ExitFailure     = 1
	ExitUsage       = 2
	ExitRejects     = 3
	ExitBudget      = 4
	ExitTryAgain    = 5
	ExitInterrupted = 130
)

// An exitMeaning tells the caller of the program what an exit code means.
type exitMeaning struct {
	code  int
	means string
	next  string // who has to act, and how
}

// exitTable explains the exit codes. Help texts are made from it, and the
// table of docs/reference/exit-codes.md repeats it.
var exitTable = []exitMeaning{
	{ExitDone, "done", "nothing needs to be done"},
	{ExitFailure, "internal failure, such as a full disk", "a person repairs it"},
	{ExitUsage, "wrong usage, configuration, credentials, address or input; a retry does not help", "a person corrects it; never retry"},
	{ExitRejects, "done, but rows failed, rejects exceed --max-rejects, or the input has no rows; see --fail-on", "a person looks at the dataset; run again, the same command asks a service again for failed rows"},
	{ExitBudget, "budget or credits exhausted; raise the limit and run the same command to resume", "a person raises the limit, then the same command resumes"},
	{ExitTryAgain, "service or S3 out of reach, no input yet, dataset or state in use; run the same command later", "the scheduler runs the same command again later"},
	{ExitInterrupted, "interrupted; run the same command to resume", "the scheduler runs the same command again"},
}

// allExits are those that some commands have. A command with commands below it shows them.
func allExits() map[int]string {
	all := map[int]string{}
	for _, row := range exitTable {
		all[row.code] = ""
	}
	return all
}

// Next says who has to act after an exit code, and how.
func Next(code int) string {
	i := slices.IndexFunc(exitTable, func(row exitMeaning) bool { return row.code == code })
	return exitTable[i].next
}

// commonExits are the exit codes of every command.
var commonExits = map[int]string{ExitDone: "", ExitFailure: "", ExitUsage: ""}

// codedError is an error with an exit code.
type codedError struct {
	err  error
	code int
}

func (e codedError) Error() string { return e.err.Error() }
func (e codedError) Unwrap() error { return e.err }

// WithCode makes the program exit with code because of err, unless exitRules
// have a code for err.
func WithCode(code int, err error) error { return codedError{err, code} }

// UsageError makes the program exit with ExitUsage because of err, unless
// exitRules have a code for err: a flag may name a folder that is in use, or a
// full disk. It returns nil if err is nil.
func UsageError(err error) error {
	if err == nil {
		return nil
	}
	return WithCode(ExitUsage, err)
}

// Interrupted converts an error to the interrupt error if the user's interrupt
// has caused it.
func Interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return WithCode(ExitInterrupted, errors.New("interrupted"))
	}
	return err
}

// exitRule gives errors an exit code.
type exitRule struct {
	code    int
	applies func(error) bool
}

// exitRules maps errors to exit codes. The first rule that applies decides.
var exitRules = []exitRule{
	{ExitFailure, isAny(syscall.ENOSPC, syscall.EDQUOT, answers.ErrFull, appendlog.ErrDamaged)},
	{ExitFailure, isSQLite(sqlite3.SQLITE_FULL)},
	{ExitUsage, isAny(purchase.ErrRefused)}, // of several resolvers, the first of these
	{ExitBudget, isAny(purchase.ErrBudget, purchase.ErrNoCredits)},
	{ExitTryAgain, isAny(purchase.ErrUnreachable, objects.ErrUnavailable, objects.ErrLate, filelock.ErrLocked, objects.ErrLockLost)},
	{ExitTryAgain, isSQLite(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)},
	{ExitInterrupted, isAny(context.Canceled)},
	// The machine fails, or a limit of it, whatever was opened.
	{ExitFailure, isAny(syscall.EIO, syscall.EFBIG, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE)},
	{ExitFailure, isSQLite(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM)},
	{ExitUsage, isAny(keyed.ErrDamaged, begin.ErrOtherJob, cut.ErrInputChanged, sources.ErrChanged, objects.ErrChanged, sinks.ErrForeign, sinks.ErrNested, changes.ErrIncomparable)},
	{ExitUsage, isType[*sources.FormatError]},
	{ExitUsage, isType[*typed.Error]},
	{ExitUsage, isType[*format.Error]},
	{ExitUsage, isType[*objects.RefusedError]},
	{ExitUsage, isType[*job.Error]},
	{ExitUsage, isAny(fs.ErrPermission, fs.ErrNotExist, syscall.ENOTDIR, syscall.EISDIR, syscall.EROFS)},
	{ExitUsage, isFolderRefused},
}

// ExitCode returns the exit code for an error. No other code decides on exit
// codes.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
	}
	for _, rule := range exitRules {
		if rule.applies(err) {
			return rule.code
		}
	}
	if coded, ok := errors.AsType[codedError](err); ok {
		return coded.code
	}
	return ExitFailure
}

func isAny(kinds ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
	}
}

// isSQLite returns a test for primary result codes of SQLite.
func isSQLite(codes ...int) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(codes, func(code int) bool { return groupcommit.Is(err, code) })
	}
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// isFolderRefused reports whether a folder could not be created. A full disk
// has its own rule.
func isFolderRefused(err error) bool {
	path, ok := errors.AsType[*fs.PathError](err)
	return ok && path.Op == "mkdir"
}

// Reason returns an error in words, safe to print: only joined errors begin new
// lines. It rewrites system errors about files as sentences, and omits the words
// that a service's client uses to classify errors, because they do not help users.
func Reason(err error) string {
	text := inSentences(err)
	for _, word := range []error{resolution.ErrInvalid, resolution.ErrUnavailable} {
		text = strings.ReplaceAll(text, word.Error()+": ", "")
	}
	return text
}

// message formats an error for printing: the program's name, then each problem
// on its own line.
func message(err error) string {
	text := Reason(err)
	if errors.Is(err, appendlog.ErrDamaged) {
		text += "\n" + whatToDo
	}
	return "leadetl: " + strings.ReplaceAll(text, "\n", "\nleadetl: ")
}

// whatToDo follows what is damaged.
const whatToDo = "nothing was changed; leadetl doctor --state URI says what is lost, and with --repair keeps the rest"

// ReportError prints why a command failed, in the format of the command's log.
func ReportError(c *cobra.Command, err error, to io.Writer) {
	if format := c.Flags().Lookup("log-format"); format != nil && format.Value.String() == "json" {
		slog.New(slog.NewJSONHandler(to, nil)).Error(Reason(err))
		return
	}
	fmt.Fprintln(to, message(err))
}

// DataError distinguishes invalid data from a failure of the machine.
func DataError(err error) error {
	if errors.Is(err, resolution.ErrInvalid) {
		return UsageError(err)
	}
	return err
}
