package service

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/request"
)

// moments is how the interface writes moments: UTC, to the millisecond.
const moments = "2006-01-02T15:04:05.000Z"

// envelope is an answer about a resolution, written member by member because
// most of it is at hand as JSON already.
type envelope struct {
	success     bool
	message     string
	data        bool // lead holds something; told beside a lead
	id          uuid.UUID
	status      string // empty: no member resolution
	requested   time.Time
	callbackURL string
	lead        []byte // JSON; nil: no member
	outcome     []byte // a JSON object whose members are told too: of a finished job; may be nil
	problem     *problemBody
	payload     []byte // JSON
	repeated    []byte // the request's members again, as JSON members; may be empty
}

func (e *envelope) write(b *bytes.Buffer) {
	b.WriteString(`{"success":`)
	writeBool(b, e.success)
	b.WriteString(`,"message":`)
	writeString(b, e.message)
	if e.lead != nil {
		b.WriteString(`,"data":`)
		writeBool(b, e.data)
	}
	if e.status != "" {
		b.WriteString(`,"resolution":{"id":"`)
		b.WriteString(request.FormatID(e.id))
		b.WriteString(`","status":"`)
		b.WriteString(e.status)
		b.WriteString(`","requested_at":"`)
		b.Write(e.requested.UTC().AppendFormat(b.AvailableBuffer(), moments))
		b.WriteByte('"')
		if e.callbackURL != "" {
			b.WriteString(`,"callback_url":`)
			writeString(b, e.callbackURL)
		}
		b.WriteByte('}')
	}
	if e.lead != nil {
		b.WriteString(`,"lead":`)
		b.Write(e.lead)
	}
	if e.outcome != nil {
		b.WriteByte(',')
		b.Write(e.outcome[1 : len(e.outcome)-1])
	}
	if e.problem != nil {
		b.WriteString(`,"error":`)
		writeJSON(b, e.problem)
	}
	b.WriteString(`,"payload":`)
	b.Write(e.payload)
	if len(e.repeated) > 0 {
		b.WriteByte(',')
		b.Write(e.repeated)
	}
	b.WriteByte('}')
}

// event is the body of a callback: a finished envelope, and what happened
// when.
func event(finished []byte, kind string, at time.Time) []byte {
	b := bytes.NewBuffer(make([]byte, 0, len(finished)+80))
	b.Write(finished[:len(finished)-1])
	b.WriteString(`,"type":"`)
	b.WriteString(kind)
	b.WriteString(`","timestamp":"`)
	b.WriteString(at.UTC().Format(moments))
	b.WriteString(`"}`)
	return b.Bytes()
}

// webhookID makes the id of a callback.
func webhookID() (string, error) {
	id, err := uuid.NewV7()
	return "msg_" + hex.EncodeToString(id[:]), err
}

// narrow is an operation's lead without what the operation is not asked for,
// whatever the Resolver filled in.
func narrow(o resolution.Operation, l *resolution.Lead) *resolution.Lead {
	switch {
	case l == nil:
		return &resolution.Lead{}
	case o == resolution.EmailToHEM, o == resolution.NetworkToHEM:
		return &resolution.Lead{HashedEmails: l.HashedEmails, NetworkURL: l.NetworkURL}
	case o == resolution.NetworkToPhone:
		return &resolution.Lead{Phone: l.Phone}
	case o == resolution.IPToCompany:
		return &resolution.Lead{Company: l.Company}
	}
	return l
}

// writeJSON writes a value of our own types, which cannot fail, without
// escaping what only HTML minds.
func writeJSON(b *bytes.Buffer, v any) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	b.Truncate(b.Len() - 1) // the line end
}

// writeString is writeJSON for strings.
func writeString(b *bytes.Buffer, s string) {
	o := object{b.AvailableBuffer()}
	o.string(s)
	b.Write(o.b)
}

func writeBool(b *bytes.Buffer, v bool) {
	if v {
		b.WriteString("true")
	} else {
		b.WriteString("false")
	}
}
