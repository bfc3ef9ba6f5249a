package answers

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/internal/longlock"
)

// Changes go to a log first: a group of them costs one small write and one
// fsync, or one request. Answers go into files in batches of tens of thousands. A call
// that begins and ends in one generation of the log is in no file of calls.

// changeLog is the log of a store. Its records are numbered. One goroutine uses it at a time.
type changeLog interface {
	// takeOver ends the log of earlier processes: they can append nothing any more. It returns the number of the
	// record that ends it; 0 where a lock keeps them away.
	takeOver(ctx context.Context, from logState) (int64, error)
	// read calls use for the records that a manifest lacks, in order. It returns where the log goes on.
	read(ctx context.Context, from logState, use func(record []byte) error) (appendlog.Position, error)
	// readLate calls use for records that an earlier process could not append any more. Once they are in
	// files, removeLate removes them.
	readLate(ctx context.Context, use func(record []byte) error) (late []string, err error)
	// begin lets the log go on behind the records of earlier processes.
	begin(at appendlog.Position) error
	// append adds a record. It is durable when append returns.
	append(record []byte) error
	// full reports whether the records since the last cut should move into files.
	full() bool
	// cut keeps the records before it apart from the next ones, and returns the position between them. The
	// totals are those of the runs in the records before.
	cut(totals []byte) (appendlog.Position, error)
	// removeBelow removes the records below a number, which are in files.
	removeBelow(ctx context.Context, number int64) error
	// allow notes before the next record how many calls runs may have begun with it.
	allow(runs []runTotal) error
	// close ends the use of the log. done says that all of it is in files.
	close(done bool) error
	// hasFile reports whether a file of the log exists at any time while the store is open.
	hasFile() bool
	// salvage reads what a damaged log has.
	salvage(ctx context.Context, s *salvage) error
}

// maxLogBytes is the usual Options.LogBytes.
const maxLogBytes = 8 << 20

// maxGroup bounds the changes of one group. A call is two of them, and on S3 a
// group takes some 27 ms: with 256, no more than 4,700 calls a second would go
// through.
const maxGroup = 1024

// recent has the changes that are in the log, and in no file yet.
type recent struct {
	*published
	*memtable
	log    changeLog
	logMu  longlock.Lock // held while the log and the memtable change
	staged *changeSet    // of the current group
	began  time.Time     // when the last group began; of the queue's goroutine
	moving chan error    // the result of the move of memtable.previous; nil while none runs
}

// reset drops what was read of the place.
func (s *recent) reset() {
	s.memtable, s.manifest = newMemtable(), &manifest{Log: logState{Number: appendlog.First.Number}}
}

// takeOverTries bounds how often takeOver begins again.
const takeOverTries = 5

// takeOver takes over what earlier processes have left. In a shared place, one of them may still publish a
// manifest with what it had in the log: then it begins again.
func (s *recent) takeOver(ctx context.Context) error {
	for tries := 1; ; tries++ {
		err := s.tryTakeOver(ctx)
		if err == nil || !s.in.isShared() || tries == takeOverTries {
			return err
		}
		seen := s.manifest.Number
		now, other := newest(ctx, s.in)
		if other != nil || now.Number == seen && !errors.Is(err, errLogMoved) {
			return err
		}
		if err := s.files.release(); err != nil {
			return err
		}
		s.files = nil
		s.reset()
	}
}

func (s *recent) tryTakeOver(ctx context.Context) (err error) {
	if err := s.readNewest(ctx); err != nil {
		return err
	}
	if s.manifest.Number > 0 && s.in.disk != nil { // a killed process may not have synced its name, and what it replaces is removed
		if err := s.in.disk.Sync(); err != nil {
			return err
		}
	}
	fence, err := s.log.takeOver(ctx, s.manifest.Log)
	if err == nil && fence > 0 {
		err = s.readNewest(ctx)
	}
	if err != nil {
		return err
	}
	if s.files, err = openFiles(ctx, s.in, s.manifest, nil); err != nil {
		return err
	}
	for _, r := range s.manifest.Runs {
		s.memtable.runs[r.Name] = r
	}
	calls, err := s.files.readCalls()
	if err != nil {
		return damaged(err)
	}
	for _, c := range calls {
		s.memtable.setCall(c.Hash, c)
	}
	return s.takeLog(ctx)
}

// look reads what is in the place, for changes in memory.
func (s *recent) look(ctx context.Context) error {
	c, err := lookInto(ctx, s.in)
	if errors.Is(err, ErrNone) {
		s.files, err = openFiles(ctx, s.in, s.manifest, nil)
		return err
	}
	if err != nil {
		return err
	}
	s.files, s.manifest.Days, s.memtable.current = c.files, c.days, c.later
	s.manifest.Runs = c.runs
	for h, call := range c.calls {
		s.memtable.setCall(h, call.abandoned())
	}
	for _, r := range c.runs {
		s.memtable.runs[r.Name] = r
	}
	maps.Copy(s.memtable.runs, c.later.runs)
	s.memtable.current.number = s.manifest.Log.Number
	return nil
}

// commit makes a group's changes and returns the result to every caller.
func (s *recent) commit(group []*groupcommit.Change[func(*changeSet) error]) {
	s.began = time.Now()
	s.logMu.Lock()
	defer s.logMu.Unlock()
	s.staged.reset()
	results := make([]error, len(group))
	for i, c := range group {
		if results[i] = c.Take(); results[i] == nil {
			results[i] = c.What(s.staged)
		}
	}
	if record := s.staged.encode(); record != nil {
		if err := fault(s.store(record)); err != nil {
			for i := range results { // also for refused changes: the change that refused them was not made
				results[i] = err
			}
		} else {
			s.staged.publish()
		}
	}
	for i, c := range group {
		c.Settle(results[i])
	}
}

// lingers is the time between two records of the log of a shared place while there is no hurry: with those of the
// lease and of files, at most 10 requests a second.
const lingers = 105 * time.Millisecond

// DelayWrites makes changes in a shared place wait for others, so that fewer requests go there, except
// while urgent says that calls wait for places. Each call then takes some 50 ms longer on
// average. urgent is called often.
func (s *Store) DelayWrites(urgent func() bool) {
	if !s.in.isShared() {
		return
	}
	s.queue.DelayWrites(func() time.Duration {
		if urgent() {
			return 0
		}
		return lingers - time.Since(s.began)
	})
}

// store makes the changes of a group durable. The caller holds logMu.
func (s *recent) store(record []byte) error {
	if s.options.Look {
		return nil
	}
	if s.log.full() {
		if err := s.rotate(); err != nil {
			return err
		}
	}
	if err := s.nameRuns(s.staged.names.runs); err != nil {
		return err
	}
	if err := s.log.allow(s.staged.names.runs); err != nil {
		return err
	}
	return s.log.append(record)
}

// nameRuns lets the manifest name runs before their first call: if the log is lost, nothing else would say whose
// the lost calls are.
func (s *recent) nameRuns(runs []runTotal) error {
	named := s.newest().Runs
	isNamed := func(r runTotal) bool {
		return slices.ContainsFunc(named, func(other runTotal) bool { return other.Name == r.Name })
	}
	if !slices.ContainsFunc(runs, func(r runTotal) bool { return !isNamed(r) }) {
		return nil
	}
	return s.publish(context.Background(), nil, func(m *manifest) error {
		for _, r := range runs {
			if !isNamed(r) {
				m.Runs = append(m.Runs, runTotal{Name: r.Name})
			}
		}
		return nil
	})
}

// sortedRuns returns totals in the order of their names.
func sortedRuns(runs map[string]runTotal) []runTotal {
	return slices.SortedFunc(maps.Values(runs), func(a, b runTotal) int { return strings.Compare(a.Name, b.Name) })
}

// rotate starts a new generation, and starts moving the full one into a
// file. It first waits for the previous move, so that there are never more
// than two generations. The caller holds logMu.
func (s *recent) rotate() error {
	if err := s.awaitMove(); err != nil || s.memtable.current.empty() {
		return err
	}
	full := s.memtable.current
	end, err := s.log.cut(appendRuns(nil, sortedRuns(full.runs)))
	if err != nil {
		return err
	}
	full.end = end
	s.memtable.mu.Lock()
	s.memtable.previous, s.memtable.current = full, newGeneration(end.Number)
	calls := maps.Clone(s.memtable.calls)
	s.memtable.mu.Unlock()
	s.moving = make(chan error, 1)
	full.open = calls
	if s.options.InTurn {
		s.moving <- s.move(full)
		return nil
	}
	go func() { s.moving <- s.move(full) }() // awaitMove waits for it
	return nil
}

// awaitMove waits until the previous generation is in a file. It repeats
// a move that failed, for example because the disk was full. The caller holds
// logMu.
func (s *recent) awaitMove() error {
	if s.moving == nil {
		return nil
	}
	err := <-s.moving
	if err != nil {
		err = s.move(s.memtable.previous)
	}
	if err != nil {
		s.moving <- err // does not block: the receive above made room
		return err
	}
	s.moving = nil
	return nil
}

// flush moves everything into files.
func (s *recent) flush() error {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	return s.flushLocked()
}

func (s *recent) flushLocked() error {
	if s.options.Look {
		return nil
	}
	err := s.rotate()
	if err == nil {
		err = s.awaitMove()
	}
	return fault(err)
}

// move writes a full generation to files and removes its log.
func (s *recent) move(full *generation) error {
	ctx := context.Background()
	if err := s.seal(ctx, full, s.log.hasFile()); err != nil {
		return err
	}
	s.memtable.mu.Lock()
	s.memtable.previous = nil
	s.memtable.mu.Unlock()
	_ = s.log.removeBelow(ctx, full.end.Number) // the next Open removes what stays
	s.merge()
	return nil
}

// seal writes the changes of a generation to files, and publishes a manifest that names them. open says
// that the log goes on in another file.
func (s *recent) seal(ctx context.Context, full *generation, open bool) error {
	files, err := s.writeAnswers(ctx, itemsOf(full))
	if err != nil {
		return err
	}
	return s.publishWith(ctx, files, full, func(next *manifest) {
		next.addGeneration(files)
		next.add(full)
		next.Log.Open = open
	})
}

func itemsOf(g *generation) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for _, i := range g.sorted() {
			if !yield(*i, nil) {
				return
			}
		}
	}
}

// readGeneration reads what a manifest lacks. Records of another process that is at work may be missing at its
// end.
func readGeneration(ctx context.Context, log changeLog, from logState) (*generation, error) {
	g := newGeneration(from.Number)
	end, err := log.read(ctx, from, func(record []byte) error { return readGroup(record, g) })
	g.end = end
	return g, err
}

// takeLog moves the log of earlier processes into files, and begins where it ends.
func (s *recent) takeLog(ctx context.Context) error {
	all, err := readGeneration(ctx, s.log, s.manifest.Log)
	if err != nil {
		return damaged(err)
	}
	for h, c := range all.calls {
		s.memtable.setCall(h, c)
	}
	late, err := s.log.readLate(ctx, func(record []byte) error { return takeLate(record, all, s.memtable) })
	if err != nil {
		return damaged(err)
	}
	for h, c := range s.memtable.calls {
		if now := c.abandoned(); now != c {
			s.memtable.calls[h], all.calls[h] = now, now
		}
	}
	for name, r := range all.runs {
		s.memtable.runs[name] = r
	}
	if s.in.isShared() || !all.empty() || s.manifest.Log.Open || s.manifest.Number == 0 { // in a shared place, an earlier process can then publish nothing
		all.open = maps.Clone(s.memtable.calls)
		if err := s.seal(ctx, all, false); err != nil {
			return err
		}
	}
	if err := s.log.removeBelow(ctx, all.end.Number); err != nil {
		return err
	}
	if err := s.in.Remove(ctx, late...); err != nil {
		return err
	}
	if err := s.log.begin(all.end); err != nil {
		return err
	}
	s.memtable.current = newGeneration(all.end.Number)
	if !s.log.hasFile() {
		return nil
	}
	return s.publish(ctx, nil, func(m *manifest) error { m.Log.Open = true; return nil })
}

// takeLate takes over the answers of a record that came too late for the log: those to questions with an open
// call. What their runs have spent grows by them.
func takeLate(record []byte, all *generation, mem *memtable) error {
	late := lateChanges{all: all, mem: mem, runs: map[string]runTotal{}}
	err := readGroup(record, late)
	for name, r := range late.runs {
		all.runs[name] = late.total(name).atLeast(r)
	}
	return err
}

type lateChanges struct {
	all  *generation
	mem  *memtable
	runs map[string]runTotal // as their writer has counted
}

func (l lateChanges) setCall(*OpenCall)      {}
func (l lateChanges) closeCall(Hash)         {}
func (l lateChanges) setBody(Hash, KeptBody) {}
func (l lateChanges) setRun(r runTotal)      { l.runs[r.Name] = r }
func (l lateChanges) addAnswer(a *Item) {
	if l.mem.calls[a.Hash] == nil {
		return
	}
	l.mem.setCall(a.Hash, nil)
	l.all.addAnswer(a)
	total := l.total(a.Run)
	total.add(a.Answer)
	l.all.runs[a.Run] = total
}

func (l lateChanges) total(run string) runTotal {
	total, is := l.all.runs[run]
	if !is {
		total = l.mem.runs[run]
	}
	total.Name = run
	return total
}

// closeLog ends the log, if everything is in files.
func (s *recent) closeLog() error {
	err := s.flush()
	if err == nil && s.log.hasFile() {
		err = s.publish(context.Background(), nil, func(m *manifest) error { m.Log.Open = false; return nil })
	}
	return errors.Join(err, s.log.close(err == nil))
}
