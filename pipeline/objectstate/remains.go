package objectstate

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// damagedSuffix ends the name of a damaged object that was set aside.
const damagedSuffix = ".damaged"

// remains is what can be read of a scope, damaged or not.
type remains struct {
	of      answers.Scope
	damages []error
	damaged []objects.Location // for their damage; some may be missing

	manifest *manifest // the newest that is whole, with those of its files that are
	number   int64     // of the newest manifest
	lost     bool      // the newest manifest is damaged
	rescued  []answerFile
	calls    []answers.OpenCall
	segments []segment
	next     int64 // number of the next segment
	late     []segment
	lateAt   []objects.Location

	answers, open int64 // in segments; calls that are open behind them
	lostRows      int64 // of damaged files
	lostLog       answers.Lost
	unnamed       map[string]int64 // calls of the log by run that have to be kept as spent
	lostCalls     int64            // as unnamed, of which it is not known which run has made them
}

// note keeps an error that is damage of an object, and returns another one.
func (r *remains) note(at objects.Location, err error) error {
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w: %s is missing", ErrDamaged, at)
	}
	if !errors.Is(err, ErrDamaged) {
		return err
	}
	r.damages, r.damaged = append(r.damages, err), append(r.damaged, at)
	return nil
}

// findScopes is Scopes of a state that may be damaged. It also returns what is wrong with the folders whose
// scope is not known.
func (s *State) findScopes(ctx context.Context) (scopes []answers.Scope, damages []error, err error) {
	folders, err := s.scopeFolders(ctx)
	for _, folder := range folders {
		of, some, err := s.identify(ctx, folder)
		switch {
		case err != nil:
			return nil, nil, err
		case of != (answers.Scope{}):
			scopes = append(scopes, of)
		case some:
			damages = append(damages, fmt.Errorf("%w: %s: nothing that is whole says which service and operation it is about", ErrDamaged, folder))
		}
	}
	slices.SortFunc(scopes, answers.Scope.Compare)
	return scopes, damages, err
}

// identify finds the scope of a folder: in a manifest or segment that is whole, or in the text of a damaged
// manifest, where it counts if the folder has its hash for a name. It also reports whether there is a manifest.
func (s *State) identify(ctx context.Context, folder objects.Location) (of answers.Scope, some bool, err error) {
	names, err := s.manifestsIn(ctx, folder)
	if err != nil || len(names) == 0 {
		return of, false, err
	}
	for _, info := range slices.Backward(names) {
		m := &manifest{}
		if err := s.readManifest(ctx, info.Location, m); err == nil {
			return m.Scope, true, nil
		} else if !errors.Is(err, ErrDamaged) && !errors.Is(err, fs.ErrNotExist) {
			return of, true, err
		}
	}
	var named []answers.Scope
	for _, under := range []string{"log/", "late/"} {
		infos, err := s.listAll(ctx, folder.Below(under))
		if err != nil {
			return of, true, err
		}
		for _, info := range infos {
			read, err := s.readLate(ctx, []objects.Info{info})
			if err != nil && !errors.Is(err, ErrDamaged) {
				return of, true, err
			}
			for _, g := range read {
				named = append(named, answers.ScopesOf(g.record)...)
			}
		}
	}
	for _, info := range names {
		text, _, err := s.store.ReadFile(ctx, info.Location)
		if err != nil && !errors.Is(err, objects.ErrChecksum) && !errors.Is(err, fs.ErrNotExist) {
			return of, true, err
		}
		named = append(named, scopeIn(text))
	}
	i := slices.IndexFunc(named, func(of answers.Scope) bool { return s.folder(of) == folder })
	if i < 0 {
		return of, true, nil
	}
	return named[i], true, nil
}

// scopeText is a scope in the text of a manifest.
var scopeText = regexp.MustCompile(`\{\s*"service":\s*"(\\.|[^"\\])*",\s*"operation":\s*"(\\.|[^"\\])*"\s*\}`)

func scopeIn(text []byte) (of answers.Scope) {
	if json.Unmarshal(scopeText.Find(text), &of) != nil {
		return answers.Scope{}
	}
	return of
}

// readRemains reads everything in a scope, and changes nothing. The error is one that is no damage.
func (s *State) readRemains(ctx context.Context, of answers.Scope) (*remains, error) {
	r := &remains{of: of}
	for _, read := range []func(context.Context, *remains) error{s.remainingManifest, s.remainingFiles, s.remainingCalls, s.remainingLog, s.remainingLate, s.rescue, s.countRescued} {
		if err := read(ctx, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// remainingManifest reads the newest manifest that is whole.
func (s *State) remainingManifest(ctx context.Context, r *remains) error {
	names, err := s.manifests(ctx, r.of)
	if err != nil {
		return err
	}
	r.manifest = &manifest{}
	for i := len(names) - 1; i >= 0; i-- {
		at := names[i].Location
		number, err := strconv.ParseInt(strings.TrimSuffix(path.Base(at.Key), ".json"), 10, 64)
		if err != nil {
			return fmt.Errorf("%s is no manifest", at)
		}
		r.number = max(r.number, number)
		m := &manifest{}
		if err = s.readManifest(ctx, at, m); err == nil {
			r.manifest = m
			return nil
		}
		if err := r.note(at, err); err != nil {
			return err
		}
		r.lost = true
	}
	return nil
}

// remainingFiles reads the files of answers that the manifest names.
func (s *State) remainingFiles(ctx context.Context, r *remains) error {
	var whole []answerFile
	for _, f := range r.manifest.Files {
		at := s.folder(r.of).Below(f.Name)
		err := s.checkSum(ctx, at, f.SHA256)
		if err == nil {
			whole = append(whole, f)
			continue
		}
		if err := r.note(at, err); err != nil {
			return err
		}
		r.lostRows += f.Rows
	}
	r.manifest.Files = whole
	return nil
}

// rescue finds whole files of answers that the manifest does not name, if anything is damaged: those
// of a lost manifest, and those that were merged into a damaged file and are still there. A file has its checksum in its name.
func (s *State) rescue(ctx context.Context, r *remains) error {
	if len(r.damages) == 0 {
		return nil
	}
	named := map[string]bool{}
	for _, f := range r.manifest.Files {
		named[f.Name] = true
	}
	for _, at := range r.damaged {
		named[strings.TrimPrefix(at.Key, s.folder(r.of).Key)] = true
	}
	infos, err := s.listAll(ctx, s.folder(r.of).Below("f/"))
	generation := r.manifest.lastGeneration()
	for _, info := range infos {
		name := strings.TrimPrefix(info.Key, s.folder(r.of).Key)
		if named[name] {
			continue
		}
		sum, size, err := s.sumOf(ctx, info.Location)
		if err != nil {
			return err
		}
		if whole := hex.EncodeToString(sum); fileName(whole) == name {
			generation++
			r.rescued = append(r.rescued, answerFile{Name: name, Generation: generation, Bytes: size, SHA256: whole})
		} else if r.lost {
			if err := r.note(info.Location, fmt.Errorf("%w: %s has another checksum", ErrDamaged, info.Location)); err != nil {
				return err
			}
		}
	}
	return err
}

// countRescued counts the answers of damaged files that are in older ones, too.
func (s *State) countRescued(ctx context.Context, r *remains) error {
	if r.lostRows == 0 || len(r.rescued) == 0 {
		return nil
	}
	for _, err := range newer(s.sorted(ctx, r.of, r.rescued, false), s.sorted(ctx, r.of, r.manifest.Files, false), func(answers.Item) {}) {
		if err != nil {
			return err
		}
		r.lostRows = max(r.lostRows-1, 0)
	}
	return nil
}

// remainingCalls reads the open calls, line by line if their file is damaged. A line of such a file is kept
// as a call that may have been billed, if its key is the one of its hash.
func (s *State) remainingCalls(ctx context.Context, r *remains) error {
	if r.lost {
		if err := s.newestCalls(ctx, r); err != nil {
			return err
		}
	}
	var err error
	if r.calls, err = s.readCalls(ctx, r.of, r.manifest); err == nil {
		return nil
	}
	at, calls := s.folder(r.of).Below(r.manifest.Calls.Name), r.manifest.Calls.Calls
	if err := r.note(at, err); err != nil {
		return err
	}
	r.manifest.Calls = nil
	data, _, err := s.store.ReadFile(ctx, at)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, objects.ErrChecksum) {
		return err
	}
	runs := map[string]bool{}
	for run := range r.manifest.ByRun {
		runs[run] = true
	}
	for line := range bytes.Lines(data) {
		var l callLine
		if json.Unmarshal(line, &l) != nil {
			continue
		}
		c := l.call(r.of)
		if c.Hash.String() != l.KeyHash || len(runs) > 0 && !runs[c.Run] {
			continue
		}
		r.calls = append(r.calls, answers.OpenCall{Hash: c.Hash, Question: c.Question, Address: c.Address, Run: c.Run, IdempotencyKey: c.IdempotencyKey,
			Attempts: max(c.Attempts, 1), Sent: c.Sent, State: answers.Unknown, MaybeBilled: true})
	}
	r.lostCalls = max(calls-int64(len(r.calls)), 0)
	return nil
}

// newestCalls names the newest file of calls, whose manifest is lost.
func (s *State) newestCalls(ctx context.Context, r *remains) error {
	infos, err := s.listAll(ctx, s.folder(r.of).Below("c/"))
	if err != nil || len(infos) == 0 {
		return err
	}
	at := infos[len(infos)-1].Location
	data, _, err := s.store.ReadFile(ctx, at)
	if err != nil && !errors.Is(err, objects.ErrChecksum) {
		return err
	}
	f := &callsFile{Name: strings.TrimPrefix(at.Key, s.folder(r.of).Key), Calls: int64(bytes.Count(data, []byte("\n")))}
	if sum := fmt.Sprintf("%x", objects.ContentOf(data, "").SHA256); strings.HasSuffix(f.Name, "-"+sum[:16]+".jsonl") {
		f.SHA256 = sum
	}
	r.manifest.Calls = f
	return nil
}

// remainingLog reads the segments of the log one by one.
func (s *State) remainingLog(ctx context.Context, r *remains) error {
	infos, err := s.listAll(ctx, s.folder(r.of).Below("log/"))
	if err != nil {
		return err
	}
	counted := answers.NewRemains(r.manifest.ByRun, r.calls)
	r.next = r.manifest.LogFrom
	begun := !r.lost // a lost manifest has what is before the first segment with changes
	for _, info := range infos {
		number, ok := segmentNumber(info)
		if !ok || number < r.manifest.LogFrom {
			continue
		}
		for ; begun && r.next < number; r.next++ {
			at := s.folder(r.of).Below(segmentName(r.next))
			counted.Miss(-1)
			if err := r.note(at, fmt.Errorf("%w: %s is missing", ErrDamaged, at)); err != nil {
				return err
			}
		}
		r.next = number + 1
		read, err := s.readAll(ctx, r.of, number, []objects.Info{info})
		if err == nil {
			err = r.takeSegment(info.Location, read[0], counted)
		}
		if errors.Is(err, ErrDamaged) {
			counted.Miss(s.sizeOf(ctx, info.Location))
		}
		begun = begun || err != nil || holdsChanges(read[0])
		if err := r.note(info.Location, err); err != nil {
			return err
		}
	}
	r.answers, r.open = counted.Found()
	lost, unnamed := counted.End()
	lostCalls := r.lostCalls
	if lost.AtMost != "" && len(unnamed) == 0 { // no run is known here
		r.lostCalls += lost.Intents
	}
	lost.Intents += lostCalls
	r.lostLog, r.unnamed = lost, unnamed
	return nil
}

// sizeOf is the size of a damaged segment, if it has the one that it says; else it is negative.
func (s *State) sizeOf(ctx context.Context, at objects.Location) int64 {
	text, _, err := s.store.ReadFile(ctx, at)
	if err != nil || !appendlog.HasItsSize(text) {
		return -1
	}
	return int64(len(text))
}

// takeSegment keeps a segment. It is damage if it does not follow the one before it.
func (r *remains) takeSegment(at objects.Location, g segment, counted *answers.Remains) error {
	var follows error
	if n := len(r.segments); n > 0 && r.segments[n-1].next.Number == g.at.Number && !g.Fence && g.at != r.segments[n-1].next {
		follows = fmt.Errorf("%w: %s does not follow the segment before it", ErrDamaged, at)
		counted.Miss(-1)
	}
	if holdsChanges(g) {
		if err := counted.Take(g.record); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	r.segments = append(r.segments, g)
	return follows
}

// remainingLate reads the segments that came too late for the log. The question of an answer that is lost
// has an open call.
func (s *State) remainingLate(ctx context.Context, r *remains) error {
	infos, err := s.listAll(ctx, s.folder(r.of).Below("late/"))
	if err != nil {
		return err
	}
	for _, info := range infos {
		read, err := s.readLate(ctx, []objects.Info{info})
		if err == nil && len(read) > 0 {
			r.late, r.lateAt = append(r.late, read[0]), append(r.lateAt, info.Location)
		}
		if err := r.note(info.Location, err); err != nil {
			return err
		}
	}
	return nil
}
