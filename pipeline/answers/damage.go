package answers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/keyed"
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

// Inspect reads all that is stored in dir, and changes nothing. Of options only Disk counts.
func Inspect(ctx context.Context, dir string, o Options) (found Inspection, err error) {
	in := o.folder(dir)
	inUse, err := isInUse(in)
	if err == nil && inUse {
		err = fmt.Errorf("%s: %w", in.Path("."), filelock.ErrLocked)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	s, err := salvageFrom(ctx, in)
	if err != nil {
		return found, err
	}
	found.Damages, found.Lost = s.damages, s.lost
	for _, f := range s.files {
		found.Answers += f.rows
	}
	for _, g := range s.logs {
		found.Answers += int64(len(g.answers)) // also those that replace an older one
	}
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
	logs     []*generation
	next     appendlog.Position
	damages  []error
	damaged  []string // files, for their damage

	manifests []string // damaged ones, whose copies are whole
	lost      Lost
	unnamed   map[string]int64 // calls by the names of their runs that are kept as spent

	have   map[string]runTotal // of runs by name, after the last record that was read
	open   map[Hash]bool       // calls without an answer
	gap    bool                // records are missing before the next one
	most   int64               // calls that these have begun, if that is known
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
	return &salvage{unnamed: map[string]int64{}, have: map[string]runTotal{}, seen: map[string]missing{}, open: map[Hash]bool{}, calls: map[Hash]*OpenCall{}}
}

// salvageFrom reads what can be read of a store.
func salvageFrom(ctx context.Context, in disk.Folder) (*salvage, error) {
	s := newSalvage()
	if err := s.readManifests(in); err != nil || s.manifest == nil {
		return s, err
	}
	m := s.manifest
	for _, r := range m.Runs {
		s.have[r.Name] = r
	}
	for _, f := range m.Files {
		if err := s.readAnswers(ctx, in, f); err != nil {
			return nil, err
		}
	}
	if m.Calls != nil {
		s.readCalls(in, *m.Calls)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return s, s.readLogs(in)
}

// readManifests reads the newest manifest that can be read, and both of its files.
func (s *salvage) readManifests(in disk.Folder) error {
	if _, err := newest(in); err != nil && !errors.Is(err, appendlog.ErrDamaged) {
		return err
	}
	l, err := list(in)
	if err != nil {
		return err
	}
	for _, number := range slices.Backward(l.manifests) {
		for _, name := range []string{manifestName(number), copyName(number)} {
			switch m, err := readManifestIn(in, name); {
			case err == nil:
				s.manifest = m
			case isMissing(err):
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
	if len(l.manifests) == 0 {
		s.damages = append(s.damages, fmt.Errorf("stored answers: %w", appendlog.Missing(in.Path(manifestName(1)))))
	}
	return nil
}

// isMissing reports whether an error says that a file is missing: a kill may come between a manifest and its
// copy.
func isMissing(err error) bool {
	damage, is := errors.AsType[*appendlog.Damage](err)
	return is && damage.Offset < 0
}

// damage notes the damage of a file.
func (s *salvage) damage(in disk.Folder, of fileRecord, err error) {
	if !errors.Is(err, appendlog.ErrDamaged) {
		err = fmt.Errorf("%w: %w", appendlog.ErrDamaged, err)
	}
	s.damages = append(s.damages, fmt.Errorf("%s: %w", in.Path(of.Name), err))
	s.damaged = append(s.damaged, of.Name)
}

// readAnswers reads a file of answers.
func (s *salvage) readAnswers(ctx context.Context, in disk.Folder, of fileRecord) error {
	found := salvagedFile{fileRecord: of}
	defer func() { s.files = append(s.files, found) }()
	credits := of.credits()
	f, err := openData(in, of, answerFields)
	if err == nil {
		if _, _, err = f.Verify(ctx); ctx.Err() != nil {
			return errors.Join(ctx.Err(), f.File.Close())
		}
		for i := range f.readable() {
			found.rows++
			if i.Credits != nil {
				credits -= *i.Credits
			}
		}
		err = errors.Join(err, f.File.Close())
	}
	if err != nil {
		s.damage(in, of, err)
		s.lost.Answers += of.Rows - found.rows
		s.lost.Credits += credits
	}
	return nil
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
func (s *salvage) readCalls(in disk.Folder, of fileRecord) {
	lost := maps.Clone(of.Runs)
	f, err := openData(in, of, callFields)
	if err == nil {
		for row := range uint32(f.File.Rows()) {
			c, unreadable := f.tryCall(row)
			if unreadable != nil {
				err = unreadable
				continue
			}
			s.calls[c.Hash], s.open[c.Hash] = c, true
			lost[c.Run]--
		}
		err = errors.Join(err, f.File.CheckAll(), f.File.Close())
	}
	if err == nil {
		return
	}
	s.damage(in, of, err)
	for run, calls := range lost {
		s.lost.Intents += calls
		s.unnamed[run] += calls
	}
}

func (f *dataFile) tryCall(row uint32) (c *OpenCall, err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	c = f.call(row, true)
	if c.Question.Hash() != c.Hash {
		err = errors.New("a call has another question than its key says")
	}
	return c, err
}

// readLogs reads the logs that the manifest lacks.
func (s *salvage) readLogs(in disk.Folder) error {
	l, err := list(in)
	if err != nil {
		return err
	}
	s.next = s.manifest.Log.position()
	begun := s.manifest.Log.Open
	for _, number := range l.logs {
		if number < s.manifest.Log.Number {
			continue
		}
		if number > s.next.Number {
			s.lose(missingLog(in, s.next.Number))
			s.next = appendlog.Position{Number: number}
		}
		if begun, err = s.read(in, number, begun); err != nil {
			return err
		}
	}
	if begun && !slices.Contains(l.logs, s.next.Number) {
		s.lose(missingLog(in, s.next.Number))
	}
	if s.missed.gaps > 0 {
		s.loseEnd(in)
	}
	return nil
}

func (s *salvage) lose(damage error) {
	s.damages = append(s.damages, damage)
	s.miss(0)
}

// miss notes that records are missing before the next one, which have begun some calls at most; 0 if that is not
// known.
func (s *salvage) miss(most int64) {
	s.gap, s.most = true, s.most+most
	s.missed = missing{s.missed.gaps + 1, s.missed.most + most}
}

// read reads a file of the log. It reports whether the log goes on in another one.
func (s *salvage) read(dir disk.Folder, number int64, begun bool) (ended bool, err error) {
	g, last := newGeneration(number), s.next.Number-1
	content, damages, err := appendlog.Salvage(dir, logName(number), s.next, begun, func(number int64, record []byte) error {
		if number > last+1 {
			s.miss(0)
		}
		last = max(last, number)
		return s.take(record, g)
	})
	if err != nil {
		return false, fmt.Errorf("stored answers: %w", err)
	}
	for _, damage := range damages {
		s.damages = append(s.damages, fmt.Errorf("stored answers: %w", damage))
	}
	if len(damages) > 0 {
		s.damaged = append(s.damaged, logName(number))
	}
	if len(damages) > 0 && content.Cut {
		s.miss(0)
	}
	g.end, s.next = content.Next, content.Next
	s.logs = append(s.logs, g)
	return content.Ended, nil
}

// take makes the changes of a record. If records are missing before it, its totals say what they had.
func (s *salvage) take(record []byte, g *generation) error {
	own := &counted{open: s.open, added: map[string]runTotal{}, totals: map[string]runTotal{}}
	if err := errors.Join(readGroup(record, own), readGroup(record, g)); err != nil {
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
			s.lost.Answers += answers
			s.lost.Credits += max(0, total.Credits-added.Credits-before.Credits)
			s.lost.Intents += intents
			s.unnamed[name] += intents - answers // each of the answers has ended a call
		}
		s.have[name], s.seen[name] = total, s.missed
	}
	if len(own.totals) > 0 {
		s.gap, s.most = false, 0
	}
	for _, run := range own.known {
		if s.lost.Intents > 0 {
			s.lost.Intents--
			s.unnamed[run]--
		}
	}
}

// loseEnd counts what missing records may have had of runs of which no record follows: what they were allowed to
// begin, and had not begun before.
func (s *salvage) loseEnd(dir disk.Folder) {
	allowed, err := readAllowance(dir)
	if err != nil {
		if s.gap {
			s.loseMost(2*(maxLogBytes/leastIntent+maxGroup), byLogSize)
		}
		return
	}
	for _, r := range allowed {
		if s.seen[r.Name].gaps == s.missed.gaps {
			continue
		}
		s.lost.AtMost = byAllowance
		calls := max(0, r.Intents-s.have[r.Name].Intents)
		s.unnamed[r.Name] += calls
		s.lost.Intents += calls
	}
}

// loseMost counts calls of which it is not known which run has begun them.
func (s *salvage) loseMost(most int64, by Bound) {
	runs := map[string]bool{}
	for _, g := range s.logs {
		for name := range g.runs {
			runs[name] = true
		}
	}
	for name := range s.have {
		if len(runs) == 0 || runs[name] {
			s.unnamed[name] += most
		}
	}
	s.lost.Intents += most
	s.lost.AtMost = by
}

// counted counts what a record adds to its runs.
type counted struct {
	open   map[Hash]bool
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

// damagedSuffix ends the name of a damaged file that was set aside.
const damagedSuffix = ".damaged"

// Repair keeps all that can be read of a folder of answers. It sets damaged files aside, whose
// names it returns, and counts what they had as spent by their runs. Without a manifest nothing can be
// repaired.
func Repair(ctx context.Context, dir string, o Options) (setAside []string, err error) {
	in := o.folder(dir)
	s := newStore(in, o)
	if s.lock, err = in.Lock(); err != nil {
		return nil, fmt.Errorf("stored answers: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	found, err := salvageFrom(ctx, in)
	if err != nil {
		return nil, err
	}
	if found.manifest == nil {
		return nil, fmt.Errorf("%w; it cannot be repaired: bring it back from a backup, or move %s away to begin with no stored answers", errors.Join(found.damages...), in.Path("."))
	}
	if s.files, err = openFiles(in, &manifest{}, nil); err != nil {
		return nil, err
	}
	s.manifest = found.manifest
	for _, name := range slices.Concat(found.manifests, found.damaged) { // before others take their place
		switch err := keepAside(in, name); {
		case err == nil:
			setAside = append(setAside, in.Path(name+damagedSuffix))
		case !errors.Is(err, fs.ErrNotExist):
			return setAside, err
		}
	}
	if err := s.applySalvage(ctx, found); err != nil {
		return setAside, err
	}
	for _, name := range found.manifests {
		if number, _ := manifestNumber(name); number > s.manifest.Number {
			err = errors.Join(err, removeIfThere(in, name))
		}
	}
	return setAside, errors.Join(err, s.removeLogs(), in.Sync())
}

// keepAside copies a damaged file.
func keepAside(in disk.Folder, name string) error {
	from, err := in.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := atomicfile.CreateIn(in, name+damagedSuffix, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		return errors.Join(err, to.Abort())
	}
	return to.Commit()
}

// applySalvage writes what was read of damaged files, and what they had.
func (s *Store) applySalvage(ctx context.Context, found *salvage) error {
	all := newGeneration(0)
	for _, g := range found.logs {
		all.add(g)
	}
	all.end = appendlog.Position{Number: found.next.Number}
	for h, c := range all.calls {
		if found.calls[h] = c; c == nil {
			delete(found.calls, h)
		}
	}
	all.open = map[Hash]*OpenCall{}
	for h, c := range found.calls {
		now := *c
		if _, changed := all.bodies[h]; !changed && now.Body != nil {
			all.bodies[h] = now.Body
		}
		if now.Body = nil; now.State == UnderWay {
			now.State, now.MaybeBilled = Unknown, true
		}
		all.open[h] = &now
	}
	return s.sealSalvage(ctx, found, all)
}

// sealSalvage publishes a manifest that names whole files, and those that have what can be read of the others.
func (s *Store) sealSalvage(ctx context.Context, found *salvage, all *generation) error {
	var named, made []fileRecord
	for _, of := range found.files {
		if !slices.Contains(found.damaged, of.Name) {
			named = append(named, of.fileRecord)
			continue
		}
		f, err := openData(s.in, of.fileRecord, answerFields)
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
			total := found.have[run]
			total.Name = run
			total.Answers, total.Unpriced = total.Answers+max(calls, 0), total.Unpriced+max(calls, 0)
			next.setRun(total)
		}
		next.Log = logState{Number: found.next.Number}
	})
}
