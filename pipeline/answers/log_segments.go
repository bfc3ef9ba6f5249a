package answers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/store"
)

// segmentLog is a changeLog in a place that others may write, too: a file for each record, a segment. To take it
// over, a process begins a term with an empty record, the fence. After that no change of an earlier
// process can count, however long it slept. If such a process still receives an answer, it writes the answer
// to a file of late: the answer counts if its question has an open call.
type segmentLog struct {
	in       Place
	log      *store.Log
	bytes    int64 // of records at which the log is full
	segments int64 // the same, in their number

	fence  int64 // its number; 0 before takeOver
	size   int64 // of the records since the last cut
	cutAt  int64 // the number of the first of them
	late   int   // records that came too late
	failed error // why no record is appended any more
}

var _ changeLog = (*segmentLog)(nil)

const (
	logFolder  = "log"
	lateFolder = "late/"
)

// errLogMoved means that a fence is where a segment was before the log moved on: it
// ends nothing.
var errLogMoved = errors.New("another process has moved the log on; try again")

func (l *segmentLog) takeOver(ctx context.Context, from logState) (int64, error) {
	if l.fence >= from.Number {
		return l.fence, nil
	}
	end, err := l.end(ctx, from)
	if err != nil {
		return 0, err
	}
	l.log.Skip(end)
	if err := l.log.Begin(ctx, nil, func() error { return nil }); err != nil {
		return 0, err
	}
	next := l.log.Next()
	l.fence, l.cutAt = next.Number-1, next.Number
	return l.fence, nil
}

// end returns the number behind the last segment that a list has.
func (l *segmentLog) end(ctx context.Context, from logState) (int64, error) {
	end := from.Number
	names, err := l.log.Files(ctx)
	for _, name := range names {
		number, err := l.log.Number(name)
		if err != nil {
			return 0, err
		}
		end = max(end, number+1)
	}
	return end, err
}

// read reads the segments before the fence, or as far as a list has them: a segment exists if a later one does.
func (l *segmentLog) read(ctx context.Context, from logState, use func(record []byte) error) (at appendlog.Position, err error) {
	below := l.fence
	if below == 0 {
		if below, err = l.end(ctx, from); err != nil {
			return at, err
		}
	} else if below < from.Number {
		return at, errLogMoved
	}
	groups, err := l.log.Between(ctx, from.position(), below, func() (bool, error) { return l.needs(ctx, from) })
	if err != nil {
		return at, err
	}
	at = from.position()
	for _, g := range groups {
		at = g.Next()
		if len(g.Data) == 0 {
			continue // a fence
		}
		if err := use(g.Data); err != nil {
			return at, fmt.Errorf("%s: %w", l.in.Path(l.log.FileOf(g.Number)), err)
		}
	}
	if l.fence > 0 {
		at = l.log.Next()
	}
	return at, nil
}

// needs reports whether the newest manifest still needs segments from a position on.
func (l *segmentLog) needs(ctx context.Context, from logState) (bool, error) {
	m, err := newest(ctx, l.in)
	return err == nil && m.Log.Number <= from.Number, err
}

func (l *segmentLog) readLate(ctx context.Context, use func(record []byte) error) (late []string, err error) {
	for info, err := range l.lateRecords(ctx) {
		if err != nil {
			return nil, err
		}
		record, err := store.ReadSealed(ctx, l.in, info.Name)
		if store.IsMissing(err) {
			continue // who removed it has its changes in files
		}
		if err == nil {
			err = use(record)
		}
		if err != nil {
			return nil, err
		}
		late = append(late, info.Name)
	}
	return late, nil
}

func (l *segmentLog) begin(appendlog.Position) error { return nil }

// append sends a record. After an error it sends no more, because it is not known whether the last one was
// stored.
func (l *segmentLog) append(record []byte) error {
	ctx := context.Background()
	if l.failed == nil {
		err := l.log.Append(ctx, record)
		if err == nil {
			l.size += int64(len(record))
			return nil
		}
		l.failed = err
	}
	return errors.Join(l.failed, l.storeLate(ctx, record))
}

// storeLate stores a record that a fenced process could not append: it may have a paid answer.
func (l *segmentLog) storeLate(ctx context.Context, record []byte) error {
	if !errors.Is(l.failed, store.ErrFenced) {
		return nil
	}
	l.late++
	return store.PutSealed(ctx, l.in, fmt.Sprintf("%s%s-%06d", lateFolder, l.in.writer, l.late), record)
}

func (l *segmentLog) full() bool {
	return l.size >= l.bytes || l.log.Next().Number-l.cutAt >= l.segments
}

func (l *segmentLog) cut([]byte) (appendlog.Position, error) {
	at := l.log.Next()
	l.size, l.cutAt = 0, at.Number
	return at, nil
}

func (l *segmentLog) removeBelow(ctx context.Context, number int64) error {
	return l.log.RemoveBelow(ctx, number)
}

func (l *segmentLog) allow([]runTotal) error { return nil } // a segment that is lost is followed by others, or has few calls
func (l *segmentLog) close(bool) error       { return nil }
func (l *segmentLog) hasFile() bool          { return false }

// salvage reads the segments that the manifest lacks, one by one.
func (l *segmentLog) salvage(ctx context.Context, s *salvage) error {
	end, err := l.end(ctx, s.manifest.Log)
	if err != nil {
		return err
	}
	s.next = s.manifest.Log.position()
	for number := s.next.Number; number < end; number++ {
		name := l.log.FileOf(number)
		g, err := l.log.Group(ctx, number)
		if errors.Is(err, fs.ErrNotExist) {
			err = appendlog.Missing(l.in.Path(name))
		}
		if err == nil && !g.Follows(s.next) {
			s.loseSegment(name, maxGroup, fmt.Errorf("%s: %w: it does not follow the segment before it", l.in.Path(name), appendlog.ErrDamaged))
		}
		if err == nil && len(g.Data) > 0 {
			err = s.take(g.Data)
		}
		s.next = appendlog.Position{Number: number + 1}
		switch {
		case err == nil:
			s.next = g.Next()
		case errors.Is(err, appendlog.ErrDamaged):
			s.loseSegment(name, l.mostCalls(ctx, name), err)
		default:
			return err
		}
	}
	s.loseSegments()
	return l.salvageLate(ctx, s)
}

// loseSegment notes a damaged segment, which has begun so many calls at most.
func (s *salvage) loseSegment(name string, most int64, damage error) {
	s.lose(most, fmt.Errorf("stored answers: %w", damage))
	s.damaged = append(s.damaged, name)
}

// loseSegments counts what missing segments may have begun for runs of which no record follows.
func (s *salvage) loseSegments() {
	if s.gap && len(s.later.runs) == 0 {
		s.loseMost(s.missed.most, byGroups)
		return
	}
	for name := range s.later.runs {
		if most := s.missed.most - s.seen[name].most; most > 0 {
			s.unnamed[name] += most
			s.lost.Intents += most
			s.lost.AtMost = byGroups
		}
	}
}

// mostCalls is how many calls a damaged segment has begun at most, by its size if it has the one that it says.
func (l *segmentLog) mostCalls(ctx context.Context, name string) int64 {
	text, err := l.in.Read(ctx, name)
	if err != nil || !appendlog.HasItsSize(text) {
		return maxGroup
	}
	return min(maxGroup, int64(len(text))/leastIntent)
}

// lateRecords lists records that came too late, without those that a repair has set aside.
func (l *segmentLog) lateRecords(ctx context.Context) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for info, err := range l.in.List(ctx, lateFolder) {
			if !strings.HasSuffix(info.Name, store.DamagedSuffix) && !yield(info, err) {
				return
			}
		}
	}
}

// salvageLate reads records that came too late. The question of an answer that is lost has an open call.
func (l *segmentLog) salvageLate(ctx context.Context, s *salvage) error {
	for info, err := range l.lateRecords(ctx) {
		if err != nil {
			return err
		}
		record, err := store.ReadSealed(ctx, l.in, info.Name)
		switch {
		case err == nil:
			s.late, s.lateFiles = append(s.late, record), append(s.lateFiles, info.Name)
		case errors.Is(err, appendlog.ErrDamaged):
			s.damages, s.damaged = append(s.damages, err), append(s.damaged, info.Name)
		case !store.IsMissing(err):
			return err
		}
	}
	return nil
}
