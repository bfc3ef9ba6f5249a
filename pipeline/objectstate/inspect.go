package objectstate

import (
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
	// Segments are how many segments of logs are damaged or missing. Each is a group of changes, so it
	// is not known how many answers and calls they had.
	Segments int
}

// Inspect reads everything in the state, and changes nothing. The error is one that is no damage.
func (s *State) Inspect(ctx context.Context) (found Inspection, err error) {
	look := *s
	look.impatient = true
	s = &look
	scopes, err := s.Scopes(ctx)
	if err = found.note(err); err != nil {
		return found, err
	}
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
		if err := s.inspectRun(ctx, r.ID, &found); err != nil {
			return found, err
		}
	}
	nights, err := s.listAll(ctx, s.at.Below("nights/"))
	for _, info := range nights {
		found.Nights++
		sealed, _, err := s.store.ReadFile(ctx, info.Location)
		if err == nil {
			_, err = appendlog.Unseal(path.Base(info.Key), sealed)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", info.Location, damaged(err))
		}
		if err := found.note(err); err != nil {
			return found, err
		}
	}
	return found, err
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
	m, err := s.latest(ctx, of)
	if err != nil {
		return found.note(err)
	}
	for _, f := range m.Files {
		err := s.checkSum(ctx, of, s.folder(of).Below(f.Name), f.SHA256)
		if err == nil {
			found.Answers += f.Rows
		}
		if err := found.note(err); err != nil {
			return err
		}
	}
	calls, err := s.readCalls(ctx, of, m)
	found.Calls += int64(len(calls))
	if err := found.note(err); err != nil {
		return err
	}
	infos, err := s.listAll(ctx, s.folder(of).Below("log/"))
	if err != nil {
		return err
	}
	if err := s.inspectLog(ctx, of, m.LogFrom, infos, found); err != nil {
		return err
	}
	late, err := s.listAll(ctx, s.folder(of).Below("late/"))
	if err == nil {
		_, err = s.readLate(ctx, late)
	}
	return found.note(err)
}

// inspectLog reads the segments of a log one by one.
func (s *State) inspectLog(ctx context.Context, of answers.Scope, from int64, infos []objects.Info, found *Inspection) error {
	next := from
	for _, info := range infos {
		number, ok := segmentNumber(info)
		if !ok || number < from {
			continue
		}
		for ; next < number; next++ {
			found.Segments++
			found.Damages = append(found.Damages, fmt.Errorf("%w: %s is missing", ErrDamaged, s.folder(of).Below(segmentName(next))))
		}
		next++
		_, err := s.readAll(ctx, of, number, []objects.Info{info})
		if errors.Is(err, ErrDamaged) {
			found.Segments++
		}
		if err := found.note(err); err != nil {
			return err
		}
	}
	return nil
}

// checkSum compares the checksum of an object with the one that a manifest has.
func (s *State) checkSum(ctx context.Context, of answers.Scope, at objects.Location, want string) error {
	var object *objects.Object
	err := s.awaitOf(ctx, of, at, func() (err error) {
		object, err = s.store.Open(ctx, objects.Info{Location: at})
		return err
	})
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, io.NewSectionReader(object, 0, object.Size))
	if err := errors.Join(err, object.Close()); err != nil {
		return damaged(err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return fmt.Errorf("%w: %s has another checksum", ErrDamaged, at)
	}
	return nil
}

// inspectRun reads what a run that has not finished keeps.
func (s *State) inspectRun(ctx context.Context, id string, found *Inspection) error {
	f := &RunFolder{state: s, at: s.at.Below("runs/" + id + "/"), id: id}
	infos, err := s.listAll(ctx, f.at)
	if err != nil {
		return err
	}
	for _, info := range infos {
		if name := strings.TrimPrefix(info.Key, f.at.Key); strings.HasPrefix(name, "cluster/") || strings.Contains(path.Base(name), ".") {
			continue // it is no record
		}
		if _, err := s.get(ctx, info.Location); errors.Is(err, fs.ErrNotExist) {
			continue // its run has ended
		} else if err := found.note(err); err != nil {
			return err
		}
	}
	_, err = (&Progress{folder: f, ctx: ctx}).Read()
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrDamaged) || errors.Is(err, ErrDamaged) && len(found.Damages) > 0 {
		return nil
	}
	return found.note(err)
}
