package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/leadetl/leadetl/internal/columnfile"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/cut"
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
		{&pipeline.JobError{Err: errors.New("twice")}, 2},
		{sources.ErrChanged, 2},
		{pipeline.ErrOtherJob, 2},
		{cut.ErrInputChanged, 2},
		{sinks.ErrForeign, 2},
		{fmt.Errorf("%w: %w", resolution.ErrUnavailable, columnfile.ErrDamaged), 2},
		{filelock.ErrLocked, 2},
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

func TestMessage(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("no --in"), "leadetl: no --in"},
		{errors.Join(errors.New("no --in"), errors.New("no --out")), "leadetl: no --in\nleadetl: no --out"},
		{fmt.Errorf("import people: %w: no column", resolution.ErrInvalid), "leadetl: import people: no column"},
	} {
		if got := message(c.err); got != c.want {
			t.Errorf("message(%q) = %q, want %q", c.err, got, c.want)
		}
	}
}
