package answers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/leadetl/leadetl/resolution"
)

// Line is an answer or an open call as Export writes it and Import reads it: the only form of
// them that other versions of the program share.
type Line struct {
	Item           // of an answer
	Call *OpenCall // an open call; nil for an answer
}

// question returns the question of an answer or call, and its hash.
func (l Line) question() (Question, Hash) {
	if l.Call != nil {
		return l.Call.Question, l.Call.Hash
	}
	return l.Question, l.Hash
}

// lineJSON is the JSON of a line. Members that are personal data: key, address and the bodies.
type lineJSON struct {
	KeyHash   string `json:"key_hash"`
	Key       string `json:"key"`
	Address   string `json:"address,omitempty"`
	Service   string `json:"service"`
	Operation string `json:"operation"`

	// Of an answer.
	ReceivedAt time.Time `json:"received_at,omitzero"`
	Outcome    Outcome   `json:"outcome,omitempty"`

	// Of an open call.
	State          State     `json:"state,omitempty"`
	SentAt         time.Time `json:"sent_at,omitzero"`
	Deadline       time.Time `json:"deadline,omitzero"`
	IdempotencyKey string    `json:"idempotency_key,omitempty"`
	Attempts       int       `json:"attempts,omitempty"`
	MaybeBilled    bool      `json:"maybe_billed,omitempty"`

	Reason     string          `json:"reason,omitempty"`
	Status     int             `json:"status"`
	Credits    *int64          `json:"credits,omitempty"`
	Run        string          `json:"run"`
	Resolution string          `json:"resolution_id,omitempty"`
	Request    string          `json:"request_id,omitempty"`
	Body       json.RawMessage `json:"body,omitempty"`
	BodyText   string          `json:"body_text,omitempty"`
	BodyBytes  []byte          `json:"body_base64,omitempty"`
}

// Export writes answers and open calls as JSON lines, with keys and bodies, which are personal
// data. It writes a body that is JSON to the member body, other text to body_text, and anything
// else to body_base64. A call that is under way is unknown: its process may die.
func Export(w io.Writer, lines iter.Seq2[Line, error]) error {
	buffered := bufio.NewWriter(w)
	for l, err := range lines {
		if err == nil {
			err = l.write(buffered)
		}
		if err != nil {
			return err
		}
	}
	return buffered.Flush()
}

func (l Line) write(to io.Writer) error {
	j, body, err := l.members()
	if err != nil {
		return err
	}
	switch {
	case !utf8.Valid(body):
		j.BodyBytes = body
	case json.Valid(body):
		j.Body = body // without insignificant white space
	default:
		j.BodyText = string(body)
	}
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(j)
}

func (l Line) members() (j lineJSON, body []byte, err error) {
	q, h := l.question()
	j = lineJSON{KeyHash: h.String(), Key: q.Key, Service: q.Service, Operation: string(q.Operation)}
	c := l.Call
	if c == nil {
		j.ReceivedAt, j.Outcome, j.Credits = l.Received, l.Outcome, l.Credits
		j.Reason, j.Status, j.Run, j.Resolution, j.Request = l.Reason, l.Status, l.Run, l.Resolution, l.Request
		return j, l.Item.Body, nil
	}
	j.Address, j.State, j.SentAt, j.Deadline = c.Address, c.State, c.Sent, c.Deadline
	j.IdempotencyKey, j.Attempts, j.MaybeBilled = c.IdempotencyKey, c.Attempts, c.MaybeBilled
	if j.State != Parked {
		j.State, j.MaybeBilled = Unknown, true
	}
	j.Reason, j.Status, j.Run, j.Resolution, j.Request = c.Reason, c.Status, c.Run, c.Resolution, c.Request
	body, err = c.Body.Plain()
	return j, body, err
}

// text is the line as Export writes it. Two lines say the same if their texts are the same.
func (l Line) text() (string, error) {
	var text bytes.Buffer
	err := l.write(&text)
	return text.String(), err
}

// ParseLine reads a line of Export. The error does not contain anything of the line.
func ParseLine(text []byte) (Line, error) {
	j, err := decodeLine(text)
	if err != nil {
		return Line{}, err
	}
	body, err := j.body()
	if err != nil {
		return Line{}, err
	}
	q := Question{Scope{j.Service, resolution.Operation(j.Operation)}, j.Key}
	switch {
	case j.Service == "" || j.Operation == "" || j.Key == "":
		err = errors.New("service, operation and key must not be empty")
	case q.Hash().String() != j.KeyHash:
		err = errors.New("key_hash is not that of the service, operation and key")
	case j.Status < 0 || j.Status > 999:
		err = errors.New("status is not one of HTTP")
	case (j.Outcome == "") == (j.State == ""):
		err = errors.New("either outcome, for an answer, or state, for an open call, must be there")
	case j.State == "":
		return j.answer(q, body)
	default:
		return j.call(q, body)
	}
	return Line{}, err
}

// decodeLine decodes the JSON of a line.
func decodeLine(text []byte) (j lineJSON, err error) {
	if !utf8.Valid(text) {
		return j, errors.New("it is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&j)
	if err == nil && len(bytes.TrimSpace(text[decoder.InputOffset():])) > 0 {
		return j, errors.New("there is more than one value on it")
	}
	if of, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		return j, fmt.Errorf("%s has a value of another type", of.Field)
	}
	if err != nil { // the text of the error may have some of the line
		return j, errors.New("it is not a JSON object of leadetl answers export, or was cut off")
	}
	return j, nil
}

func (j *lineJSON) body() ([]byte, error) {
	ways := 0
	for _, given := range []bool{len(j.Body) > 0, j.BodyText != "", len(j.BodyBytes) > 0} {
		if given {
			ways++
		}
	}
	switch {
	case ways > 1:
		return nil, errors.New("only one of body, body_text and body_base64 may be there")
	case len(j.Body) > 0:
		var compact bytes.Buffer
		err := json.Compact(&compact, j.Body)
		return compact.Bytes(), err
	case j.BodyText != "":
		return []byte(j.BodyText), nil
	}
	return j.BodyBytes, nil
}

func (j *lineJSON) answer(q Question, body []byte) (Line, error) {
	var err error
	switch {
	case j.Outcome != Matched && j.Outcome != NoMatch && j.Outcome != Refused:
		err = errors.New("outcome is none of matched, no_match and refused")
	case j.ReceivedAt.IsZero():
		err = errors.New("received_at is missing")
	case j.Credits != nil && *j.Credits < 0:
		err = errors.New("credits are negative")
	case !j.SentAt.IsZero() || !j.Deadline.IsZero() || j.IdempotencyKey != "" || j.Attempts != 0 || j.MaybeBilled || j.Address != "":
		err = errors.New("an answer has members of an open call")
	}
	return Line{Item: Item{q.Hash(), q, Answer{
		Run: j.Run, Outcome: j.Outcome, Reason: j.Reason, Status: j.Status, Body: body, Resolution: j.Resolution, Request: j.Request, Credits: j.Credits,
		Received: fromMillis(toMillis(j.ReceivedAt)),
	}}}, err
}

func (j *lineJSON) call(q Question, body []byte) (Line, error) {
	var err error
	switch {
	case j.State != Unknown && j.State != Parked:
		err = errors.New("state is neither unknown nor parked")
	case j.SentAt.IsZero() || j.IdempotencyKey == "" || j.Attempts < 1:
		err = errors.New("an open call needs sent_at, idempotency_key and attempts")
	case j.State == Parked && j.Resolution == "":
		err = errors.New("a parked call needs the resolution_id of its answer")
	case !j.ReceivedAt.IsZero() || j.Credits != nil:
		err = errors.New("an open call has members of an answer")
	}
	return Line{Call: &OpenCall{
		Hash: q.Hash(), Question: q, Address: j.Address, Run: j.Run, IdempotencyKey: j.IdempotencyKey, Attempts: j.Attempts,
		Sent: fromMillis(toMillis(j.SentAt)), State: j.State, Reason: j.Reason, Status: j.Status, MaybeBilled: j.MaybeBilled || j.State == Unknown,
		Resolution: j.Resolution, Request: j.Request, Deadline: fromMillisOrZero(toMillisOrZero(j.Deadline)), Body: keepBody(body),
	}}, err
}
