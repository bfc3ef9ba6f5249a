package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/sinks"
)

// Inspection is what the folder of a run has.
type Inspection struct {
	ID      string
	Header  Header // zero if it is lost
	Parts   int    // that are recorded
	Damages []error

	damaged []string // names of files
}

// Inspect reads all of each run that has not finished, and changes nothing.
func (s *State) Inspect(ctx context.Context) (all []Inspection, err error) {
	runs, err := s.Unfinished(ctx)
	for _, r := range runs {
		if err == nil {
			var found Inspection
			found, err = s.runFolder(r.ID).inspect(ctx)
			all = append(all, found)
		}
	}
	return all, err
}

func (f *RunFolder) inspect(ctx context.Context) (found Inspection, err error) {
	found.ID = f.id
	names, err := f.List(ctx, "")
	if err != nil {
		return found, err
	}
	for _, name := range names {
		if strings.HasPrefix(name, "cluster/") || strings.Contains(path.Base(name), ".") {
			continue // it is no record
		}
		_, err := store.ReadSealed(ctx, f.state.files, f.folder+name)
		switch {
		case errors.Is(err, appendlog.ErrDamaged):
			found.Damages, found.damaged = append(found.Damages, err), append(found.damaged, name)
		case err != nil && !store.IsMissing(err): // else its run has ended
			return found, err
		}
	}
	p := f.progress(ctx)
	if len(found.damaged) == 0 {
		header, parts, err := New(p).Read()
		if !errors.Is(err, appendlog.ErrDamaged) {
			found.Header, found.Parts = header, len(parts)
			return found, err
		}
		found.Damages = append(found.Damages, err) // a file of the journal is missing, or is another one
	}
	left, err := f.remaining(ctx)
	found.Header, found.Parts = left.header, len(left.parts)
	if errors.Is(err, errNameLost) {
		err = nil
	}
	return found, err
}

// remaining is what can be read of a journal.
type remaining struct {
	header Header
	parts  map[int]sinks.Part
	files  []string // of the journal
}

var errNameLost = errors.New("the name under which its run has spent is lost, so it cannot be resumed: use --overwrite with another name, and count what it has spent")

// remaining reads what is whole of a journal. The header beside it counts if its own is lost.
func (f *RunFolder) remaining(ctx context.Context) (left remaining, err error) {
	p := f.progress(ctx)
	if left.files, err = p.log.Files(ctx); err != nil {
		return left, err
	}
	header, err := store.ReadSealed(ctx, f.state.files, f.folder+headerFile)
	switch {
	case err == nil:
		header = append(header, '\n')
	case store.IsMissing(err) && len(left.files) == 0:
		return left, nil
	case !errors.Is(err, appendlog.ErrDamaged) && !store.IsMissing(err):
		return left, err
	}
	beside := header != nil
	var more []byte
	another := false // the lines are those of a journal with another header
	next := int64(0)
	for _, name := range left.files {
		number, err := p.log.Number(name)
		if err != nil {
			return left, err
		}
		another = another && number == next
		next = number + 1
		group, err := p.log.Group(ctx, number)
		switch {
		case errors.Is(err, appendlog.ErrDamaged):
			another = false // it may have begun one
		case err != nil:
			return left, err
		case group.Begins:
			first, rest, _ := bytes.Cut(group.Data, []byte("\n"))
			first = append(slices.Clone(first), '\n')
			if !beside {
				header = first
			}
			more, another = nil, !bytes.Equal(first, header)
			if !another {
				more = slices.Clone(rest)
			}
		case !another:
			more = append(more, group.Data...)
		}
	}
	if header == nil {
		return left, fmt.Errorf("%s: %w; %w", f, appendlog.ErrDamaged, errNameLost)
	}
	left.header, left.parts, err = decodeLines(append(header, more...))
	return left, err
}

// Repair sets damaged files of all unfinished runs aside, whose paths it returns, and keeps what can be read.
// Parts that a run loses are made again.
func (s *State) Repair(ctx context.Context) (setAside []string, err error) {
	runs, err := s.Unfinished(ctx)
	errs := []error{err}
	for _, r := range runs {
		aside, err := s.runFolder(r.ID).repair(ctx)
		setAside, errs = append(setAside, aside...), append(errs, err)
	}
	return setAside, errors.Join(errs...)
}

func (f *RunFolder) repair(ctx context.Context) (aside []string, err error) {
	p := f.progress(ctx)
	if p.held, err = f.state.claim(ctx, f.id); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.held.Release()) }()
	found, err := f.inspect(ctx)
	if err != nil || len(found.Damages) == 0 {
		return nil, err
	}
	left, err := f.remaining(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range found.damaged {
		copied, err := store.SetAside(ctx, f.state.files, f.folder+name)
		aside = append(aside, copied...)
		if err != nil {
			return aside, err
		}
	}
	if len(left.files) == 0 {
		return aside, f.remove(ctx, found.damaged)
	}
	lists := false
	for number := range left.parts {
		if slices.Contains(found.damaged, besideFolder+foundName(number)) {
			delete(left.parts, number) // it is made again
		}
	}
	for _, name := range found.damaged {
		lists = lists || strings.HasPrefix(name, besideFolder+listsName)
	}
	if lists {
		err = p.Drop(listsName, headerName) // the run keeps them again
	}
	if err == nil {
		err = f.beginAgain(ctx, p, left, found.damaged)
	}
	return aside, err
}

// beginAgain begins the journal anew with what is left. Damaged files are removed after that: a repair that is
// killed leaves the damage.
func (f *RunFolder) beginAgain(ctx context.Context, p *Progress, left remaining, damaged []string) error {
	last, err := p.log.Number(left.files[len(left.files)-1])
	if err != nil {
		return err
	}
	p.log.Skip(last + 1)
	if slices.Contains(damaged, headerFile) {
		if err := f.remove(ctx, []string{headerFile}); err != nil {
			return err
		}
	}
	j := New(p)
	j.run = left.header.Run // its verdicts stay
	if err := j.Begin(left.header, left.parts); err != nil {
		return err
	}
	var names []string
	for _, name := range left.files {
		names = append(names, strings.TrimPrefix(name, f.folder))
	}
	return f.remove(ctx, append(names, slices.DeleteFunc(slices.Clone(damaged), func(name string) bool { return name == headerFile })...))
}

func (f *RunFolder) remove(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := f.state.files.Remove(ctx, f.folder+name); err != nil {
			return err
		}
	}
	return nil
}

// NightsFound are the lists of finished datasets in a state.
type NightsFound struct {
	Files   int
	Damages []error
	files   []string
}

// InspectNights reads all lists of finished datasets.
func (s *State) InspectNights(ctx context.Context) (found NightsFound, err error) {
	for info, err := range s.files.List(ctx, nightsFolder+"/") {
		if err != nil {
			return found, err
		}
		if strings.HasSuffix(info.Name, store.DamagedSuffix) || store.IsUnfinished(info.Name) {
			continue
		}
		found.Files++
		_, err := s.nights(ctx, info.Name, "")
		if errors.Is(err, appendlog.ErrDamaged) {
			found.Damages, found.files = append(found.Damages, err), append(found.files, info.Name)
		} else if err != nil {
			return found, err
		}
	}
	return found, nil
}

// RepairNights sets damaged lists aside, and returns their paths.
func (s *State) RepairNights(ctx context.Context) (setAside []string, err error) {
	found, err := s.InspectNights(ctx)
	for _, name := range found.files {
		aside, failed := store.SetAside(ctx, s.files, name)
		setAside = append(setAside, aside...)
		if failed == nil {
			failed = s.files.Remove(ctx, name)
		}
		err = errors.Join(err, failed)
	}
	return setAside, err
}
