package answers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/store"
)

// fileLog is a changeLog in a folder: a file that grows, until another one takes its place.
type fileLog struct {
	in      disk.Folder
	files   store.Store // in the folder
	bytes   int64       // of a full file
	now     *appendlog.Log
	number  int64               // of the first record of now
	ended   *appendlog.Log      // whose records move into files; nil if none do
	allowed map[string]runTotal // runs, with the calls that they may begin
}

var _ changeLog = (*fileLog)(nil)

const logSuffix = ".log"

// logName is the name of the log file whose first record has a number.
func logName(number int64) string { return fmt.Sprintf("answers-%08d%s", number, logSuffix) }

// logNumber returns the number of a file of the log by its name.
func logNumber(name string) (number int64, is bool) {
	digits, is := strings.CutSuffix(strings.TrimPrefix(name, "answers-"), logSuffix)
	number, err := strconv.ParseInt(digits, 10, 64)
	return number, is && err == nil && name == logName(number)
}

// logsIn lists the numbers of the files of the log in a folder, in order.
func logsIn(in disk.Folder) (numbers []int64, err error) {
	names, err := disk.Names(in)
	for _, name := range names {
		if number, is := logNumber(name); is {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers, err
}

func missingLog(in disk.Folder, number int64) error {
	return fmt.Errorf("stored answers: %w", appendlog.Missing(in.Path(logName(number))))
}

func (l *fileLog) takeOver(context.Context, logState) (int64, error) { return 0, nil } // the folder is locked

func (l *fileLog) read(_ context.Context, from logState, use func(record []byte) error) (at appendlog.Position, err error) {
	numbers, err := logsIn(l.in)
	if err != nil {
		return at, err
	}
	at, begun := from.position(), from.Open // the next file must be there
	for _, number := range numbers {
		if number < at.Number {
			continue
		}
		if number > at.Number {
			return at, missingLog(l.in, at.Number)
		}
		content, err := appendlog.Read(l.in, logName(number), at, begun, use)
		if err != nil {
			return at, fmt.Errorf("stored answers: %w", err)
		}
		at, begun = content.Next, content.Ended
	}
	if begun && !slices.Contains(numbers, at.Number) {
		return at, missingLog(l.in, at.Number)
	}
	return at, nil
}

func (l *fileLog) readLate(context.Context, func([]byte) error) ([]string, error) { return nil, nil }

func (l *fileLog) begin(at appendlog.Position) error {
	if err := l.writeAllowance(map[string]runTotal{}); err != nil {
		return err
	}
	next, err := l.newFile(at)
	if err == nil {
		l.now, l.number = next, at.Number
	}
	return err
}

// newFile makes the file of the log that goes on at a position.
func (l *fileLog) newFile(at appendlog.Position) (*appendlog.Log, error) {
	next, err := appendlog.Create(l.in, logName(at.Number), at)
	if err != nil {
		return nil, err
	}
	if err := l.in.Sync(); err != nil { // otherwise a power failure could remove the file
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}

func (l *fileLog) append(record []byte) error { return l.now.Append(record) }
func (l *fileLog) full() bool                 { return l.now.Size() >= l.bytes }
func (l *fileLog) hasFile() bool              { return true }

// cut begins another file. It is there before the full one ends, so there is one at any time.
func (l *fileLog) cut(totals []byte) (at appendlog.Position, err error) {
	if err := l.now.Repair(); err != nil {
		return at, err
	}
	at = l.now.Position()
	next, err := l.newFile(at)
	if err != nil {
		return at, err
	}
	if err := l.now.End(totals); err != nil {
		return at, errors.Join(err, next.Close())
	}
	l.ended, l.now, l.number = l.now, next, at.Number
	return at, nil
}

func (l *fileLog) removeBelow(_ context.Context, below int64) error {
	if l.ended != nil {
		_ = l.ended.Close() // what it had is in files
		l.ended = nil
	}
	numbers, err := logsIn(l.in)
	if err != nil || len(numbers) == 0 || numbers[0] >= below {
		return err
	}
	for _, number := range numbers {
		if number < below && err == nil {
			err = l.in.Remove(logName(number))
		}
	}
	return errors.Join(err, l.in.Sync())
}

func (l *fileLog) close(done bool) error {
	if l.ended != nil {
		_ = l.ended.Close() // all of it is durable
	}
	if l.now == nil {
		return nil
	}
	err := l.now.Close()
	if done && err == nil {
		_ = l.in.Remove(logName(l.number)) // the next Open removes a file that stays
	}
	return err
}

// The allowance says how many calls each run of this process may have begun at most. It is
// written before a record goes beyond it, so it bounds what a log had whose end is lost.
const allowanceName = "answers.allowance"

// leastAllowed and mostAllowed bound for how many calls it is written at a time: an eighth of
// those that the run has begun. With 5,000 calls a second, that is ten times a second.
const leastAllowed, mostAllowed = 32, 512

func (l *fileLog) allow(runs []runTotal) error {
	var more map[string]runTotal
	for _, r := range runs {
		if r.Intents <= l.allowed[r.Name].Intents {
			continue
		}
		if more == nil {
			more = maps.Clone(l.allowed)
		}
		r.Intents += min(max(r.Intents/8, leastAllowed), mostAllowed)
		more[r.Name] = r
	}
	if more == nil {
		return nil
	}
	return l.writeAllowance(more)
}

func (l *fileLog) writeAllowance(runs map[string]runTotal) error {
	err := store.PutSealed(context.Background(), l.files, allowanceName, appendRuns(nil, sortedRuns(runs)))
	if err == nil {
		l.allowed = runs
	}
	return err
}

func (l *fileLog) readAllowance(ctx context.Context) (map[string]runTotal, error) {
	record, err := store.ReadSealed(ctx, l.files, allowanceName)
	if err != nil {
		return nil, err
	}
	g := newGeneration(0)
	return g.runs, readGroup(record, g)
}

// salvage reads the files of the log that the manifest lacks.
func (l *fileLog) salvage(ctx context.Context, s *salvage) error {
	numbers, err := logsIn(l.in)
	if err != nil {
		return err
	}
	s.next = s.manifest.Log.position()
	begun := s.manifest.Log.Open
	for _, number := range numbers {
		if number < s.next.Number { // its records are in files, or in another file
			continue
		}
		if number > s.next.Number {
			s.lose(0, missingLog(l.in, s.next.Number))
			s.next = appendlog.Position{Number: number}
		}
		if begun, err = l.salvageFile(s, number, begun); err != nil {
			return err
		}
	}
	if begun && !slices.Contains(numbers, s.next.Number) {
		s.lose(0, missingLog(l.in, s.next.Number))
	}
	if s.missed.gaps > 0 {
		l.loseEnd(ctx, s)
	}
	return nil
}

// salvageFile reads a file of the log. It reports whether the log goes on in another one.
func (l *fileLog) salvageFile(s *salvage, number int64, begun bool) (ended bool, err error) {
	last := s.next.Number - 1
	content, damages, err := appendlog.Salvage(l.in, logName(number), s.next, begun, func(number int64, record []byte) error {
		if number > last+1 {
			s.miss(0)
		}
		last = max(last, number)
		return s.take(record)
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
	s.next = content.Next
	return content.Ended, nil
}

// loseEnd counts what missing records may have had of runs of which no record follows: what they were allowed to
// begin, and had not begun before.
func (l *fileLog) loseEnd(ctx context.Context, s *salvage) {
	allowed, err := l.readAllowance(ctx)
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
