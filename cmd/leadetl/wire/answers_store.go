package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// AnswersFolder is the folder of the stored answers in a state folder.
const AnswersFolder = "answers"

// Answers are the places of the stored answers of a state folder.
func Answers(folder string) answers.Places {
	return answers.Alone{Place: answers.InFolder(filepath.Join(folder, AnswersFolder))}
}

// Answers are the places of the stored answers of the state.
func (s State) Answers() answers.Places {
	if s.Objects != nil {
		return s.Objects
	}
	return Answers(s.Folder)
}

// OpenAnswers returns the places of the stored answers of a state in a folder or on S3, unless it is in
// another format.
func OpenAnswers(ctx context.Context, state string, flags *S3, std cli.Streams) (answers.Places, error) {
	if objects.Is(state) {
		return OpenObjectState(ctx, state, flags, std)
	}
	if info, err := os.Stat(state); err == nil && !info.IsDir() {
		return nil, cli.UsageError(fmt.Errorf("stored answers: %s is a file; name a folder", state))
	}
	return Answers(state), CheckRunState(state)
}

// StoredAnswers lists the places with stored answers. It is a usage error if there is none.
func StoredAnswers(ctx context.Context, places answers.Places, state string) ([]answers.Place, error) {
	all, err := places.All(ctx)
	if err == nil && len(all) == 0 {
		err = answers.ErrNone
	}
	return all, AnswersError(state, err)
}

// ReadAnswers opens the stored answers of places for reading, even while a run uses them.
func ReadAnswers(ctx context.Context, places answers.Places, state string) (*answers.Contents, error) {
	all, err := StoredAnswers(ctx, places, state)
	if err != nil {
		return nil, err
	}
	c, err := answers.OpenContents(ctx, all...)
	return c, AnswersError(state, err)
}

// AnswersError says what to do about stored answers that cannot be opened.
func AnswersError(state string, err error) error {
	switch {
	case errors.Is(err, answers.ErrNone):
		another := "folder"
		if objects.Is(state) {
			another = "--state"
		}
		return cli.UsageError(fmt.Errorf("%s has %w; a run with --resolver URL stores them, or name another %s", state, answers.ErrNone, another))
	case errors.Is(err, filelock.ErrLocked) && !objects.Is(state):
		return cli.UsageError(fmt.Errorf("%w; try again when it has ended, or name another folder", err))
	}
	return err
}

// HoldsAnswers reports whether a state folder contains stored answers.
func HoldsAnswers(ctx context.Context, folder string) bool {
	return answers.Exist(ctx, Answers(folder).Of(""))
}
