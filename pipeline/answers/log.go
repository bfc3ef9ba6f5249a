package answers

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/groupcommit"
)

// Changes go to a log first: a group of them costs one small write and one
// fsync. Answers go into files in batches of tens of thousands. A call
// that begins and ends in one generation of the log is in no file of calls.

// maxLogBytes is the usual Options.LogBytes.
const maxLogBytes = 8 << 20

// maxGroup bounds the changes of one group. A call is two of them, and on S3 a
// group takes some 27 ms: with 256, no more than 4,700 calls a second would go
// through.
const maxGroup = 1024

const logSuffix = ".log"

// logName is the name of the log file whose first record has a number.
func logName(number int64) string { return fmt.Sprintf("answers-%08d%s", number, logSuffix) }

// commit makes a group's changes and returns the result to every caller.
func (s *Store) commit(group []*groupcommit.Change[func(*changeSet) error]) {
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

// store makes the changes of a group durable. The caller holds logMu.
func (s *Store) store(record []byte) error {
	if s.replicate != nil {
		if err := s.replicate(record); err != nil {
			return err
		}
	}
	if s.mem.current.log.Size() >= s.options.LogBytes {
		if err := s.rotate(); err != nil {
			return err
		}
	}
	if err := s.allow(s.staged.names.runs); err != nil {
		return err
	}
	return s.mem.current.log.Append(record)
}

// The allowance says how many calls each run of this process may have begun at most. It is
// written before a record goes beyond it, so it bounds what a log had whose end is lost.
const allowanceName = "answers.allowance"

// leastAllowed and mostAllowed bound for how many calls it is written at a time: an eighth of
// those that the run has begun. With 5,000 calls a second, that is ten times a second.
const leastAllowed, mostAllowed = 32, 512

// allow lets runs begin as many calls as they have after the next record. Those of a replicated
// store are allowed elsewhere.
func (s *Store) allow(runs []runTotal) error {
	var more map[string]runTotal
	for _, r := range runs {
		if r.Intents <= s.allowance[r.Name].Intents || s.replicate != nil {
			continue
		}
		if more == nil {
			more = maps.Clone(s.allowance)
		}
		r.Intents += min(max(r.Intents/8, leastAllowed), mostAllowed)
		more[r.Name] = r
	}
	if more == nil {
		return nil
	}
	if err := s.nameRuns(more); err != nil {
		return err
	}
	return s.writeAllowance(more)
}

// nameRuns lets the manifest name runs before their first call: without the log and its allowance, nothing
// else would say whose the lost calls are.
func (s *Store) nameRuns(runs map[string]runTotal) error {
	named := s.newest().Runs
	isNamed := func(name string) bool {
		return slices.ContainsFunc(named, func(r runTotal) bool { return r.Name == name })
	}
	for name := range runs {
		if !isNamed(name) {
			return s.publish(nil, func(m *manifest) error {
				for name := range runs {
					if !isNamed(name) {
						m.Runs = append(m.Runs, runTotal{Name: name})
					}
				}
				return nil
			})
		}
	}
	return nil
}

func (s *Store) writeAllowance(runs map[string]runTotal) error {
	sealed, err := appendlog.Seal(allowanceName, appendRuns(nil, sortedRuns(runs)))
	if err == nil {
		err = writeSecret(s.in, allowanceName, sealed)
	}
	if err == nil {
		s.allowance = runs
	}
	return err
}

// sortedRuns returns totals in the order of their names.
func sortedRuns(runs map[string]runTotal) []runTotal {
	return slices.SortedFunc(maps.Values(runs), func(a, b runTotal) int { return strings.Compare(a.Name, b.Name) })
}

func readAllowance(dir disk.Folder) (map[string]runTotal, error) {
	sealed, err := dir.ReadFile(allowanceName)
	if err != nil {
		return nil, err
	}
	record, err := appendlog.Unseal(allowanceName, sealed)
	g := newGeneration(0)
	return g.runs, errors.Join(err, readGroup(record, g))
}

// newLog makes the file of the log that goes on at a position.
func (s *Store) newLog(at appendlog.Position) (*generation, error) {
	g := newGeneration(at.Number)
	var err error
	if g.log, err = appendlog.Create(s.in, logName(g.number), at); err != nil {
		return nil, err
	}
	if err := s.in.Sync(); err != nil { // otherwise a power failure could remove the file
		return nil, errors.Join(err, g.log.Close())
	}
	return g, nil
}

// rotate starts a new generation, and starts moving the full one into a
// file. It first waits for the previous move, so that there are never more
// than two generations. The file of the new one is there before the full one ends, so there is
// one at any time while the store is open. The caller holds logMu.
func (s *Store) rotate() error {
	if err := s.awaitMove(); err != nil || s.mem.current.empty() {
		return err
	}
	full := s.mem.current
	if err := full.log.Repair(); err != nil {
		return err
	}
	next, err := s.newLog(full.log.Position())
	if err != nil {
		return err
	}
	if err := full.log.End(appendRuns(nil, sortedRuns(full.runs))); err != nil {
		return errors.Join(err, next.log.Close())
	}
	full.end = full.log.Position()
	s.mem.mu.Lock()
	s.mem.previous, s.mem.current = full, next
	calls := maps.Clone(s.mem.calls)
	s.mem.mu.Unlock()
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
func (s *Store) awaitMove() error {
	if s.moving == nil {
		return nil
	}
	err := <-s.moving
	if err != nil {
		err = s.move(s.mem.previous)
	}
	if err != nil {
		s.moving <- err // does not block: the receive above made room
		return err
	}
	s.moving = nil
	return nil
}

// flush moves everything into files.
func (s *Store) flush() error {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	return s.flushLocked()
}

func (s *Store) flushLocked() error {
	err := s.rotate()
	if err == nil {
		err = s.awaitMove()
	}
	return fault(err)
}

// move writes a full generation to files and removes its log.
func (s *Store) move(full *generation) error {
	if err := s.seal(context.Background(), full, true); err != nil {
		return err
	}
	s.mem.mu.Lock()
	s.mem.previous = nil
	s.mem.mu.Unlock()
	_ = errors.Join(full.log.Close(), s.in.Remove(logName(full.number))) // the next Open removes a file that stays
	s.merge()
	return nil
}

// seal writes the changes of a generation to files, and publishes a manifest that names them. open says
// that the log goes on in another file.
func (s *Store) seal(ctx context.Context, full *generation, open bool) error {
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

// openLog moves the logs of an earlier process into files, and begins a new one.
func (s *Store) openLog(ctx context.Context) error {
	logs, next, err := readLogs(s.in, s.manifest.Log)
	if err != nil {
		return err
	}
	if err := s.takeLogs(ctx, logs, next); err != nil {
		return err
	}
	if err := errors.Join(s.removeLogs(), s.writeAllowance(map[string]runTotal{})); err != nil {
		return err
	}
	first, err := s.newLog(next)
	if err != nil {
		return err
	}
	s.mem.current = first
	return s.publish(nil, func(m *manifest) error { m.Log.Open = true; return nil })
}

// takeLogs makes the changes of logs, and marks the calls that were under way as unknown.
func (s *Store) takeLogs(ctx context.Context, logs []*generation, next appendlog.Position) error {
	all := newGeneration(0)
	for _, g := range logs {
		all.add(g)
	}
	all.end = next
	for h, c := range all.calls {
		s.mem.setCall(h, c)
	}
	for h, c := range s.mem.calls {
		if c.State == UnderWay {
			now := *c
			now.State, now.MaybeBilled = Unknown, true
			s.mem.calls[h], all.calls[h] = &now, &now
		}
	}
	maps.Copy(s.mem.runs, all.runs)
	if all.empty() && !s.manifest.Log.Open && s.manifest.Number > 0 {
		return nil
	}
	all.open = maps.Clone(s.mem.calls)
	return s.seal(ctx, all, false)
}

// closeLog ends the log, if everything is in files.
func (s *Store) closeLog() error {
	err := s.flush()
	if err == nil {
		err = s.publish(nil, func(m *manifest) error { m.Log.Open = false; return nil })
	}
	err = errors.Join(err, s.mem.current.log.Close())
	if err == nil {
		_ = s.removeLogs() // the next Open removes a file that stays
	}
	return err
}

// removeLogs removes the files of the log, whose changes are in files.
func (s *Store) removeLogs() error {
	l, err := list(s.in)
	for _, number := range l.logs {
		err = errors.Join(err, s.in.Remove(logName(number)))
	}
	return err
}

// readLogs reads the logs with changes that the manifest lacks, and returns where the log goes on.
func readLogs(in disk.Folder, from logState) (logs []*generation, next appendlog.Position, err error) {
	l, err := list(in)
	if err != nil {
		return nil, next, err
	}
	at, begun := from.position(), from.Open // the next file must be there
	for _, number := range l.logs {
		if number < at.Number {
			continue
		}
		if number > at.Number {
			return nil, next, missingLog(in, at.Number)
		}
		g := newGeneration(number)
		content, err := appendlog.Read(in, logName(number), at, begun, func(record []byte) error { return readGroup(record, g) })
		if err != nil {
			return nil, next, fmt.Errorf("stored answers: %w", err)
		}
		g.end, at, begun = content.Next, content.Next, content.Ended
		logs = append(logs, g)
	}
	if begun && (len(logs) == 0 || logs[len(logs)-1].number < at.Number) && !slices.Contains(l.logs, at.Number) {
		return nil, next, missingLog(in, at.Number)
	}
	return logs, at, nil
}

func missingLog(in disk.Folder, number int64) error {
	return fmt.Errorf("stored answers: %w", appendlog.Missing(in.Path(logName(number))))
}

// logNumber returns the number of a file of the log by its name.
func logNumber(name string) (number int64, is bool) {
	digits, is := strings.CutSuffix(strings.TrimPrefix(name, "answers-"), logSuffix)
	number, err := strconv.ParseInt(digits, 10, 64)
	return number, is && err == nil && name == logName(number)
}
