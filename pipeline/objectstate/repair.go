package objectstate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// Repair keeps all that can be read of a state. It sets damaged objects aside, whose URIs it returns, and
// counts what they had as spent by their runs.
func (s *State) Repair(ctx context.Context) (setAside []string, err error) {
	s = s.AsFound()
	scopes, unknown, err := s.findScopes(ctx)
	errs := []error{err}
	for _, damage := range unknown {
		errs = append(errs, fmt.Errorf("%w: bring back one of its manifests from an older version of the object, or from a copy", damage))
	}
	keep := func(aside []string, err error) {
		setAside, errs = append(setAside, aside...), append(errs, err)
	}
	for _, of := range scopes {
		keep(s.repairScope(ctx, of))
	}
	return setAside, errors.Join(errs...)
}

// setAside copies a damaged object. It returns the URI of the copy; none if the object is missing.
func (s *State) setAside(ctx context.Context, at objects.Location) ([]string, error) {
	object, err := s.store.Open(ctx, objects.Info{Location: at})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, io.NewSectionReader(object, 0, object.Size))
	to := objects.Location{Bucket: at.Bucket, Key: at.Key + damagedSuffix}
	if err == nil {
		_, err = s.store.Put(ctx, to, objects.Content{ReaderAt: object, Size: object.Size, SHA256: [sha256.Size]byte(sum.Sum(nil)), Type: "application/octet-stream"})
	}
	if err := errors.Join(err, object.Close()); err != nil {
		return nil, err
	}
	return []string{to.String()}, nil
}

func (s *State) setAllAside(ctx context.Context, all []objects.Location) (aside []string, err error) {
	for _, at := range all {
		copied, err := s.setAside(ctx, at)
		if err != nil {
			return aside, err
		}
		aside = append(aside, copied...)
	}
	return aside, nil
}

// repairScope publishes a manifest of all that can be read of a scope. Damaged objects are removed after
// that: a repair that is killed leaves the damage.
func (s *State) repairScope(ctx context.Context, of answers.Scope) (aside []string, err error) {
	held, err := s.claimFrom(ctx, of.Service)
	if err != nil {
		return nil, err
	}
	x := &Session{state: s, of: of, lease: held}
	defer func() { err = errors.Join(err, x.release()) }()
	found, err := s.readRemains(ctx, of)
	if err != nil || len(found.damages) == 0 {
		return nil, err
	}
	if aside, err = s.setAllAside(ctx, found.damaged); err != nil {
		return aside, err
	}
	for _, at := range found.damaged { // the manifest names them, or nothing does: the damage is still seen
		if strings.HasPrefix(at.Key, s.folder(of).Below("f/").Key) {
			if err := s.store.Remove(ctx, at); err != nil {
				return aside, err
			}
		}
	}
	if err := s.baseOf(ctx, found); err != nil {
		return aside, err
	}
	dir, err := os.MkdirTemp(s.Scratch, "leadetl-answers-*")
	if err != nil {
		return aside, err
	}
	err = x.publishRemains(ctx, dir, found)
	if err = errors.Join(err, x.discard(dir)); err != nil {
		return aside, err
	}
	return aside, s.removeReplaced(ctx, found, x.manifest)
}

// baseOf makes a manifest, to be published, with the answers and open calls of a damaged scope that are
// in no segment.
func (s *State) baseOf(ctx context.Context, found *remains) error {
	base := found.manifest
	base.Number = found.number + 1 // no file of an earlier manifest has the name of its files
	rescued := s.sorted(ctx, found.of, found.rescued, true)
	if len(found.rescued) == 0 {
		rescued = func(func(answers.Item, error) bool) {}
	}
	if found.lost {
		spent := answers.Spent{ByRun: map[string]answers.Spending{}, ByDay: map[string]answers.Spending{}}
		for i, err := range newer(rescued, s.sorted(ctx, found.of, base.Files, false), func(answers.Item) {}) {
			if err != nil {
				return err
			}
			spent.Add(i)
		}
		base.Spent = base.Spent.Plus(spent)
	}
	base.Calls = nil
	_, _, err := s.addToManifest(ctx, found.of, base, rescued, found.calls)
	base.Number = found.number
	return err
}

// publishRemains adds what is in the log, and publishes.
func (x *Session) publishRemains(ctx context.Context, dir string, found *remains) error {
	x.manifest = found.manifest
	x.log = &logWriter{state: x.state, ctx: context.WithoutCancel(ctx), of: x.of, term: maxTerm(x.manifest, found.segments) + 1, next: found.next}
	if err := x.log.fence(); err != nil {
		return err
	}
	if err := x.begin(ctx, dir, found.segments); err != nil {
		return err
	}
	for _, g := range found.late {
		if err := x.Answers.ReplayLate(ctx, g.record); err != nil {
			return err
		}
	}
	shot, err := x.Answers.Snapshot(ctx, x.of, x.position, func() {})
	if err != nil {
		return err
	}
	spent := shot.Spent
	for run := range spent.ByRun {
		calls := found.lostCalls + max(found.unnamed[run], 0)
		spent.ByRun[run] = spent.ByRun[run].Plus(answers.Spending{Answers: calls, Unpriced: calls})
	}
	if found.lostLog.AtMost != "" { // a run may have begun its first calls there
		names, err := x.state.unfinishedNames(ctx)
		if err != nil {
			return err
		}
		for _, run := range names {
			if _, known := spent.ByRun[run]; !known {
				spent.ByRun[run] = answers.Spending{Answers: found.lostLog.Intents, Unpriced: found.lostLog.Intents}
			}
		}
	}
	if err := x.Answers.SetSpent(ctx, x.of, spent); err != nil {
		return err
	}
	return x.seal(ctx)
}

// unfinishedNames returns the names under which unfinished runs have spent, as far as headers can be read.
func (s *State) unfinishedNames(ctx context.Context) (names []string, err error) {
	under := s.at.Below("runs/")
	_, folders, err := s.store.ListFolder(ctx, under)
	for _, run := range folders {
		var header struct{ Run string }
		err := s.readJSON(ctx, under.Below(run+"beside/header"), &header)
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if header.Run != "" {
			names = append(names, header.Run)
		}
	}
	return names, err
}

// removeReplaced removes what was set aside, and is in no way part of the new manifest.
func (s *State) removeReplaced(ctx context.Context, found *remains, now *manifest) error {
	keep := map[objects.Location]bool{}
	for _, f := range now.Files {
		keep[s.folder(found.of).Below(f.Name)] = true
	}
	if now.Calls != nil {
		keep[s.folder(found.of).Below(now.Calls.Name)] = true
	}
	for _, at := range slices.Concat(found.damaged, found.lateAt) {
		if keep[at] {
			continue
		}
		if err := s.store.Remove(ctx, at); err != nil {
			return err
		}
	}
	return nil
}
