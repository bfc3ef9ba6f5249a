package objectstate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// Inspection is what can be read of a state on S3, and what is damaged.
type Inspection struct {
	Answers, Calls int64 // an answer that is in several files counts in each
	Damages        []error
	// LostRows are stored answers of damaged files that are in no other object, and Lost what damaged
	// segments of logs had.
	LostRows int64
	Lost     answers.Lost
}

// AsFound is the state for who looks at what is there: nothing is awaited, and what is missing is damage.
func (s *State) AsFound() *State {
	look := *s
	look.impatient = true
	return &look
}

// Inspect reads all answers and open calls of the state, and changes nothing. The error is one that is no damage.
func (s *State) Inspect(ctx context.Context) (found Inspection, err error) {
	s = s.AsFound()
	scopes, unknown, err := s.findScopes(ctx)
	if err != nil {
		return found, err
	}
	found.Damages = unknown
	for _, of := range scopes {
		if err := s.inspectScope(ctx, of, &found); err != nil {
			return found, err
		}
	}
	return found, nil
}

func (s *State) inspectScope(ctx context.Context, of answers.Scope, found *Inspection) error {
	r, err := s.readRemains(ctx, of)
	if err != nil {
		return err
	}
	found.Answers += rowsOf(r.manifest.Files) + r.answers
	found.Calls += r.open
	found.Damages = append(found.Damages, r.damages...)
	found.LostRows += r.lostRows
	found.Lost.Answers += r.lostLog.Answers
	found.Lost.Credits += r.lostLog.Credits
	found.Lost.Intents += r.lostLog.Intents
	found.Lost.AtMost = cmp.Or(found.Lost.AtMost, r.lostLog.AtMost)
	return nil
}

// checkSum compares the checksum of an object with the one that a manifest has.
func (s *State) checkSum(ctx context.Context, at objects.Location, want string) error {
	sum, _, err := s.sumOf(ctx, at)
	if err != nil {
		return err
	}
	if hex.EncodeToString(sum) != want {
		return fmt.Errorf("%w: %s has another checksum", ErrDamaged, at)
	}
	return nil
}

// sumOf returns the checksum and size of an object.
func (s *State) sumOf(ctx context.Context, at objects.Location) (sum []byte, size int64, err error) {
	object, err := s.store.Open(ctx, objects.Info{Location: at})
	if err != nil {
		return nil, 0, err
	}
	hash := sha256.New()
	size, err = io.Copy(hash, io.NewSectionReader(object, 0, object.Size))
	return hash.Sum(nil), size, errors.Join(err, object.Close())
}
