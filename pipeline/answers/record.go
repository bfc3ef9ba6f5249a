package answers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
)

// A record of the log is what one group changed, one after the other: a letter
// each, then what it is about. Numbers are varints, texts and bodies have their
// length before them. Rows of scopes and runs are named by their numbers: they
// are in the database before anything refers to them.
const (
	callRecord   = 'c' // a call is open, and this is how it stands
	closedRecord = 'd' // a call has ended without an answer
	answerRecord = 'a' // an answer; it ends its question's call
)

func appendCall(to []byte, c *call) []byte {
	to = append(append(to, callRecord), c.Hash[:]...)
	for _, n := range []int64{c.scope, c.run, int64(c.Attempts), millis(c.Sent), int64(c.Status), millisOrZero(c.Deadline), number(c.doubtful)} {
		to = binary.AppendVarint(to, n)
	}
	for _, text := range []string{c.Key, c.IdempotencyKey, string(c.State), c.Reason, c.Resolution, c.Request} {
		to = appendText(to, text)
	}
	return to
}

func appendClosed(to []byte, h Hash) []byte { return append(append(to, closedRecord), h[:]...) }

func appendAnswer(to []byte, a *answered) []byte {
	to = append(append(to, answerRecord), a.hash[:]...)
	credits := int64(-1)
	if a.Credits != nil {
		credits = *a.Credits
	}
	for _, n := range []int64{a.scope, a.run, millis(a.Received), int64(a.Status), number(a.Credits != nil), credits} {
		to = binary.AppendVarint(to, n)
	}
	for _, text := range []string{a.key, string(a.Outcome), a.Reason, a.Resolution, a.Request} {
		to = appendText(to, text)
	}
	return append(binary.AppendUvarint(to, uint64(len(a.Body))), a.Body...)
}

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

func number(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// errRecord says that a record is whole and yet none of ours.
var errRecord = errors.New("a record of the log cannot be read")

// readLog makes a generation of a log file. Its calls have no Run, Service and
// Operation: only the numbers of their rows.
func readLog(number int64, path string) (*generation, error) {
	g := newGeneration(number, path)
	err := appendlog.Read(path, func(record []byte) error {
		for r := (recordReader{rest: record}); len(r.rest) > 0; {
			r.one(g)
			if r.broken {
				return errRecord
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return g, nil
}

// recordReader takes a record apart. After what cannot be read everything is
// empty, and broken set.
type recordReader struct {
	rest   []byte
	broken bool
}

func (r *recordReader) one(g *generation) {
	switch kind := r.bytes(1); {
	case r.broken:
	case kind[0] == callRecord:
		c := &call{}
		copy(c.Hash[:], r.hash())
		c.scope, c.run, c.Attempts, c.Sent = r.int(), r.int(), int(r.int()), moment(r.int())
		c.Status, c.Deadline, c.doubtful = int(r.int()), momentOrZero(r.int()), r.int() != 0
		c.Key, c.IdempotencyKey, c.State, c.Reason, c.Resolution, c.Request = r.text(), r.text(), State(r.text()), r.text(), r.text(), r.text()
		if !r.broken {
			g.calls[c.Hash] = c
		}
	case kind[0] == closedRecord:
		if h := Hash(r.hash()); !r.broken {
			g.calls[h] = nil
		}
	case kind[0] == answerRecord:
		a := &answered{}
		copy(a.hash[:], r.hash())
		a.scope, a.run, a.Received, a.Status = r.int(), r.int(), moment(r.int()), int(r.int())
		priced, credits := r.int(), r.int()
		if priced != 0 {
			a.Credits = &credits
		}
		a.key, a.Outcome, a.Reason, a.Resolution, a.Request = r.text(), Outcome(r.text()), r.text(), r.text(), r.text()
		a.Body = r.bytes(r.length())
		if !r.broken {
			g.answer(a)
			g.calls[a.hash] = nil
		}
	default:
		r.broken = true
	}
}

func (r *recordReader) hash() []byte {
	h := r.bytes(len(Hash{}))
	if r.broken {
		return make([]byte, len(Hash{}))
	}
	return h
}

func (r *recordReader) bytes(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.rest, r.broken = nil, true
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *recordReader) int() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.rest, r.broken = nil, true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *recordReader) length() int {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > uint64(len(r.rest)) {
		r.rest, r.broken = nil, true
		return 0
	}
	r.rest = r.rest[n:]
	return int(v)
}

func (r *recordReader) text() string { return string(r.bytes(r.length())) }

// millisOrZero is 0 for the zero time, which is not a moment.
func millisOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return millis(t)
}

func momentOrZero(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return moment(ms)
}
