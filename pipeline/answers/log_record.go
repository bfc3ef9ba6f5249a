package answers

import (
	"encoding/binary"
	"slices"

	"github.com/leadetl/leadetl/internal/fields"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/resolution"
)

// A log record holds the changes of one group in sequence. Each change is a
// letter followed by its fields. Numbers are varints. Texts and bodies are
// preceded by their length. A record begins with the scopes and runs that its changes refer to,
// which are numbered in the record, and with what each run has asked and spent since it began, so
// that a lost record is not forgotten.
const (
	callRecord   = 'c' // a call is open, with its current state
	closedRecord = 'd' // a call has ended without an answer
	answerRecord = 'a' // an answer; it ends its question's call
	bodyRecord   = 'b' // the kept body of an open call
	scopeRecord  = 's' // the name of a scope
	runRecord    = 'r' // the name of a run, and its running total
)

func appendCall(to []byte, in names, c *OpenCall) []byte {
	to = append(append(to, callRecord), c.Hash[:]...)
	for _, n := range []int64{in.scope, in.run, int64(c.Attempts), toMillis(c.Sent), int64(c.Status), toMillisOrZero(c.Deadline), boolToInt(c.MaybeBilled)} {
		to = binary.AppendVarint(to, n)
	}
	for _, text := range []string{c.Asked(), c.IdempotencyKey, string(c.State), c.Reason, c.Resolution, c.Request} {
		to = fields.Append(to, text)
	}
	return to
}

func appendClosed(to []byte, h Hash) []byte { return append(append(to, closedRecord), h[:]...) }

func appendAnswer(to []byte, in names, a *Item) []byte {
	to = append(append(to, answerRecord), a.Hash[:]...)
	credits := int64(-1)
	if a.Credits != nil {
		credits = *a.Credits
	}
	for _, n := range []int64{in.scope, in.run, toMillis(a.Received), int64(a.Status), boolToInt(a.Credits != nil), credits} {
		to = binary.AppendVarint(to, n)
	}
	for _, text := range []string{a.Key, string(a.Outcome), a.Reason, a.Resolution, a.Request} {
		to = fields.Append(to, text)
	}
	return fields.Append(to, a.Body)
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

// names are the numbers of a scope and a run in a record.
type names struct{ scope, run int64 }

// nameTable numbers the scopes and runs that a record refers to.
type nameTable struct {
	scopes []Scope
	runs   []runTotal // after the record
}

func (t *nameTable) reset() { t.scopes, t.runs = t.scopes[:0], t.runs[:0] }

// scope returns the number of a scope.
func (t *nameTable) scope(of Scope) int64 {
	i := slices.Index(t.scopes, of)
	if i < 0 {
		i = len(t.scopes)
		t.scopes = append(t.scopes, of)
	}
	return int64(i)
}

// run returns the number of a run; -1 without one.
func (t *nameTable) run(name string) int64 {
	return int64(slices.IndexFunc(t.runs, func(r runTotal) bool { return r.Name == name }))
}

func (t *nameTable) append(to []byte) []byte {
	for id, of := range t.scopes {
		to = binary.AppendVarint(append(to, scopeRecord), int64(id))
		to = fields.Append(fields.Append(to, of.Service), string(of.Operation))
	}
	return appendRuns(to, t.runs)
}

func appendRuns(to []byte, runs []runTotal) []byte {
	for id, r := range runs {
		to = append(to, runRecord)
		for _, n := range []int64{int64(id), r.Intents, r.Answers, r.Unpriced, r.Credits} {
			to = binary.AppendVarint(to, n)
		}
		to = fields.Append(to, r.Name)
	}
	return to
}

// errRecord means that a record has the right checksum but an unknown format.
var errRecord error = &format.Error{Where: "a record of the log", Found: format.Unknown, Reads: storeFormat, Advice: ExportFirst}

// readGroup makes the changes of a record.
func readGroup(record []byte, to changes) error {
	r := recordReader{Reader: fields.Reader{Rest: record}}
	for len(r.Rest) > 0 {
		if r.change(to); r.Broken {
			return errRecord
		}
	}
	return nil
}

// changes receives the changes of a record.
type changes interface {
	setCall(*OpenCall)
	closeCall(Hash)
	addAnswer(*Item)
	setBody(Hash, KeptBody)
	setRun(runTotal)
}

// recordReader decodes the changes of a record.
type recordReader struct {
	fields.Reader
	scopes []Scope
	runs   []string
}

// change decodes one change and applies it to to.
func (r *recordReader) change(to changes) {
	switch kind := r.Byte(); {
	case r.Broken:
	case kind == callRecord:
		if c := r.call(); !r.Broken {
			to.setCall(c)
		}
	case kind == closedRecord:
		if h := ReadHash(&r.Reader); !r.Broken {
			to.closeCall(h)
		}
	case kind == answerRecord:
		if a := r.answer(); !r.Broken {
			to.addAnswer(a)
		}
	case kind == bodyRecord:
		h, body := ReadHash(&r.Reader), r.Bytes()
		if !r.Broken {
			to.setBody(h, body)
		}
	case kind == scopeRecord:
		if r.Int() != int64(len(r.scopes)) {
			r.Break()
		}
		r.scopes = append(r.scopes, Scope{r.Text(), resolution.Operation(r.Text())})
	case kind == runRecord:
		if r.Int() != int64(len(r.runs)) {
			r.Break()
		}
		run := runTotal{Intents: r.Int(), Spending: Spending{r.Int(), r.Int(), r.Int()}}
		run.Name = r.Text()
		r.runs = append(r.runs, run.Name)
		if !r.Broken {
			to.setRun(run)
		}
	default:
		r.Broken = true
	}
}

// names decodes the numbers of a scope and a run.
func (r *recordReader) names() (of Scope, run string) {
	i, j := r.Int(), r.Int()
	if i < 0 || i >= int64(len(r.scopes)) || j < 0 || j >= int64(len(r.runs)) {
		r.Break()
		return of, run
	}
	return r.scopes[i], r.runs[j]
}

func (r *recordReader) call() *OpenCall {
	c := &OpenCall{Hash: ReadHash(&r.Reader)}
	c.Scope, c.Run = r.names()
	c.Attempts, c.Sent = int(r.Int()), fromMillis(r.Int())
	c.Status, c.Deadline, c.MaybeBilled = int(r.Int()), fromMillisOrZero(r.Int()), r.Int() != 0
	c.SetAsked(r.Text())
	c.IdempotencyKey, c.State, c.Reason, c.Resolution, c.Request = r.Text(), State(r.Text()), r.Text(), r.Text(), r.Text()
	return c
}

func (r *recordReader) answer() *Item {
	a := &Item{Hash: ReadHash(&r.Reader)}
	a.Scope, a.Run = r.names()
	a.Received, a.Status = fromMillis(r.Int()), int(r.Int())
	priced, credits := r.Int(), r.Int()
	if priced != 0 {
		a.Credits = &credits
	}
	a.Key, a.Outcome, a.Reason, a.Resolution, a.Request = r.Text(), Outcome(r.Text()), r.Text(), r.Text(), r.Text()
	a.Body = r.Bytes()
	return a
}

// ReadHash decodes a hash.
func ReadHash(r *fields.Reader) (h Hash) {
	copy(h[:], r.Take(len(h)))
	return h
}
