package objectstate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/objects"
)

// What a manifest or a number says must exist is read by its name. A store may show it late, so a
// read waits. If that is in vain, the run ends, to be repeated, and leaves a mark: the next run
// that waits in vain for the same object knows that it is lost. The end of a state that missed
// nothing removes the marks.

// missingFolder has the marks.
const missingFolder = "missing/"

// await repeats a read of an object that must exist while it is missing. The read says which object
// that is. If another process made it needless, the error is ErrDamaged and fs.ErrNotExist: there
// is a newer manifest to begin with.
func (s *State) await(ctx context.Context, needed func() (bool, error), read func() (objects.Location, error)) error {
	var at objects.Location
	once := func() (err error) {
		at, err = read()
		return err
	}
	var err error
	if s.impatient {
		if err = once(); errors.Is(err, fs.ErrNotExist) {
			if still, other := needed(); still || other != nil {
				return errors.Join(fmt.Errorf("%w: %s is missing", ErrDamaged, at), other)
			}
		}
	} else {
		err = s.store.Await(ctx, needed, once)
	}
	switch {
	case errors.Is(err, objects.ErrLate):
		return s.missed(context.WithoutCancel(ctx), at)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return damaged(err)
}

// missed marks an object that was awaited in vain, and returns the error for it: ErrLate, or
// ErrDamaged if an earlier run left the mark.
func (s *State) missed(ctx context.Context, at objects.Location) error {
	s.late.Store(true)
	mark := s.at.Below(missingFolder + shortHash(strings.TrimPrefix(at.Key, s.at.Key)))
	by, _, err := s.store.ReadFile(ctx, mark)
	if err == nil && string(by) != s.writer {
		return fmt.Errorf("%w: %s is missing, as it was when an earlier run ended", ErrDamaged, at)
	}
	if errors.Is(err, fs.ErrNotExist) {
		_, err = s.store.Put(ctx, mark, objects.ContentOf([]byte(s.writer), "text/plain"))
	}
	if err != nil {
		s.store.Log().Warn("it cannot be noted that an object is missing, so the next run does not know it", "object", at.String(), "reason", err.Error())
	}
	return fmt.Errorf("%s: %w; run the same command again later; leadetl doctor --state %s says what is lost", at, objects.ErrLate, s)
}

// damaged returns the error for an object that cannot be read, whether or not it has to
// exist.
func damaged(err error) error {
	if !errors.Is(err, ErrDamaged) && (errors.Is(err, objects.ErrChecksum) || errors.Is(err, appendlog.ErrDamaged)) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}
