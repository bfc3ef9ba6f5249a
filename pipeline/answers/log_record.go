package answers

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/leadetl/leadetl/internal/fields"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/resolution"
)

// A log record holds the changes of one group in sequence. Each change is a
// letter followed by its fields. Numbers are varints. Texts and bodies are
// preceded by their length. Scopes and runs are row ids; the rows are in the
// database before a record refers to them. A record begins with the names of those
// that it refers to, so it can be read without the database, and with what each run
// has asked and spent since it began, so that a lost record is not forgotten.
const (
	callRecord   = 'c' // a call is open, with its current state
	closedRecord = 'd' // a call has ended without an answer
	answerRecord = 'a' // an answer; it ends its question's call
	bodyRecord   = 'b' // the kept body of an open call
	scopeRecord  = 's' // the name of a scope
	runRecord    = 'r' // the name of a run, and its running total
)

func appendCall(to []byte, c *call) []byte {
	to = append(append(to, callRecord), c.open.Hash[:]...)
	for _, n := range []int64{c.scope, c.run, int64(c.open.Attempts), toMillis(c.open.Sent), int64(c.open.Status), toMillisOrZero(c.open.Deadline), boolToInt(c.open.MaybeBilled)} {
		to = binary.AppendVarint(to, n)
	}
	for _, text := range []string{c.open.Asked(), c.open.IdempotencyKey, string(c.open.State), c.open.Reason, c.open.Resolution, c.open.Request} {
		to = fields.Append(to, text)
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
		to = fields.Append(to, text)
	}
	return fields.Append(to, a.answer.Body)
}

func appendBody(to []byte, h Hash, body KeptBody) []byte {
	return fields.Append(append(append(to, bodyRecord), h[:]...), []byte(body))
}

func boolToInt(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

func appendScope(to []byte, id int64, of Scope) []byte {
	to = binary.AppendVarint(append(to, scopeRecord), id)
	return fields.Append(fields.Append(to, of.Service), string(of.Operation))
}

func appendRun(to []byte, id int64, r runTotal) []byte {
	to = append(to, runRecord)
	for _, n := range []int64{id, r.Intents, r.Answers, r.Unpriced, r.Credits} {
		to = binary.AppendVarint(to, n)
	}
	return fields.Append(to, r.Name)
}

// errRecord means that a record has the right checksum but an unknown format.
var errRecord error = &format.Error{Where: "a record of the log", Found: format.Unknown, Reads: schemaFormat, Advice: ExportFirst}

// readGroup makes the changes of a record.
func readGroup(record []byte, to changes) error {
	for r := (fields.Reader{Rest: record}); len(r.Rest) > 0; {
		if readChange(&r, to); r.Broken {
			return errRecord
		}
	}
	return nil
}

// ScopesOf returns the scopes that a record names.
func ScopesOf(record []byte) []Scope {
	g := newGeneration(0)
	_ = readGroup(record, g) // names come first
	return slices.Collect(maps.Values(g.scopes))
}

// changes receives the changes of a record.
type changes interface {
	setCall(*call)
	closeCall(Hash)
	addAnswer(*answered)
	setBody(Hash, KeptBody)
	nameScope(id int64, of Scope)
	setRun(id int64, r runTotal)
}

// readChange decodes one change and applies it to to. Scopes and runs have no names
// here, only the ids of their rows.
func readChange(r *fields.Reader, to changes) {
	switch kind := r.Byte(); {
	case r.Broken:
	case kind == callRecord:
		c := &call{}
		c.open.Hash = ReadHash(r)
		c.scope, c.run, c.open.Attempts, c.open.Sent = r.Int(), r.Int(), int(r.Int()), fromMillis(r.Int())
		c.open.Status, c.open.Deadline, c.open.MaybeBilled = int(r.Int()), fromMillisOrZero(r.Int()), r.Int() != 0
		c.open.SetAsked(r.Text())
		c.open.IdempotencyKey, c.open.State, c.open.Reason, c.open.Resolution, c.open.Request = r.Text(), State(r.Text()), r.Text(), r.Text(), r.Text()
		if !r.Broken {
			to.setCall(c)
		}
	case kind == closedRecord:
		if h := ReadHash(r); !r.Broken {
			to.closeCall(h)
		}
	case kind == answerRecord:
		a := &answered{hash: ReadHash(r)}
		a.scope, a.run, a.answer.Received, a.answer.Status = r.Int(), r.Int(), fromMillis(r.Int()), int(r.Int())
		priced, credits := r.Int(), r.Int()
		if priced != 0 {
			a.answer.Credits = &credits
		}
		a.key, a.answer.Outcome, a.answer.Reason, a.answer.Resolution, a.answer.Request = r.Text(), Outcome(r.Text()), r.Text(), r.Text(), r.Text()
		a.answer.Body = r.Bytes()
		if !r.Broken {
			to.addAnswer(a)
		}
	case kind == bodyRecord:
		h, body := ReadHash(r), r.Bytes()
		if !r.Broken {
			to.setBody(h, body)
		}
	case kind == scopeRecord:
		id, of := r.Int(), Scope{r.Text(), resolution.Operation(r.Text())}
		if !r.Broken {
			to.nameScope(id, of)
		}
	case kind == runRecord:
		id, run := r.Int(), runTotal{Intents: r.Int(), Spending: Spending{r.Int(), r.Int(), r.Int()}}
		run.Name = r.Text()
		if !r.Broken {
			to.setRun(id, run)
		}
	default:
		r.Broken = true
	}
}

// ReadHash decodes a hash.
func ReadHash(r *fields.Reader) (h Hash) {
	copy(h[:], r.Take(len(h)))
	return h
}
