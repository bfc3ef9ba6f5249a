package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
)

// Log is a sequence of groups that one process after another appends to. Each group is durable when Append
// returns. It is a file of its own, NAME/0000000000 and so on, which is created once: who has not read the
// newest can append nothing. A group carries its number, and the checksum of the one before.
//
// A process reads, with Read or From, then Begins a term, then Appends. Only one goroutine may use it at a time.
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

// Group is what a file of a log has.
type Group struct {
	Number int64
	Begins bool // a term: it follows any other, as its writer may not have read all before it
	Data   []byte

	at, next appendlog.Position
}

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
	needed := func() (bool, error) { // who removes a log removes all of it
		names, err := l.Files(ctx)
		return len(names) > 0, err
	}
	all, err := l.Between(ctx, appendlog.Position{Number: first}, l.next.Number, needed)
	if err != nil {
		return nil, err
	}
	begun := false
	for _, g := range all {
		if g.Begins {
			groups, begun = nil, true
			l.terms = append(l.terms, l.FileOf(g.Number))
		}
		groups = append(groups, g.Data)
		l.next = g.next
	}
	if !begun {
		return nil, missing(l.files, l.folder)
	}
	return groups, nil
}

// Between reads the groups from a position on and below a number, all of which exist while needed says so. It
// lists none: a list may lack the newest.
func (l *Log) Between(ctx context.Context, from appendlog.Position, below int64, needed func() (bool, error)) ([]Group, error) {
	groups := make([]Group, max(below-from.Number, 0))
	names := make([]string, len(groups))
	for i := range names {
		names[i] = l.FileOf(from.Number + int64(i))
	}
	err := Each(ctx, names, func(ctx context.Context, i int) error {
		return AwaitSealed(ctx, l.files, names[i], needed, func() (err error) {
			groups[i], err = l.Group(ctx, from.Number+int64(i))
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	at := from
	for i, g := range groups {
		if !g.Follows(at) {
			return nil, fmt.Errorf("%s: %w: it does not follow the one before it", l.files.Path(names[i]), appendlog.ErrDamaged)
		}
		at = g.next
	}
	return groups, nil
}

// Follows reports whether the group may be at a position of a log, where the checksum before it may not be
// known.
func (g Group) Follows(at appendlog.Position) bool {
	return g.at.Number == at.Number && (g.Begins || at.Before == 0 || g.at.Before == at.Before)
}

// Next is the position behind the group.
func (g Group) Next() appendlog.Position { return g.next }

// Next is where the log goes on.
func (l *Log) Next() appendlog.Position { return l.next }

// Remove ends the log. First go the files that begin a term, the newest as the last one: what is left of the others, or
// what a power cut brings back of them, is no log, nor that of an earlier term.
func (l *Log) Remove(ctx context.Context) error {
	if last := len(l.terms) - 1; last >= 0 {
		if last > 0 {
			if err := l.files.Remove(ctx, l.terms[:last]...); err != nil {
				return err
			}
		}
		if err := l.files.Remove(ctx, l.terms[last]); err != nil {
			return err
		}
	}
	names, err := l.Files(ctx)
	if err != nil || len(names) == 0 {
		return err
	}
	return l.files.Remove(ctx, names...)
}

// RemoveRest removes what is left of a log that was removed before, the oldest files first. Nothing of it comes back
// beside a log that begins after that.
func (l *Log) RemoveRest(ctx context.Context) error {
	names, err := l.Files(ctx)
	if len(names) == 0 { // what a killed process has removed may not be durable
		names = []string{l.FileOf(0)}
	}
	for _, name := range names {
		if err == nil {
			err = l.files.Remove(ctx, name)
		}
	}
	return err
}

// Group reads one group.
func (l *Log) Group(ctx context.Context, number int64) (g Group, err error) {
	at, next, content, err := readAt(ctx, l.files, l.FileOf(number))
	if err == nil && (len(content) == 0 || at.Number != number) {
		err = fmt.Errorf("%s: %w: it has no group of this number", l.files.Path(l.FileOf(number)), appendlog.ErrDamaged)
	}
	if err != nil {
		return g, err
	}
	return Group{Number: number, Begins: content[0] == begins, Data: content[1:], at: at, next: next}, nil
}

// RemoveBelow removes the groups below a number, but for those that began a term not long ago: a process that
// slept could else append where they were.
func (l *Log) RemoveBelow(ctx context.Context, below int64) error {
	var gone []string
	for info, err := range l.files.List(ctx, l.folder+"/") {
		if err != nil {
			return err
		}
		number, err := l.Number(info.Name)
		if err != nil || number >= below {
			continue // it is unfinished, or was set aside
		}
		keep, err := l.keeps(ctx, number, info)
		if err != nil {
			return err
		}
		if !keep {
			gone = append(gone, info.Name)
		}
	}
	return l.files.Remove(ctx, gone...)
}

// keptTerms is how long a group that begins a term is kept, and maxTermBytes larger than any that has no
// changes, also where a list has the size of an encrypted object.
const (
	keptTerms    = 30 * 24 * time.Hour
	maxTermBytes = 1 << 10
)

func (l *Log) keeps(ctx context.Context, number int64, info Info) (bool, error) {
	if time.Since(info.ModTime) >= keptTerms || info.Size >= maxTermBytes {
		return false, nil
	}
	g, err := l.Group(ctx, number)
	if IsMissing(err) || errors.Is(err, appendlog.ErrDamaged) { // a damaged one ends no log; it was set aside
		return false, nil
	}
	return g.Begins, err
}

// Skip makes a number that of the next file.
func (l *Log) Skip(to int64) { l.next = appendlog.Position{Number: to} }

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

// Begin begins a term with a group: earlier processes can append nothing behind it. One of them may still be
// active, and create files faster than this one can read them: so it looks for the end before each try,
// after renew.
func (l *Log) Begin(ctx context.Context, group []byte, renew func() error) error {
	const tries = 1000
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
		last, err := l.last(ctx, l.next.Number)
		if err != nil {
			return err
		}
		l.next = appendlog.Position{Number: last + 1}
	}
	return fmt.Errorf("%s: %w", l.files.Path(l.folder), ErrFenced)
}

// last returns the number of the last file of a log that has one of a number. It lists a hundred at a time,
// because an active writer goes on meanwhile.
func (l *Log) last(ctx context.Context, from int64) (int64, error) {
	last := from
	for hundred := from / 100; ; hundred++ {
		for info, err := range l.files.List(ctx, fmt.Sprintf("%s/%08d", l.folder, hundred)) {
			if err != nil {
				return last, err
			}
			if number, err := l.Number(info.Name); err == nil {
				last = max(last, number)
			}
		}
		if last < hundred*100+99 {
			return last, nil
		}
	}
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
