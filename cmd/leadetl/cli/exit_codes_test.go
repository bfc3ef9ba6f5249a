package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/leadetl/leadetl/internal/rows"
	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/job"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("a bug"), 1},
		{syscall.ENOSPC, 1},
		{&fs.PathError{Op: "mkdir", Path: "out", Err: syscall.ENOSPC}, 1},
		{&fs.PathError{Op: "write", Path: "out/part", Err: syscall.EIO}, 1},
		{resolution.ErrInvalid, 1}, // of one of our own questions
		{&fs.PathError{Op: "mkdir", Path: "out", Err: syscall.EACCES}, 2},
		{UsageError(errors.New("no --in")), 2},
		{DataError(fmt.Errorf("%w: broken", resolution.ErrInvalid)), 2},
		{DataError(syscall.EIO), 1},
		{&sources.FormatError{File: "a.csv", Problem: "is empty"}, 2},
		{&job.Error{Err: errors.New("twice")}, 2},
		{sources.ErrChanged, 2},
		{begin.ErrOtherJob, 2},
		{sinks.ErrNested, 2},
		{cut.ErrInputChanged, 2},
		{sinks.ErrForeign, 2},
		{fmt.Errorf("%w: %w", resolution.ErrUnavailable, keyed.ErrDamaged), 2},
		{format.Check("state", 1, 2, "make it anew"), 2},
		{objects.ErrChanged, 2},
		{&objects.RefusedError{Problem: "the bucket is not there"}, 2},
		{&fs.PathError{Op: "open", Path: "a.csv", Err: fs.ErrNotExist}, 2},
		{&fs.PathError{Op: "open", Path: "a.csv", Err: fs.ErrPermission}, 2},
		{&fs.PathError{Op: "mkdir", Path: "out", Err: syscall.ENOTDIR}, 2},
		{&fs.PathError{Op: "open", Path: "out/part", Err: syscall.EROFS}, 2},
		{purchase.ErrRefused, 2},
		{answers.ErrFull, 1},
		{UsageError(&fs.PathError{Op: "open", Path: "state", Err: syscall.ENOSPC}), 1},
		{UsageError(&fs.PathError{Op: "open", Path: "a.csv", Err: syscall.EMFILE}), 1},
		{UsageError(&fs.PathError{Op: "write", Path: "state", Err: syscall.EFBIG}), 1},
		{UsageError(fmt.Errorf("--in: %w", syscall.EIO)), 1},
		{UsageError(syscall.ENOMEM), 1},
		{fmt.Errorf("%w: %w", objects.ErrUnavailable, syscall.EMFILE), 5},
		{fmt.Errorf("out: %w", sinks.ErrCorrupt), 1},
		{fmt.Errorf("%w: %w", answers.ErrFull, purchase.ErrUnreachable), 1},
		{purchase.ErrBudget, 4},
		{purchase.ErrNoCredits, 4},
		{purchase.ErrUnreachable, 5},
		{errors.Join(purchase.ErrUnreachable, purchase.ErrBudget), 4}, // of several resolvers
		{errors.Join(purchase.ErrUnreachable, purchase.ErrBudget, purchase.ErrRefused), 2},
		{objects.ErrUnavailable, 5},
		{objects.ErrLate, 5},
		{objects.ErrLockLost, 5},
		{filelock.ErrLocked, 5},
		{UsageError(fmt.Errorf("--state: %w", filelock.ErrLocked)), 5},
		{UsageError(fmt.Errorf("--in: %w", objects.ErrUnavailable)), 5},
		{UsageError(context.Canceled), 130},
		{WithCode(ExitRejects, errors.New("rejects")), 3},
		{context.Canceled, 130},
		{WithCode(ExitInterrupted, errors.New("interrupted")), 130},
	} {
		for _, err := range []error{c.err, wrap(c.err)} {
			if got := ExitCode(err); got != c.want {
				t.Errorf("exitCode(%v) = %d, want %d", err, got, c.want)
			}
		}
	}
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("run: %w", err), nil)
}

// A writer that waits for another's transaction gives up with SQLite's error.
func TestExitCodeOfALockedDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.sqlite")
	if err := groupcommit.Create(path); err != nil {
		t.Fatal(err)
	}
	var conns [2]*groupcommit.Conn
	for i := range conns {
		c, err := groupcommit.Connect(path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns[i] = c
	}
	if err := conns[0].Begin(); err != nil {
		t.Fatal(err)
	}
	conns[1].SetPatience(0)
	if err := conns[1].Begin(); ExitCode(err) != ExitTryAgain {
		t.Errorf("exit code %d for %v, want %d", ExitCode(err), err, ExitTryAgain)
	}
}

// The table in docs/reference/exit-codes.md is the one in code.
func TestPageOfExitCodes(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "\n| exit code | meaning | who acts |\n|---|---|---|\n"
	for _, row := range exitTable {
		want += fmt.Sprintf("| %d | %s | %s |\n", row.code, row.means, row.next)
	}
	if !strings.Contains(strings.ReplaceAll(string(text), "`", ""), want) {
		t.Errorf("docs/reference/exit-codes.md lacks the table%s", want)
	}
}

func TestMessage(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("no --in"), "leadetl: no --in"},
		{errors.Join(errors.New("no --in"), errors.New("no --out")), "leadetl: no --in\nleadetl: no --out"},
		{fmt.Errorf("import people: %w: no column", resolution.ErrInvalid), "leadetl: import people: no column"},
		{errors.New("a\nleadetl: done\x1b[2J\u202e\xff"), `leadetl: a\nleadetl: done\x1b[2J\u202e\xff`},
		{fmt.Errorf("a\nb: %w; c\nd", UsageError(errors.Join(errors.New("e\nf"), errors.New("g")))), `leadetl: a\nb: e\nf` + "\n" + `leadetl: g; c\nd`},
		{fmt.Errorf("--in: %w", &fs.PathError{Op: "open", Path: "/\n\a", Err: fs.ErrNotExist}), `leadetl: --in: /\n\a does not exist; check its name`},
		{&fs.PathError{Op: "read", Path: "a\nb", Err: syscall.EIO}, `leadetl: read a\nb: input/output error`},
		{fmt.Errorf("%w", &rows.FormatError{File: "a\nb", Problem: "is empty", Err: errors.New("not shown")}), `leadetl: a\nb is empty`},
	} {
		if got := message(c.err); got != c.want {
			t.Errorf("message(%q) = %q, want %q", c.err, got, c.want)
		}
	}
}

// A folder that cannot be made is not the one whose permissions are wrong.
func TestReasonNamesTheFolderThatIsThere(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{
		filepath.Join(dir, "x"): dir + "/x cannot be made: " + dir + " may not be written to; change its permissions, or name another place",
		dir:                     dir + ": permission denied; check who may use it",
	} {
		if got := Reason(&fs.PathError{Op: "mkdir", Path: name, Err: syscall.EACCES}); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
