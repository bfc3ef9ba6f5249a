package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/leadetl/leadetl/internal/appendlog"
)

// Log is a sequence of groups that one process after another appends to. Each group is durable when Append
// returns. It is a file of its own, NAME/0000000000 and so on, which is created once: who has not read the
// newest can append nothing. A group carries its number, and the checksum of the one before.
//
// A process Reads, then Begins a term, then Appends. Only one goroutine may use it at a time.
type Log struct {
	files  Store
	folder string
	next   appendlog.Position // of the next group
	terms  []string           // the files that begin one, as far as they were read or written
}

// A content of a file begins a term, or goes on with it.
const (
	begins = 'b'
	goesOn = 'g'
)

// NewLog is the log in a folder of a store. It touches nothing.
func NewLog(files Store, folder string) *Log { return &Log{files: files, folder: folder} }

// FileOf is the name of a file of the log.
func (l *Log) FileOf(number int64) string { return fmt.Sprintf("%s/%010d", l.folder, number) }

// Number is the number of a file of the log.
func (l *Log) Number(name string) (int64, error) {
	number, err := strconv.ParseInt(path.Base(name), 10, 64)
	if err != nil {
		err = fmt.Errorf("%w: %s is no file of a log", appendlog.ErrDamaged, l.files.Path(name))
	}
	return number, err
}

// Files lists the files of the log that are whole, in order.
func (l *Log) Files(ctx context.Context) (names []string, err error) {
	for info, err := range l.files.List(ctx, l.folder+"/") {
		if err != nil {
			return nil, err
		}
		if !strings.Contains(path.Base(info.Name), ".") { // else it is unfinished, or was set aside
			names = append(names, info.Name)
		}
	}
	return names, nil
}

// Read returns the groups of the last term, or fs.ErrNotExist without one. Files without one that begins a
// term are what a process wrote after the log was removed. If a list lacks some, removed says whether the
// removal of the log has begun.
func (l *Log) Read(ctx context.Context, removed func() (bool, error)) (groups [][]byte, err error) {
	first, listed, err := l.span(ctx)
	if err != nil {
		return nil, err
	}
	if listed < l.next.Number-first {
		if gone, err := removed(); gone || err != nil {
			return nil, errors.Join(err, missing(l.files, l.folder))
		}
	}
	var names []string
	for number := first; number < l.next.Number; number++ {
		names = append(names, l.FileOf(number))
	}
	ats, nexts, contents := make([]appendlog.Position, len(names)), make([]appendlog.Position, len(names)), make([][]byte, len(names))
	err = l.readAll(ctx, names, func(ctx context.Context, i int) (err error) {
		ats[i], nexts[i], contents[i], err = readAt(ctx, l.files, names[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	begun := false
	for i, content := range contents {
		switch {
		case len(content) == 0:
			return nil, fmt.Errorf("%s: %w: it is empty", l.files.Path(names[i]), appendlog.ErrDamaged)
		case content[0] == begins:
			groups, begun = nil, true
			l.terms = append(l.terms, names[i])
		case i > 0 && ats[i] != nexts[i-1]:
			return nil, fmt.Errorf("%s: %w: it does not follow the one before it", l.files.Path(names[i]), appendlog.ErrDamaged)
		}
		groups = append(groups, content[1:])
		l.next = nexts[i]
	}
	if !begun {
		return nil, missing(l.files, l.folder)
	}
	return groups, nil
}

// Remove ends the log. First go the files that begin a term: what is left of the others, or what a power cut
// brings back of them, is no log.
func (l *Log) Remove(ctx context.Context) error {
	if len(l.terms) > 0 {
		if err := l.files.Remove(ctx, l.terms...); err != nil {
			return err
		}
	}
	names, err := l.Files(ctx)
	if err != nil || len(names) == 0 {
		return err
	}
	return l.files.Remove(ctx, names...)
}

// RemoveRest removes what is left of a log that was removed before, the oldest files first.
func (l *Log) RemoveRest(ctx context.Context) error {
	names, err := l.Files(ctx)
	for _, name := range names {
		if err == nil {
			err = l.files.Remove(ctx, name)
		}
	}
	return err
}

// Group reads one group, and says whether it begins a term.
func (l *Log) Group(ctx context.Context, number int64) (group []byte, term bool, err error) {
	_, _, content, err := readAt(ctx, l.files, l.FileOf(number))
	if err == nil && len(content) == 0 {
		err = fmt.Errorf("%s: %w: it is empty", l.files.Path(l.FileOf(number)), appendlog.ErrDamaged)
	}
	if err != nil {
		return nil, false, err
	}
	return content[1:], content[0] == begins, nil
}

// Skip makes a number that of the next file.
func (l *Log) Skip(to int64) { l.next = appendlog.Position{Number: to} }

// readAll reads files that must exist, while there is any.
func (l *Log) readAll(ctx context.Context, names []string, read func(ctx context.Context, i int) error) error {
	needed := func() (bool, error) { // who removes a log removes all of it
		names, err := l.Files(ctx)
		return len(names) > 0, err
	}
	return Each(ctx, names, func(ctx context.Context, i int) error {
		return AwaitSealed(ctx, l.files, names[i], needed, func() error { return read(ctx, i) })
	})
}

// span finds the number of the first file, and the one behind the last. A list may lack any of
// them: listed is how many it has.
func (l *Log) span(ctx context.Context) (first, listed int64, err error) {
	l.next, l.terms = appendlog.Position{}, nil
	names, err := l.Files(ctx)
	if err == nil && len(names) > 0 {
		first, err = l.Number(names[0])
		last, other := l.Number(names[len(names)-1])
		l.next.Number, err = last+1, errors.Join(err, other)
	}
	for ; err == nil; l.next.Number++ {
		var o *Object
		if o, err = l.files.Open(ctx, l.FileOf(l.next.Number)); IsMissing(err) {
			return first, int64(len(names)), nil
		}
		if err == nil {
			err = o.Close()
		}
	}
	return first, 0, err
}

// Begin begins a term with a group: what was read does not count any more. An earlier process may still be
// active, so it tries again after renew.
func (l *Log) Begin(ctx context.Context, group []byte, renew func() error) error {
	const tries = 5
	for range tries {
		seen := l.next.Number > 0
		l.terms = append(l.terms, l.FileOf(l.next.Number))
		err := l.create(ctx, begins, group)
		switch {
		case !errors.Is(err, ErrFenced):
			return err
		case !seen: // no read and no list shows one
			return Unseen(l.files, l.FileOf(0))
		}
		if err := renew(); err != nil {
			return err
		}
		l.next = appendlog.Position{Number: l.next.Number + 1}
	}
	return fmt.Errorf("%s: %w", l.files.Path(l.folder), ErrFenced)
}

// Unseen is the error of who has to create a file that is there, and that no read and no list shows.
func Unseen(s Store, name string) error {
	return fmt.Errorf("%s: %w, and cannot be written for that; run the same command again later", s.Path(name), ErrLate)
}

// Append adds a group. If another process has begun a term, it returns ErrFenced.
func (l *Log) Append(ctx context.Context, group []byte) error { return l.create(ctx, goesOn, group) }

func (l *Log) create(ctx context.Context, kind byte, group []byte) error {
	name := l.FileOf(l.next.Number)
	sealed, next, err := appendlog.SealAt(name, l.next, append([]byte{kind}, group...))
	if err != nil {
		return err
	}
	err = l.files.Create(ctx, name, sealed)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w", l.files.Path(name), ErrFenced)
	}
	if err == nil {
		l.next = next
	}
	return err
}
