package answers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/internal/store"
)

// Inspection is what can be read of a folder of answers, and what is damaged.
type Inspection struct {
	Answers, Calls int64 // that can be read; calls without an answer
	Damages        []error
	Lost           Lost
}

// Lost is what damaged files of the log had.
type Lost struct {
	// Answers are stored answers that are lost, and Credits what they cost.
	Answers, Credits int64
	// Intents are calls whose questions cannot be named. The next run buys their answers again.
	Intents int64
	// AtMost means that the end of the log is lost, so that Intents is a bound, and says what bounds it.
	AtMost Bound
}

// Bound is what bounds the calls of records that are lost.
type Bound string

const (
	byAllowance Bound = "before it begins them, a run notes how many calls it may begin"
	byLogSize   Bound = "so many are in two files of a log at most; the note that says less is lost, too"
	byGroups    Bound = "so many are in a segment of its size at most"
)

// Whole reports whether nothing is damaged.
func (i Inspection) Whole() bool { return len(i.Damages) == 0 }

// Inspect reads all that is stored in places, and changes nothing. The error is ErrNone if none of them has answers.
func Inspect(ctx context.Context, places ...Place) (found Inspection, err error) {
	none := 0
	for _, p := range places {
		one, err := inspect(ctx, p)
		if errors.Is(err, ErrNone) {
			if none++; none == len(places) {
				return found, err
			}
			continue
		}
		if err != nil {
			return found, err
		}
		found.add(one)
	}
	return found, nil
}

func (i *Inspection) add(more Inspection) {
	i.Answers, i.Calls, i.Damages = i.Answers+more.Answers, i.Calls+more.Calls, append(i.Damages, more.Damages...)
	i.Lost.Answers, i.Lost.Credits, i.Lost.Intents = i.Lost.Answers+more.Lost.Answers, i.Lost.Credits+more.Lost.Credits, i.Lost.Intents+more.Lost.Intents
	i.Lost.AtMost = cmp.Or(i.Lost.AtMost, more.Lost.AtMost)
}

func inspect(ctx context.Context, p Place) (found Inspection, err error) {
	inUse, err := p.isInUse()
	if err == nil && inUse {
		err = fmt.Errorf("%s: %w", p, filelock.ErrLocked)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	s := newSalvage()
	if err := s.read(ctx, p, p.newLog(Options{}), false); err != nil {
		return found, err
	}
	found.Damages, found.Lost = s.damages, s.lost
	for _, f := range s.files {
		found.Answers += f.rows
	}
	found.Answers += int64(len(s.later.answers)) // also those that replace an older one
	found.Calls = int64(len(s.open))
	return found, nil
}

// leastIntent is less than the bytes of any intent in a log.
const leastIntent = 90

// salvage is what can be read of a store, damaged or not.
type salvage struct {
	manifest *manifest // nil if none can be read
	files    []salvagedFile
	calls    map[Hash]*OpenCall // of the file of calls
	later    *generation        // of the log
	next     appendlog.Position
	damages  []error
	damaged  []string // files, for their damage

	late      [][]byte // records that came too late for the log
	lateFiles []string
	manifests []string // damaged ones
	number    int64    // of the newest, damaged or not
	lost      Lost
	unnamed   map[string]int64    // calls by the names of their runs that are kept as spent
	gone      map[string]Spending // what the answers of lost records have cost, by runs that have it in their totals
	scopes    map[string]Scope    // that runs have asked about

	have   map[string]runTotal // of runs by name, after the last record that was read
	open   map[Hash]bool       // calls without an answer
	gap    bool                // records are missing before the next one
	missed missing             // before the last record that was read
	seen   map[string]missing  // before the last record that has the total of a run
}

// missing counts how often records are missing, and the calls that these have begun, as far as that is known.
type missing struct {
	gaps int
	most int64
}

// salvagedFile is a file of answers of which some rows can be read.
type salvagedFile struct {
	fileRecord
	rows int64 // that can be read
}

func newSalvage() *salvage {
	return &salvage{unnamed: map[string]int64{}, gone: map[string]Spending{}, scopes: map[string]Scope{}, have: map[string]runTotal{}, seen: map[string]missing{}, open: map[Hash]bool{}, calls: map[Hash]*OpenCall{}, later: newGeneration(0)}
}

// read reads what can be read of a place. To take it over, it ends the log of earlier processes first.
func (s *salvage) read(ctx context.Context, p Place, log changeLog, takeOver bool) error {
	if err := s.readManifests(ctx, p); err != nil || s.manifest == nil {
		return err
	}
	if takeOver {
		if fence, err := log.takeOver(ctx, s.manifest.Log); err != nil {
			return err
		} else if fence > 0 {
			*s = *newSalvage()
			return s.read(ctx, p, log, false)
		}
	}
	m := s.manifest
	for _, r := range m.Runs {
		s.have[r.Name] = r
	}
	for _, f := range m.Files {
		if err := s.readAnswers(ctx, p, f); err != nil {
			return err
		}
	}
	if m.Calls != nil {
		if err := s.readCalls(ctx, p, *m.Calls); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return log.salvage(ctx, s)
}

// readManifests reads the newest manifest that can be read, and both of its files.
func (s *salvage) readManifests(ctx context.Context, p Place) error {
	last, err := newest(ctx, p)
	if err != nil && !errors.Is(err, appendlog.ErrDamaged) {
		return err
	}
	l, err := p.list(ctx)
	if err != nil {
		return err
	}
	if last != nil && !slices.Contains(l.manifests, last.Number) { // the list is late
		l.manifests = append(l.manifests, last.Number)
	}
	for _, number := range slices.Backward(l.manifests) {
		s.number = max(s.number, number)
		for _, name := range []string{manifestName(number), copyName(number)} {
			switch m, err := readManifestFile(ctx, p, name); {
			case err == nil:
				s.manifest = m
			case store.IsMissing(err): // a kill may come between a manifest and its copy
			case errors.Is(err, appendlog.ErrDamaged):
				s.damages, s.manifests = append(s.damages, err), append(s.manifests, name)
			default:
				return err
			}
		}
		if s.manifest != nil {
			return nil
		}
	}
	if len(s.damages) == 0 {
		s.damages = append(s.damages, fmt.Errorf("stored answers: %w", appendlog.Missing(p.Path(manifestName(max(s.number, 1))))))
	}
	return nil
}

// damage notes the damage of a file. What a disk cannot read is damaged; if a store elsewhere does not answer,
// it returns the error.
func (s *salvage) damage(p Place, of fileRecord, err error) error {
	if !errors.Is(err, appendlog.ErrDamaged) {
		if p.isShared() && !errors.Is(err, keyed.ErrDamaged) && !errors.Is(err, errOtherQuestion) {
			return err
		}
		err = fmt.Errorf("%w: %w", appendlog.ErrDamaged, err)
	}
	s.damages = append(s.damages, fmt.Errorf("%s: %w", p.Path(of.Name), err))
	s.damaged = append(s.damaged, of.Name)
	return nil
}

// readAnswers reads a file of answers.
func (s *salvage) readAnswers(ctx context.Context, p Place, of fileRecord) error {
	found := salvagedFile{fileRecord: of}
	defer func() { s.files = append(s.files, found) }()
	credits := of.credits()
	f, err := openData(ctx, p, of, answerFields)
	if err == nil {
		if _, _, err = f.Verify(ctx); ctx.Err() != nil {
			return errors.Join(ctx.Err(), f.File.Close())
		}
		for i := range f.readable() {
			found.rows++
			s.scopes[i.Run] = i.Scope
			if i.Credits != nil {
				credits -= *i.Credits
			}
		}
		err = errors.Join(err, f.File.Close())
	}
	if err == nil {
		return nil
	}
	s.lost.Answers += of.Rows - found.rows
	s.lost.Credits += credits
	return s.damage(p, of, err)
}

// credits are what the answers of a file have cost.
func (f fileRecord) credits() (sum int64) {
	for _, t := range f.Scopes {
		sum += t.Credits
	}
	return sum
}

// readable lists the answers of a file that can be read.
func (f *dataFile) readable() iter.Seq[Item] {
	return func(yield func(Item) bool) {
		var arena keyed.Arena
		last := Hash{}
		for row := range uint32(f.File.Rows()) {
			arena.Reset()
			i, err := f.tryItem(row, &arena)
			if err != nil || i.Hash.Compare(last) <= 0 || i.Question.Hash() != i.Hash {
				continue
			}
			if last = i.Hash; !yield(i) {
				return
			}
		}
	}
}

func (f *dataFile) tryItem(row uint32, arena *keyed.Arena) (i Item, err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	texts := make([]string, answerFields)
	f.Read(row, arena, texts)
	return itemOf(texts, true, &keyed.Arena{}), nil
}

// readCalls reads the file of calls. A call that is lost may have been billed.
func (s *salvage) readCalls(ctx context.Context, p Place, of fileRecord) error {
	lost := maps.Clone(of.Runs)
	f, err := openData(ctx, p, of, callFields)
	if err == nil {
		for row := range uint32(f.File.Rows()) {
			c, unreadable := f.tryCall(row)
			if unreadable != nil {
				err = unreadable
				continue
			}
			s.calls[c.Hash], s.open[c.Hash], s.scopes[c.Run] = c, true, c.Scope
			lost[c.Run]--
		}
		err = errors.Join(err, f.File.CheckAll(), f.File.Close())
	}
	if err == nil {
		return nil
	}
	for run, calls := range lost {
		s.lost.Intents += calls
		s.unnamed[run] += calls
	}
	return s.damage(p, of, err)
}

func (f *dataFile) tryCall(row uint32) (c *OpenCall, err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	c = f.call(row, true)
	if c.Question.Hash() != c.Hash {
		err = errOtherQuestion
	}
	return c, err
}

var errOtherQuestion = errors.New("a call has another question than its key says")

// lose notes damage before the next record, with which calls were lost: so many at most; 0 if that is not known.
func (s *salvage) lose(most int64, damage error) {
	s.damages = append(s.damages, damage)
	s.miss(most)
}

// miss notes that records are missing before the next one, which have begun some calls at most; 0 if that is not
// known.
func (s *salvage) miss(most int64) {
	s.gap = true
	s.missed = missing{s.missed.gaps + 1, s.missed.most + most}
}

// take makes the changes of a record. If records are missing before it, its totals say what they had.
func (s *salvage) take(record []byte) error {
	own := &counted{open: s.open, scopes: s.scopes, added: map[string]runTotal{}, totals: map[string]runTotal{}}
	if err := errors.Join(readGroup(record, own), readGroup(record, s.later)); err != nil {
		return err
	}
	s.count(own)
	return nil
}

// count compares the totals of a record with those before it. A record has the totals of its own runs alone.
func (s *salvage) count(own *counted) {
	for name, total := range own.totals {
		if was := s.seen[name]; was.gaps < s.missed.gaps {
			before, added := s.have[name], own.added[name]
			answers, intents := max(0, total.Answers-added.Answers-before.Answers), max(0, total.Intents-added.Intents-before.Intents)
			if most := s.missed.most - was.most; most > 0 {
				intents = min(intents, most)
			}
			gone := Spending{Answers: answers, Unpriced: max(0, total.Unpriced-added.Unpriced-before.Unpriced), Credits: max(0, total.Credits-added.Credits-before.Credits)}
			s.gone[name] = s.gone[name].Plus(gone)
			s.lost.Answers += answers
			s.lost.Credits += gone.Credits
			s.lost.Intents += intents
			s.unnamed[name] += intents - answers // each of the answers has ended a call
		}
		s.have[name], s.seen[name] = total, s.missed
	}
	if len(own.totals) > 0 {
		s.gap = false
	}
	for _, run := range own.known {
		if s.lost.Intents > 0 {
			s.lost.Intents--
			s.unnamed[run]--
		}
	}
}

// loseMost counts calls of which it is not known which run has begun them.
func (s *salvage) loseMost(most int64, by Bound) {
	for name := range s.have {
		if _, is := s.later.runs[name]; is || len(s.later.runs) == 0 {
			s.unnamed[name] += most
		}
	}
	s.lost.Intents += most
	s.lost.AtMost = by
}

// scopeOf is what a run has asked about, which has one payer for each resolver; another one of the place if all of that
// is lost.
func (s *salvage) scopeOf(run string) Scope {
	if scope, known := s.scopes[run]; known {
		return scope
	}
	for _, d := range slices.Backward(s.manifest.Days) {
		return d.Scope
	}
	for _, name := range slices.Sorted(maps.Keys(s.scopes)) {
		return s.scopes[name]
	}
	return Scope{}
}

// counted counts what a record adds to its runs.
type counted struct {
	open   map[Hash]bool
	scopes map[string]Scope
	added  map[string]runTotal
	totals map[string]runTotal // after the record
	known  []string            // the runs of calls whose intents are in no record that was read
}

func (c *counted) add(run string, what runTotal) {
	sum := c.added[run]
	sum.Intents, sum.Spending = sum.Intents+what.Intents, sum.Plus(what.Spending)
	c.added[run] = sum
}

func (c *counted) setCall(now *OpenCall) {
	c.scopes[now.Run] = now.Scope
	switch {
	case c.open[now.Hash]:
	case now.Attempts == 1 && now.State == UnderWay:
		c.add(now.Run, runTotal{Intents: 1})
	default:
		c.known = append(c.known, now.Run)
	}
	c.open[now.Hash] = true
}

func (c *counted) closeCall(h Hash) { delete(c.open, h) }

func (c *counted) addAnswer(a *Item) {
	c.scopes[a.Run] = a.Scope
	if !c.open[a.Hash] {
		c.known = append(c.known, a.Run)
	}
	delete(c.open, a.Hash)
	var spent Spending
	spent.add(a.Answer)
	c.add(a.Run, runTotal{Spending: spent})
}

func (c *counted) setBody(Hash, KeptBody) {}
func (c *counted) setRun(r runTotal)      { c.totals[r.Name] = r }

// Repair keeps all that can be read of places. It sets damaged files aside, whose
// names it returns, and counts what they had as spent by their runs. Without a manifest nothing can be
// repaired.
func Repair(ctx context.Context, places ...Place) (setAside []string, err error) {
	var errs []error
	for _, p := range places {
		aside, err := repair(ctx, p)
		setAside, errs = append(setAside, aside...), append(errs, err)
	}
	return setAside, errors.Join(errs...)
}

func repair(ctx context.Context, p Place) (setAside []string, err error) {
	s := newStore(p, Options{})
	if s.lock, err = p.lease(ctx); err != nil {
		return nil, fmt.Errorf("stored answers: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	found := newSalvage()
	if err := found.read(ctx, p, s.log, true); errors.Is(err, ErrNone) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	switch {
	case found.manifest == nil:
		return nil, fmt.Errorf("%w; it cannot be repaired: bring it back from a backup, or move %s away to begin with no stored answers", errors.Join(found.damages...), p)
	case len(found.damages) == 0 && p.isShared():
		return nil, nil
	}
	if s.files, err = openFiles(ctx, p, &manifest{}, nil); err != nil {
		return nil, err
	}
	s.manifest = found.manifest
	s.manifest.Number = found.number
	if setAside, err = store.SetAside(ctx, p, slices.Concat(found.manifests, found.damaged)...); err != nil {
		return setAside, err
	}
	if err := s.applySalvage(ctx, found); err != nil {
		return setAside, err
	}
	gone := slices.DeleteFunc(slices.Concat(found.damaged, found.lateFiles), s.manifest.names)
	return setAside, errors.Join(s.log.removeBelow(ctx, found.next.Number+1), p.Remove(ctx, gone...))
}

// applySalvage writes what was read of damaged files, and what they had.
func (s *recent) applySalvage(ctx context.Context, found *salvage) error {
	all := found.later
	all.end = appendlog.Position{Number: found.next.Number}
	for h, c := range all.calls {
		if found.calls[h] = c; c == nil {
			delete(found.calls, h)
		}
	}
	for h, c := range found.calls {
		s.memtable.setCall(h, c)
	}
	for name, r := range found.have {
		s.memtable.runs[name] = r
	}
	for _, record := range found.late {
		if err := takeLate(record, all, s.memtable); err != nil {
			return err
		}
	}
	all.open = map[Hash]*OpenCall{}
	for h, c := range s.memtable.calls {
		now := *c
		if _, changed := all.bodies[h]; !changed && now.Body != nil {
			all.bodies[h] = now.Body
		}
		now.Body = nil
		all.open[h] = now.abandoned()
	}
	return s.sealSalvage(ctx, found, all)
}

// sealSalvage publishes a manifest that names whole files, and those that have what can be read of the others.
func (s *recent) sealSalvage(ctx context.Context, found *salvage, all *generation) error {
	var named, made []fileRecord
	for _, of := range found.files {
		if !slices.Contains(found.damaged, of.Name) {
			named = append(named, of.fileRecord)
			continue
		}
		f, err := openData(ctx, s.in, of.fileRecord, answerFields)
		if err != nil {
			continue // nothing of it can be read
		}
		files, err := s.writeAnswers(ctx, func(yield func(Item, error) bool) {
			for i := range f.readable() {
				if !yield(i, nil) {
					return
				}
			}
		})
		if err := errors.Join(err, f.File.Close()); err != nil {
			return err
		}
		for i := range files {
			files[i].Generation = of.Generation
		}
		named, made = append(named, files...), append(made, files...)
	}
	files, err := s.writeAnswers(ctx, itemsOf(all))
	if err != nil {
		return err
	}
	return s.publishWith(ctx, append(made, files...), all, func(next *manifest) {
		next.Files = named
		next.addGeneration(files)
		next.add(all)
		for run, calls := range found.unnamed {
			total, later := all.runs[run]
			if !later {
				total = found.have[run]
			}
			total.Name = run
			total.Answers, total.Unpriced = total.Answers+max(calls, 0), total.Unpriced+max(calls, 0)
			next.setRun(total)
			found.gone[run] = found.gone[run].Plus(Spending{Answers: max(calls, 0), Unpriced: max(calls, 0)})
		}
		for run, spent := range found.gone {
			if spent != (Spending{}) { // on which day is lost, too
				next.addDay(dayOf{DayOf(next.CreatedAt), found.scopeOf(run)}, spent)
			}
		}
		next.Log = logState{Number: found.next.Number}
	})
}
