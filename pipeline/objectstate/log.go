package objectstate

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// The log of a scope holds the changes that are in no manifest yet. Segment n
// is the object log/<n>.seg. It is created once and never changed. A writer
// that creates segment n has read all segments below n. To take over the log, a
// process creates an empty segment, the fence, under the number that the
// previous writer would use next. After that, no change of the previous writer
// can count, however long it slept.
//
// Fences are kept for keptFences, in case an old writer sleeps that long. If a
// fenced writer still receives an answer, it writes the answer to late/. The
// answer counts if its question has an open call.

const keptFences = 30 * 24 * time.Hour

// segment is one object of a log: a record, which follows the one before it. A fence follows any:
// its writer has not read all of them.
type segment struct {
	Writer string `json:"writer"`
	Term   int64  `json:"term"`
	Fence  bool   `json:"fence,omitempty"`

	at, next appendlog.Position
	record   []byte
}

// encode returns the content of the object.
func (g segment) encode() ([]byte, error) {
	header, err := json.Marshal(g)
	return append(append(binary.AppendUvarint(nil, uint64(len(header))), header...), g.record...), err
}

// errSegment means that a segment has the right checksum but an unknown format.
var errSegment error = &format.Error{Where: "it", Found: format.Unknown, Reads: manifestFormat, Advice: answers.ExportFirst}

func decodeSegment(content []byte) (g segment, err error) {
	size, width := binary.Uvarint(content)
	if width <= 0 || size > uint64(len(content)-width) {
		return g, errSegment
	}
	content = content[width:]
	if json.Unmarshal(content[:size], &g) != nil {
		return g, errSegment
	}
	g.record = content[size:]
	return g, nil
}

func segmentName(number int64) string { return fmt.Sprintf("log/%012d.seg", number) }

// readAtOnce is how many small objects are read at a time.
const readAtOnce = 16

// readSegments reads the segments of a log with numbers from one on, as far as a listing
// has them. What is before the last of these exists, also where the listing lacks it.
func (s *State) readSegments(ctx context.Context, of answers.Scope, from int64) ([]segment, error) {
	below := from
	for info, err := range s.store.List(ctx, s.folder(of).Below("log/")) {
		if err != nil {
			return nil, err
		}
		if number, ok := segmentNumber(info); ok {
			below = max(below, number+1)
		}
	}
	return s.segmentsBelow(ctx, of, from, below)
}

// segmentsBelow reads the segments of a log with numbers from one on and below another one,
// all of which exist. It does not list them: a listing may lack the newest.
func (s *State) segmentsBelow(ctx context.Context, of answers.Scope, from, below int64) ([]segment, error) {
	var infos []objects.Info
	for number := from; number < below; number++ {
		infos = append(infos, objects.Info{Location: s.folder(of).Below(segmentName(number))})
	}
	return s.readAll(ctx, of, from, infos)
}

// lastSegment returns the number of the last segment of a log that has segment
// from. It lists a hundred at a time, because an active writer continues meanwhile.
func (s *State) lastSegment(ctx context.Context, of answers.Scope, from int64) (int64, error) {
	last := from
	for hundred := from / 100; ; hundred++ {
		for info, err := range s.store.List(ctx, s.folder(of).Below(fmt.Sprintf("log/%010d", hundred))) {
			if err != nil {
				return last, err
			}
			if number, ok := segmentNumber(info); ok {
				last = max(last, number)
			}
		}
		if last < hundred*100+99 {
			return last, nil
		}
	}
}

func segmentNumber(info objects.Info) (number int64, ok bool) {
	number, err := strconv.ParseInt(strings.TrimSuffix(path.Base(info.Key), ".seg"), 10, 64)
	return number, err == nil
}

// readAll reads segments, which are numbered from one on and follow one another.
func (s *State) readAll(ctx context.Context, of answers.Scope, from int64, infos []objects.Info) ([]segment, error) {
	contents, err := s.readObjects(ctx, infos, func(ctx context.Context, at objects.Location, read func() error) error {
		return s.awaitOf(ctx, of, at, read)
	})
	if err != nil {
		return nil, err
	}
	segments, err := s.decodeEach(infos, contents)
	if err != nil {
		return nil, err
	}
	for i, g := range segments {
		if g.at.Number != from+int64(i) || i > 0 && !g.Fence && g.at != segments[i-1].next {
			return nil, fmt.Errorf("%w: %s does not follow the segment before it", ErrDamaged, infos[i].Location)
		}
	}
	return segments, nil
}

// readLate reads segments that came too late for the log, as a listing has them. Who removed one
// has its changes in files.
func (s *State) readLate(ctx context.Context, infos []objects.Info) ([]segment, error) {
	contents, err := s.readObjects(ctx, infos, unlessMissing)
	if err != nil {
		return nil, err
	}
	var there []objects.Info
	for i, info := range infos {
		if contents[i] != nil {
			there = append(there, info)
		}
	}
	contents = slices.DeleteFunc(contents, func(c []byte) bool { return c == nil })
	return s.decodeEach(there, contents)
}

// unlessMissing does a read of an object that may not exist.
func unlessMissing(_ context.Context, _ objects.Location, read func() error) error {
	if err := read(); !errors.Is(err, fs.ErrNotExist) {
		return damaged(err)
	}
	return nil
}

func (s *State) decodeEach(infos []objects.Info, contents [][]byte) ([]segment, error) {
	segments := make([]segment, len(infos))
	for i, sealed := range contents {
		at, next, content, err := appendlog.UnsealAt(s.sealName(infos[i].Location), sealed)
		if err == nil {
			segments[i], err = decodeSegment(content)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", infos[i].Location, damaged(err))
		}
		segments[i].at, segments[i].next = at, next
	}
	return segments, nil
}

// readObjects reads small objects concurrently, each by way of do, which repeats the read or not.
func (s *State) readObjects(ctx context.Context, infos []objects.Info, do func(ctx context.Context, at objects.Location, read func() error) error) ([][]byte, error) {
	contents := make([][]byte, len(infos))
	reading := pool.New().WithContext(ctx).WithMaxGoroutines(readAtOnce).WithFirstError().WithCancelOnError()
	for i, info := range infos {
		reading.Go(func(ctx context.Context) (err error) {
			return do(ctx, info.Location, func() error {
				contents[i], _, err = s.store.ReadFile(ctx, info.Location)
				return err
			})
		})
	}
	return contents, reading.Wait()
}

// logWriter appends to the log of a scope. Only one goroutine may use it at a
// time.
type logWriter struct {
	state  *State
	ctx    context.Context // never cancelled: a change is sent, or the store fails
	of     answers.Scope
	term   int64
	next   int64  // number of the next segment
	before uint32 // checksum of the last one
	bytes  int64  // size of the segments that are in no manifest
	sealed int64  // number of the first of these segments
	late   int    // number of segments that came too late
	ended  error  // why the writer has stopped appending; nil while it appends
}

// fence begins a term: from now on no earlier writer can append. It returns
// fs.ErrExist if another writer created the segment first.
func (w *logWriter) fence() error {
	return w.create(segment{Writer: w.state.writer, Term: w.term, Fence: true})
}

func (w *logWriter) create(g segment) error {
	at := w.state.folder(w.of).Below(segmentName(w.next))
	sealed, next, err := w.seal(at, appendlog.Position{Number: w.next, Before: w.before}, g)
	if err == nil {
		err = w.state.store.Create(w.ctx, at, objects.ContentOf(sealed, "application/octet-stream"))
	}
	if err != nil {
		return err
	}
	w.next, w.before = next.Number, next.Before
	w.bytes += int64(len(sealed))
	return nil
}

func (w *logWriter) seal(at objects.Location, position appendlog.Position, g segment) (sealed []byte, next appendlog.Position, err error) {
	content, err := g.encode()
	if err != nil {
		return nil, next, err
	}
	return appendlog.SealAt(w.state.sealName(at), position, content)
}

// append sends a group of changes. After an error it sends no more, because it
// is unknown whether the last group was stored.
func (w *logWriter) append(group []byte) error {
	s := segment{Writer: w.state.writer, Term: w.term, record: group}
	if w.ended == nil {
		err := w.create(s)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, fs.ErrExist):
			w.ended = fmt.Errorf("%s: %w", w.state.folder(w.of), objects.ErrLockLost)
		default:
			w.ended = err
		}
	}
	return errors.Join(w.ended, w.storeFencedSegment(s))
}

// storeFencedSegment stores a segment that a fenced writer could not append in late/: it may
// contain a paid answer.
func (w *logWriter) storeFencedSegment(g segment) error {
	if !errors.Is(w.ended, objects.ErrLockLost) {
		return nil
	}
	w.late++
	at := w.state.folder(w.of).Below(fmt.Sprintf("late/%s-%d-%06d.seg", w.state.writer, w.term, w.late))
	sealed, _, err := w.seal(at, appendlog.Position{}, g)
	if err == nil {
		_, err = w.state.store.Put(w.ctx, at, objects.ContentOf(sealed, "application/octet-stream"))
	}
	return err
}

// removeSegments removes the segments of a log below a number, except fences
// that may still be needed.
func (s *State) removeSegments(ctx context.Context, of answers.Scope, below int64) error {
	for info, err := range s.store.List(ctx, s.folder(of).Below("log/")) {
		if err != nil {
			return err
		}
		number, ok := segmentNumber(info)
		if !ok || number >= below {
			continue
		}
		if err := s.removeUnlessFence(ctx, info); err != nil {
			return err
		}
	}
	return nil
}

// removeUnlessFence removes a segment, except a fence that may still be needed. A previous
// writer that ends may remove it at the same time.
func (s *State) removeUnlessFence(ctx context.Context, info objects.Info) error {
	if time.Since(info.ModTime) < keptFences && info.Size < maxFenceBytes {
		data, _, err := s.store.ReadFile(ctx, info.Location)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if errors.Is(err, objects.ErrChecksum) {
			err = nil // a damaged one ends no log; it was set aside
		}
		if err != nil || bytes.Contains(data, []byte(`"fence":true`)) {
			return err
		}
	}
	return s.store.Remove(ctx, info.Location)
}

// maxFenceBytes is larger than any fence, and what a store may list for it that
// encrypts.
const maxFenceBytes = 1 << 10

// maxTerm returns the last term of a log.
func maxTerm(m *manifest, segments []segment) int64 {
	term := m.Term
	for _, g := range segments {
		term = max(term, g.Term)
	}
	return term
}
