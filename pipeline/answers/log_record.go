package answers

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/leadetl/leadetl/internal/appendlog"
)

// A log record holds the changes of one group in sequence. Each change is a
// letter followed by its fields. Numbers are varints. Texts and bodies are
// preceded by their length. Scopes and runs are row ids; the rows are in the
// database before a record refers to them.
const (
	callRecord   = 'c' // a call is open, with its current state
	closedRecord = 'd' // a call has ended without an answer
	answerRecord = 'a' // an answer; it ends its question's call
)

func appendCall(to []byte, c *call) []byte {
	to = append(append(to, callRecord), c.open.Hash[:]...)
	for _, n := range []int64{c.scope, c.run, int64(c.open.Attempts), toMillis(c.open.Sent), int64(c.open.Status), toMillisOrZero(c.open.Deadline), boolToInt(c.open.MaybeBilled)} {
		to = binary.AppendVarint(to, n)
	}
	for _, text := range []string{c.open.Key, c.open.IdempotencyKey, string(c.open.State), c.open.Reason, c.open.Resolution, c.open.Request} {
		to = appendText(to, text)
	}
	return to
}

func appendClosed(to []byte, h Hash) []byte { return append(append(to, closedRecord), h[:]...) }

func appendAnswer(to []byte, a *answered) []byte {
	to = append(append(to, answerRecord), a.hash[:]...)
	credits := int64(-1)
	if a.answer.Credits != nil {
		credits = *a.answer.Credits
	}
	for _, n := range []int64{a.scope, a.run, toMillis(a.answer.Received), int64(a.answer.Status), boolToInt(a.answer.Credits != nil), credits} {
		to = binary.AppendVarint(to, n)
	}
	for _, text := range []string{a.key, string(a.answer.Outcome), a.answer.Reason, a.answer.Resolution, a.answer.Request} {
		to = appendText(to, text)
	}
	return append(binary.AppendUvarint(to, uint64(len(a.answer.Body))), a.answer.Body...)
}

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

func boolToInt(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// errRecord means that a record has the right checksum but an unknown format.
var errRecord = errors.New("a record of the log cannot be read")

// readLog reads a log file into a generation. Its calls have no Run, Service
// and Operation, only the ids of their rows.
func readLog(number int64, path string) (*generation, error) {
	g := newGeneration(number, path)
	err := appendlog.Read(path, func(record []byte) error {
		for r := (recordReader{rest: record}); len(r.rest) > 0; {
			r.change(g)
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

// recordReader decodes a record. If it finds invalid data, it sets broken and
// returns empty values from then on.
type recordReader struct {
	rest   []byte
	broken bool
}

// changes receives the changes of a record.
type changes interface {
	setCall(*call)
	closeCall(Hash)
	addAnswer(*answered)
}

// change decodes one change and applies it to to. Scopes and runs have no names
// here, only the ids of their rows.
func (r *recordReader) change(to changes) {
	switch kind := r.bytes(1); {
	case r.broken:
	case kind[0] == callRecord:
		c := &call{}
		c.open.Hash = r.hash()
		c.scope, c.run, c.open.Attempts, c.open.Sent = r.int(), r.int(), int(r.int()), fromMillis(r.int())
		c.open.Status, c.open.Deadline, c.open.MaybeBilled = int(r.int()), fromMillisOrZero(r.int()), r.int() != 0
		c.open.Key, c.open.IdempotencyKey, c.open.State, c.open.Reason, c.open.Resolution, c.open.Request = r.text(), r.text(), State(r.text()), r.text(), r.text(), r.text()
		if !r.broken {
			to.setCall(c)
		}
	case kind[0] == closedRecord:
		if h := r.hash(); !r.broken {
			to.closeCall(h)
		}
	case kind[0] == answerRecord:
		a := &answered{hash: r.hash()}
		a.scope, a.run, a.answer.Received, a.answer.Status = r.int(), r.int(), fromMillis(r.int()), int(r.int())
		priced, credits := r.int(), r.int()
		if priced != 0 {
			a.answer.Credits = &credits
		}
		a.key, a.answer.Outcome, a.answer.Reason, a.answer.Resolution, a.answer.Request = r.text(), Outcome(r.text()), r.text(), r.text(), r.text()
		a.answer.Body = r.bytes(r.length())
		if !r.broken {
			to.addAnswer(a)
		}
	default:
		r.broken = true
	}
}

func (r *recordReader) hash() (h Hash) {
	copy(h[:], r.bytes(len(h)))
	return h
}

func (r *recordReader) text() string { return string(r.bytes(r.length())) }

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
