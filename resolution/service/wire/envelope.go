// Package wire writes the JSON of the interface: envelopes, leads, results of
// searches and problems, and the headers of every answer.
package wire

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/request"
)

// Version is the version of the interface. A caller may request a major version,
// and gets the newest version of it.
const Version = "1.0.0"

// TimeFormat is how the interface writes times: UTC, to the millisecond.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// Envelope is an answer about a resolution. It is written member by member,
// because most members are JSON already.
type Envelope struct {
	Success     bool
	Message     string
	Test        bool // the answer is to a test key
	Data        bool // whether the lead has data; written only with a lead
	Id          uuid.UUID
	Status      string // if empty, there is no member resolution
	Requested   time.Time
	CallbackURL string
	Lead        []byte // JSON; if nil, there is no member lead
	Outcome     []byte // of a finished job: a JSON object whose members are written too; may be nil
	Problem     *ProblemBody
	Payload     []byte // JSON
	Repeated    []byte // members of the request to repeat, as JSON without braces; may be empty
}

// Write appends the envelope.
func (e *Envelope) Write(b *bytes.Buffer) {
	b.WriteString(`{"success":`)
	writeBool(b, e.Success)
	b.WriteString(`,"message":`)
	WriteJSON(b, e.Message)
	if e.Test {
		b.WriteString(`,"test":true`)
	}
	if e.Lead != nil {
		b.WriteString(`,"data":`)
		writeBool(b, e.Data)
	}
	if e.Status != "" {
		b.WriteString(`,"resolution":{"id":"`)
		b.WriteString(request.FormatID(e.Id))
		b.WriteString(`","status":"`)
		b.WriteString(e.Status)
		b.WriteString(`","requested_at":"`)
		b.Write(e.Requested.UTC().AppendFormat(b.AvailableBuffer(), TimeFormat))
		b.WriteByte('"')
		if e.CallbackURL != "" {
			b.WriteString(`,"callback_url":`)
			WriteJSON(b, e.CallbackURL)
		}
		b.WriteByte('}')
	}
	if e.Lead != nil {
		b.WriteString(`,"lead":`)
		b.Write(e.Lead)
	}
	if e.Outcome != nil {
		b.WriteByte(',')
		b.Write(e.Outcome[1 : len(e.Outcome)-1])
	}
	if e.Problem != nil {
		b.WriteString(`,"error":`)
		WriteJSON(b, e.Problem)
	}
	b.WriteString(`,"payload":`)
	b.Write(e.Payload)
	if len(e.Repeated) > 0 {
		b.WriteByte(',')
		b.Write(e.Repeated)
	}
	b.WriteByte('}')
}

// Bytes returns the envelope.
func (e *Envelope) Bytes() []byte {
	var b bytes.Buffer
	e.Write(&b)
	return b.Bytes()
}

// event returns the body of a callback: a finished envelope with the kind and
// the time of the event, and the operation. A receiver of several operations
// needs it: two answers without a match look the same.
func event(finished []byte, kind string, of resolution.Operation, at time.Time) []byte {
	b := bytes.NewBuffer(make([]byte, 0, len(finished)+120))
	b.Write(finished[:len(finished)-1])
	b.WriteString(`,"type":"`)
	b.WriteString(kind)
	b.WriteString(`","operation":"`)
	b.WriteString(string(of))
	b.WriteString(`","timestamp":"`)
	b.WriteString(at.UTC().Format(TimeFormat))
	b.WriteString(`"}`)
	return b.Bytes()
}

// WriteJSON writes a value without HTML escapes. The value must be of one of our
// own types, which cannot fail.
func WriteJSON(b *bytes.Buffer, v any) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	b.Truncate(b.Len() - 1) // the line end
}

func writeBool(b *bytes.Buffer, v bool) {
	if v {
		b.WriteString("true")
	} else {
		b.WriteString("false")
	}
}
