package answers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/groupcommit"
)

// Changes go to a log first: a group of them costs one small write and one
// fsync. They go into the database in batches of tens of thousands, because
// keys come in random order and a single change would cost a whole page. A call
// that begins and ends in one generation of the log never becomes a row.
//
// Measured with 60,000 calls, each an intent and an answer of 400 bytes: one
// transaction per group took 130 µs of processor time per call; the log takes
// 90 µs. Under load, a change was on disk after 8 ms; with the log it is after
// 1.3 ms.

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
	if s.mem.current.log.Size() >= s.maxLogBytes {
		if err := s.rotate(); err != nil {
			return err
		}
	}
	if err := s.allow(s.staged.runs); err != nil {
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
func (s *Store) allow(runs map[int64]runTotal) error {
	var more map[int64]runTotal
	for id, r := range runs {
		if r.Intents <= s.allowance[id].Intents || s.replicate != nil {
			continue
		}
		if more == nil {
			more = maps.Clone(s.allowance)
		}
		r.Intents += min(max(r.Intents/8, leastAllowed), mostAllowed)
		more[id] = r
	}
	if more == nil {
		return nil
	}
	return s.writeAllowance(more)
}

func (s *Store) writeAllowance(runs map[int64]runTotal) error {
	sealed, err := appendlog.Seal(allowanceName, appendRuns(nil, runs))
	if err == nil {
		err = atomicfile.WriteIn(s.logs, allowanceName, sealed)
	}
	if err == nil {
		s.allowance = runs
	}
	return err
}

func readAllowance(dir disk.Folder) (map[int64]runTotal, error) {
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
	if g.log, err = appendlog.Create(s.logs, logName(g.number), at); err != nil {
		return nil, err
	}
	if err := s.logs.Sync(); err != nil { // otherwise a power failure could remove the file
		return nil, errors.Join(err, g.log.Close())
	}
	return g, nil
}

// rotate starts a new generation, and starts moving the full one into the
// database. It first waits for the previous move, so that there are never more
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
	if err := full.log.End(appendRuns(nil, full.runs)); err != nil {
		return errors.Join(err, next.log.Close())
	}
	full.end = full.log.Position()
	s.mem.mu.Lock()
	s.mem.previous, s.mem.current = full, next
	s.mem.mu.Unlock()
	s.moving = make(chan error, 1)
	go func() { s.moving <- s.move(full) }() // awaitMove waits for it
	return nil
}

// awaitMove waits until the previous generation is in the database. It repeats
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

// flush moves everything into the database.
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

// move writes a full generation to the database and removes its log.
func (s *Store) move(full *generation) error {
	if err := s.writer.Write(context.Background(), func(g *sqliteTx) error { return g.apply(full) }); err != nil {
		return err
	}
	s.mem.mu.Lock()
	s.mem.previous = nil
	s.mem.mu.Unlock()
	_ = errors.Join(full.log.Close(), s.logs.Remove(logName(full.number))) // the next Open removes a file that stays
	return nil
}

// openLog moves the logs of an earlier process into the database, and begins a new one.
func (s *Store) openLog(ctx context.Context) error {
	at, err := readLogState(ctx, s.reads)
	if err != nil {
		return err
	}
	logs, next, err := readLogs(s.logs, at)
	if err != nil {
		return err
	}
	err = s.writer.Write(ctx, func(tx *sqliteTx) error { // at once: no file of the log has to be there any more
		for _, g := range logs {
			if err := errors.Join(tx.checkNames(g), tx.apply(g), tx.Flush()); err != nil {
				return err
			}
		}
		return tx.markUnknown()
	})
	if err != nil {
		return err
	}
	if err := s.removeLogs(); err != nil {
		return err
	}
	if err := s.writeAllowance(map[int64]runTotal{}); err != nil {
		return err
	}
	first, err := s.newLog(next)
	if err != nil {
		return err
	}
	s.mem = &memtable{calls: map[Hash]*call{}, parked: map[parkedID]Hash{}, current: first}
	return s.writer.Write(ctx, func(tx *sqliteTx) error { return tx.Exec("UPDATE log SET open = 1") })
}

// closeLog ends the log, if everything is in the database.
func (s *Store) closeLog() error {
	err := s.flush()
	if err == nil {
		err = s.writer.Write(context.Background(), func(tx *sqliteTx) error { return tx.Exec("UPDATE log SET open = 0") })
	}
	err = errors.Join(err, s.mem.current.log.Close())
	if err == nil {
		_ = s.removeLogs() // the next Open removes a file that stays
	}
	return err
}

// removeLogs removes the files of the log, whose changes are in the database.
func (s *Store) removeLogs() error {
	logs, err := logsIn(s.logs)
	for _, number := range logs {
		err = errors.Join(err, s.logs.Remove(logName(number)))
	}
	return err
}

// logState is what the database says about the log.
type logState struct {
	appendlog.Position // behind what is in the database
	open               bool
}

func readLogState(ctx context.Context, from querier) (at logState, err error) {
	err = from.QueryRowContext(ctx, "SELECT number, before, open FROM log").Scan(&at.Number, &at.Before, &at.open)
	return at, fault(err)
}

// readLogs reads the logs with changes that the database lacks, and returns where the log goes on.
func readLogs(dir disk.Folder, at logState) (logs []*generation, next appendlog.Position, err error) {
	numbers, err := logsIn(dir)
	if err != nil {
		return nil, next, err
	}
	begun := at.open // the next file must be there
	for _, number := range numbers {
		if number < at.Number {
			continue
		}
		if number > at.Number {
			return nil, next, missingLog(dir, at.Number)
		}
		g := newGeneration(number)
		content, err := appendlog.Read(dir, logName(number), at.Position, begun, func(record []byte) error { return readGroup(record, g) })
		if err != nil {
			return nil, next, fmt.Errorf("stored answers: %w", err)
		}
		g.end, at.Position, begun = content.Next, content.Next, content.Ended
		logs = append(logs, g)
	}
	if begun && (len(logs) == 0 || logs[len(logs)-1].number < at.Number) && !slices.Contains(numbers, at.Number) {
		return nil, next, missingLog(dir, at.Number)
	}
	return logs, at.Position, nil
}

func missingLog(dir disk.Folder, number int64) error {
	return fmt.Errorf("stored answers: %w", appendlog.Missing(dir.Path(logName(number))))
}

// logsIn returns the numbers of the log files in a folder, in order.
func logsIn(dir disk.Folder) (numbers []int64, err error) {
	names, err := disk.Names(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, name := range names {
		digits, isLog := strings.CutSuffix(strings.TrimPrefix(name, "answers-"), logSuffix)
		if n, err := strconv.ParseInt(digits, 10, 64); isLog && err == nil && name == logName(n) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}
