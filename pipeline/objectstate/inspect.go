package objectstate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// Inspection is what can be read of a state on S3, and what is damaged.
type Inspection struct {
	Answers, Calls int64 // an answer that is in several files counts in each
	Runs           int   // that have not finished
	Nights         int   // files
	Damages        []error
	// LostRows are stored answers of damaged files that are in no other object, and Lost what damaged
	// segments of logs had.
	LostRows int64
	Lost     answers.Lost
}

// asFound is the state for who looks at what is there: nothing is awaited, and what is missing is damage.
func (s *State) asFound() *State {
	look := *s
	look.impatient = true
	return &look
}

// Inspect reads everything in the state, and changes nothing. The error is one that is no damage.
func (s *State) Inspect(ctx context.Context) (found Inspection, err error) {
	s = s.asFound()
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
	runs, err := s.Unfinished(ctx)
	if err != nil {
		return found, err
	}
	for _, r := range runs {
		found.Runs++
		if _, err := s.inspectRun(ctx, r.ID, &found); err != nil {
			return found, err
		}
	}
	_, err = s.inspectNights(ctx, &found)
	return found, err
}

// inspectNights reads all lists of finished datasets, and returns those that are damaged.
func (s *State) inspectNights(ctx context.Context, found *Inspection) (damagedAt []objects.Location, err error) {
	nights, err := s.listAll(ctx, s.at.Below("nights/"))
	for _, info := range nights {
		found.Nights++
		sealed, _, err := s.store.ReadFile(ctx, info.Location)
		if err == nil {
			_, err = appendlog.Unseal(path.Base(info.Key), sealed)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = fmt.Errorf("%w: %s is missing", ErrDamaged, info.Location)
		case err != nil:
			err = fmt.Errorf("%s: %w", info.Location, damaged(err))
		}
		if errors.Is(err, ErrDamaged) {
			damagedAt = append(damagedAt, info.Location)
		}
		if err := found.note(err); err != nil {
			return nil, err
		}
	}
	return damagedAt, err
}

// note keeps an error that is damage, and returns another one.
func (i *Inspection) note(err error) error {
	if errors.Is(err, ErrDamaged) {
		i.Damages = append(i.Damages, err)
		return nil
	}
	return err
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

// inspectRun reads what a run that has not finished keeps. It returns the objects that are damaged; some of
// them may be missing.
func (s *State) inspectRun(ctx context.Context, id string, found *Inspection) (damagedAt []objects.Location, err error) {
	f := &RunFolder{state: s, at: s.at.Below("runs/" + id + "/"), id: id}
	infos, err := s.listAll(ctx, f.at)
	if err != nil {
		return nil, err
	}
	for _, info := range infos {
		if name := strings.TrimPrefix(info.Key, f.at.Key); strings.HasPrefix(name, "cluster/") || strings.Contains(path.Base(name), ".") {
			continue // it is no record
		}
		_, err := s.get(ctx, info.Location)
		switch {
		case errors.Is(err, fs.ErrNotExist): // its run has ended
		case errors.Is(err, ErrDamaged):
			found.Damages, damagedAt = append(found.Damages, err), append(damagedAt, info.Location)
		case err != nil:
			return nil, err
		}
	}
	if len(damagedAt) > 0 {
		return damagedAt, nil
	}
	p := &Progress{folder: f, ctx: ctx}
	if _, err = p.Read(); errors.Is(err, ErrDamaged) { // an object is missing
		found.Damages, damagedAt = append(found.Damages, err), append(damagedAt, p.object(p.next))
		return damagedAt, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return nil, err
}
