package answers

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"

	"github.com/leadetl/leadetl/internal/spill"
)

// Sorted lists the answers of one scope, with bodies, ordered by their hashes.
func (s *Store) Sorted(ctx context.Context, of Scope) iter.Seq2[Item, error] {
	return s.List(ctx, Filter{Service: of.Service, Operation: of.Operation, Bodies: true})
}

// OpenCalls lists the open calls of one scope, ordered by their hashes.
func (s *Store) OpenCalls(_ context.Context, of Scope) (calls []OpenCall, err error) {
	calls = s.memtable.callsOf(func(c *OpenCall) bool { return c.Scope == of && c.State != UnderWay })
	if err := s.flush(); err != nil {
		return nil, err
	}
	return calls, s.addBodies(calls)
}

// addBodies adds the kept bodies of calls, which are all in the file of calls.
func (s *published) addBodies(calls []OpenCall) (err error) {
	set, err := s.acquire()
	if err != nil {
		return err
	}
	for i := range calls {
		if err == nil {
			calls[i].Body, err = set.bodyOf(calls[i].Hash)
		}
	}
	return damaged(errors.Join(err, set.release()))
}

// Taken counts what a store has taken over from another.
type Taken struct{ Answers, Calls int64 }

// Add adds the counts of more.
func (t *Taken) Add(more Taken) {
	t.Answers += more.Answers
	t.Calls += more.Calls
}

// Supersedes reports whether an answer, stored or not, makes an open call of
// its question obsolete: it arrived after the call was sent.
func (i Item) Supersedes(c OpenCall) bool { return !i.Received.Before(c.Sent) }

// Take takes over answers and open calls of one scope from another store, if
// they are newer than the existing ones. An answer ends the open call of its
// question that was sent before it. What runs have paid does not change.
// The answers are ordered by their hashes.
func (s *Store) Take(ctx context.Context, of Scope, items iter.Seq2[Item, error], calls []OpenCall) (taken Taken, err error) {
	t := taking{s, of}
	if taken.Answers, err = t.takeAnswers(ctx, items); err != nil {
		return taken, err
	}
	for _, c := range calls {
		made, err := t.takeCall(ctx, c)
		if err != nil {
			return taken, err
		}
		taken.Calls += boolToInt(made)
	}
	return taken, nil
}

// taking is what one Take takes over of a scope.
type taking struct {
	*Store
	of Scope
}

// takeAnswers takes over answers as a generation.
func (s taking) takeAnswers(ctx context.Context, items iter.Seq2[Item, error]) (taken int64, err error) {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	if err := s.flushLocked(); err != nil { // the log's changes come first
		return 0, err
	}
	ended := newGeneration(0)
	files, err := s.writeAnswers(ctx, s.newer(ctx, items, ended.closeCall))
	if err != nil {
		return 0, fault(err)
	}
	taken = rowsOf(files)
	if taken+int64(len(ended.calls)) == 0 {
		return 0, nil
	}
	ended.open = s.memtable.callsWithout(ended.calls)
	err = s.publishWith(ctx, files, ended, func(next *manifest) { next.addGeneration(files) })
	if err != nil {
		return 0, fault(err)
	}
	s.memtable.removeCalls(slices.Collect(maps.Keys(ended.calls)))
	return taken, nil
}

// newer lists the answers that are newer than those that are stored, and calls ends for those that end
// an open call.
func (s taking) newer(ctx context.Context, items iter.Seq2[Item, error], ends func(Hash)) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		last, some := Hash{}, make([]Item, 0, s.options.atMost(pageSize))
		pass := func() bool {
			hashes := make([]Hash, len(some))
			for n, i := range some {
				hashes[n] = i.Hash
			}
			found, err := s.LookupHashes(ctx, hashes, Freshness{}, nil)
			if err != nil {
				return yield(Item{}, err)
			}
			for n, i := range some {
				f := found[n]
				if f.Open != "" && i.Supersedes(OpenCall{Sent: f.Sent}) {
					ends(i.Hash)
				}
				if !(f.Stored && !f.Answer.Received.Before(i.Received)) && !yield(i, nil) {
					return false
				}
			}
			some = some[:0]
			return true
		}
		for i, err := range items {
			if err == nil && i.Hash.Compare(last) < 0 {
				err = errors.New("answers are not in the order of the hashes of their questions")
			}
			if err != nil {
				yield(Item{}, err)
				return
			}
			last, i.Scope = i.Hash, s.of
			if some = append(some, i); len(some) == cap(some) && !pass() {
				return
			}
		}
		pass()
	}
}

// pageSize bounds the answers that are taken over at a time.
const pageSize = 500

func (s taking) takeCall(ctx context.Context, c OpenCall) (made bool, err error) {
	found, err := s.LookupHashes(ctx, []Hash{c.Hash}, Freshness{}, nil)
	if err != nil {
		return false, err
	}
	if f := found[0]; f.Open != "" && !f.Sent.Before(c.Sent) || f.Stored && (Item{Answer: f.Answer}).Supersedes(c) {
		return false, nil
	}
	body := c.Body
	c.Body, c.Scope = nil, s.of // the body is not held in memory
	return true, s.queue.Do(ctx, func(g *changeSet) error {
		g.setCall(&c)
		if body != nil {
			g.setBody(c.Hash, body)
		}
		return nil
	})
}

// Keeper keeps answers and open calls: a folder, or a state on S3.
type Keeper interface {
	Scopes(ctx context.Context) ([]Scope, error)
	Sorted(ctx context.Context, of Scope) iter.Seq2[Item, error]
	OpenCalls(ctx context.Context, of Scope) ([]OpenCall, error)
	Take(ctx context.Context, of Scope, items iter.Seq2[Item, error], calls []OpenCall) (Taken, error)
}

// Import is a file of lines of Export that was read, to be taken into a Keeper. Check comes
// before Take, so that nothing is written if a line contradicts what is stored.
type Import struct {
	file   *os.File
	scopes []scopeLines
}

// scopeLines are the lines about the questions of a scope.
type scopeLines struct {
	Scope
	answers, calls *spill.Sorter[placed]
}

// placed is where a line of the file is. Lines are sorted by their questions, and those about one
// question by their numbers.
type placed struct {
	question Hash
	number   int64 // from 1
	at       int64
	size     int64
}

func (p placed) prefix() spill.Prefix {
	return spill.Prefix{High: binary.BigEndian.Uint64(p.question[:]), Low: binary.BigEndian.Uint64(p.question[8:])}
}

func comparePlaced(a, b placed) int {
	return cmp.Or(a.question.Compare(b.question), cmp.Compare(a.number, b.number))
}

// maxScopes bounds the services and operations of a file: lines of each are sorted apart.
const maxScopes = 1000

// maxLineBytes bounds a line: a client takes no answer that is larger than maxKeptPlain, which may be
// twice as long as base64 or as escaped text.
const maxLineBytes = 4 * maxKeptPlain

// LineError says which line of a file cannot be imported, and why.
type LineError struct {
	File   string
	Number int64
	Err    error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Number, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

// OpenImport reads a file of Export, a regular file. The error is a *LineError for a line that is none
// of Export, or that gives another answer to the question of a line before. A temporary file in dir has
// the places of the lines.
func OpenImport(ctx context.Context, path, dir string) (_ *Import, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	m := &Import{file: file}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	if err := m.read(ctx, dir); err != nil {
		return nil, err
	}
	for _, of := range m.scopes {
		for _, lines := range []*spill.Sorter[placed]{of.answers, of.calls} {
			if err := m.each(ctx, lines, func(Line, int64) error { return nil }); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

// read parses every line, and notes where it is.
func (m *Import) read(ctx context.Context, dir string) error {
	from, at := bufio.NewReaderSize(m.file, 1<<20), int64(0)
	for number := int64(1); ; number++ {
		text, err := readLine(from)
		if err == io.EOF {
			return nil
		}
		if number%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		var l Line
		if err == nil {
			l, err = ParseLine(text)
		}
		if err == nil {
			q, _ := l.question()
			err = m.begin(q.Scope, dir)
		}
		if err != nil {
			return m.refuse(number, err)
		}
		if err := m.add(l, placed{number: number, at: at, size: int64(len(text))}); err != nil {
			return err
		}
		at += int64(len(text))
	}
}

// begin makes room for the lines of a scope.
func (m *Import) begin(of Scope, dir string) error {
	if m.lines(of) != nil {
		return nil
	}
	if len(m.scopes) == maxScopes {
		return fmt.Errorf("the file is about more than %d services and operations; import it in pieces", maxScopes)
	}
	m.scopes = append(m.scopes, scopeLines{of, spill.New(dir, placed.prefix), spill.New(dir, placed.prefix)})
	return nil
}

func (m *Import) lines(of Scope) *scopeLines {
	i := slices.IndexFunc(m.scopes, func(s scopeLines) bool { return s.Scope == of })
	if i < 0 {
		return nil
	}
	return &m.scopes[i]
}

func (m *Import) add(l Line, p placed) error {
	q, h := l.question()
	p.question = h
	to := m.lines(q.Scope)
	if l.Call != nil {
		return to.calls.Add(p)
	}
	return to.answers.Add(p)
}

// readLine reads a line with its end. The text is valid until the next one.
func readLine(from *bufio.Reader) (text []byte, err error) {
	text, err = from.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := slices.Clone(text)
		for errors.Is(err, bufio.ErrBufferFull) && len(long) <= maxLineBytes {
			text, err = from.ReadSlice('\n')
			long = append(long, text...)
		}
		text = long
	}
	switch {
	case len(text) > maxLineBytes:
		return nil, fmt.Errorf("it is longer than %d MiB", maxLineBytes>>20)
	case err == io.EOF && len(text) > 0:
		return nil, errors.New("it does not end with a line feed: the file was cut off")
	}
	return text, err
}

func (m *Import) refuse(number int64, err error) error { return &LineError{m.file.Name(), number, err} }

// errEnough ends a pass that is not wanted to its end.
var errEnough = errors.New("enough")

// each calls use for lines, ordered by their questions. A line that says the same as the one before
// it is left out.
func (m *Import) each(ctx context.Context, lines *spill.Sorter[placed], use func(l Line, number int64) error) error {
	var before string
	var last placed
	err := lines.Each(ctx, spill.Sorted(comparePlaced), func(some []placed) error {
		for _, p := range some {
			l, err := m.lineAt(p)
			if err != nil {
				return err
			}
			text, err := l.text()
			switch {
			case err != nil:
				return err
			case p.question != last.question || last.number == 0:
				err = use(l, p.number)
			case text != before:
				return m.refuse(p.number, fmt.Errorf("line %d says something else about the same question", last.number))
			}
			if before, last = text, p; err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func (m *Import) lineAt(p placed) (Line, error) {
	text := make([]byte, p.size)
	if _, err := m.file.ReadAt(text, p.at); err != nil {
		return Line{}, fmt.Errorf("read %s again: %w", m.file.Name(), err)
	}
	l, err := ParseLine(text)
	if err != nil {
		return l, m.refuse(p.number, fmt.Errorf("it has changed since it was read: %w", err))
	}
	return l, nil
}

// Scopes are those of the lines.
func (m *Import) Scopes() (all []Scope) {
	for _, of := range m.scopes {
		all = append(all, of.Scope)
	}
	return all
}

// Check compares the lines with what is stored. The error is a *LineError for another answer to a
// question that is stored, and for another open call of a question: both may have been billed.
func (m *Import) Check(ctx context.Context, into Keeper) error {
	for _, of := range m.scopes {
		if err := errors.Join(m.checkCalls(ctx, into, of), m.checkAnswers(ctx, into, of)); err != nil {
			return err
		}
	}
	return nil
}

func (m *Import) checkCalls(ctx context.Context, into Keeper, of scopeLines) error {
	calls, err := into.OpenCalls(ctx, of.Scope)
	if err != nil {
		return err
	}
	return m.each(ctx, of.calls, func(l Line, number int64) error {
		i, open := slices.BinarySearchFunc(calls, *l.Call, byHash)
		if open && calls[i].IdempotencyKey != l.Call.IdempotencyKey {
			return m.refuse(number, errors.New("the state has another open call of this question; leave this line out, or import the file into another state"))
		}
		return nil
	})
}

func (m *Import) checkAnswers(ctx context.Context, into Keeper, of scopeLines) error {
	next, stop := iter.Pull2(into.Sorted(ctx, of.Scope))
	defer stop()
	stored, err, more := next()
	if err != nil {
		return err
	}
	return m.each(ctx, of.answers, func(l Line, number int64) error {
		for more && stored.Hash.Compare(l.Hash) < 0 {
			if stored, err, more = next(); err != nil {
				return err
			}
		}
		if !more || stored.Hash != l.Hash {
			return nil
		}
		there, err := Line{Item: stored}.text()
		here, other := l.text()
		if err := errors.Join(err, other); err != nil || there == here {
			return err
		}
		return m.refuse(number, errors.New("the state has another answer to this question; leave this line out, or import the file into another state"))
	})
}

// Take stores the answers, and keeps the open calls open. What runs have paid does not change. Done
// again, it takes what is missing.
func (m *Import) Take(ctx context.Context, into Keeper) (taken Taken, err error) {
	for _, of := range m.scopes {
		var calls []OpenCall
		err := m.each(ctx, of.calls, func(l Line, _ int64) error {
			calls = append(calls, *l.Call)
			return nil
		})
		if err != nil {
			return taken, err
		}
		more, err := into.Take(ctx, of.Scope, m.items(ctx, of), calls)
		taken.Add(more)
		if err != nil {
			return taken, err
		}
	}
	return taken, nil
}

// items lists the answers of a scope, ordered by their hashes.
func (m *Import) items(ctx context.Context, of scopeLines) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		err := m.each(ctx, of.answers, func(l Line, _ int64) error {
			if !yield(l.Item, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil {
			yield(Item{}, err)
		}
	}
}

// Close closes the file.
func (m *Import) Close() error {
	errs := []error{m.file.Close()}
	for _, of := range m.scopes {
		errs = append(errs, of.answers.Close(), of.calls.Close())
	}
	return errors.Join(errs...)
}
