package wire

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// AnswersFolder is the folder of the stored answers in a state folder.
const AnswersFolder = "answers"

// OpenAnswers opens the stored answers of a state folder.
func OpenAnswers(state string, o answers.Options) (*answers.Store, error) {
	if objects.Is(state) {
		return nil, cli.UsageError(fmt.Errorf("--state %s: this command needs a folder; leadetl answers copy brings answers from S3 into one", state))
	}
	if err := CheckRunState(state); err != nil {
		return nil, err
	}
	s, err := answers.Open(filepath.Join(state, AnswersFolder), o)
	return s, answersError(state, err)
}

// ReadAnswers opens the stored answers of a state folder for reading, even
// while a run uses them.
func ReadAnswers(ctx context.Context, state string) (*answers.Contents, error) {
	if err := CheckRunState(state); err != nil {
		return nil, err
	}
	c, err := answers.OpenContents(ctx, filepath.Join(state, AnswersFolder), answers.Options{})
	return c, answersError(state, err)
}

func answersError(state string, err error) error {
	switch {
	case errors.Is(err, answers.ErrNone):
		return cli.UsageError(fmt.Errorf("%s has %w; a run with --resolver URL stores them, or name another folder", state, answers.ErrNone))
	case errors.Is(err, filelock.ErrLocked):
		return cli.UsageError(fmt.Errorf("%w; try again when it has ended, or name another folder", err))
	}
	return err
}

// HoldsAnswers reports whether a state folder contains stored answers.
func HoldsAnswers(state string) bool {
	return answers.Exist(filepath.Join(state, AnswersFolder))
}
