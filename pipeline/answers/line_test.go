package answers

import (
	"bytes"
	"encoding/json"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/resolution"
)

func linesOf(items iter.Seq2[Item, error]) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		for i, err := range items {
			if !yield(Line{Item: i}, err) {
				return
			}
		}
	}
}

// someLine draws an answer or an open call, as a store has them.
func someLine(t *rapid.T) Line {
	text := rapid.StringN(0, 20, -1)
	at := func(name string) time.Time { return fromMillis(rapid.Int64Range(0, 1<<42).Draw(t, name)) }
	body := []byte(rapid.OneOf(
		rapid.Just(""), text, rapid.SampledFrom([]string{`{ "lead" : null }`, `null`, "\"\u2028<&>\"\n", "\xff{}", "\"\xfe\"", "\x00"}),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
	).Draw(t, "body"))
	q := Question{Scope{rapid.StringN(1, 9, -1).Draw(t, "service"), resolution.Operation(rapid.StringN(1, 9, -1).Draw(t, "operation"))}, rapid.StringN(1, 9, -1).Draw(t, "key")}
	if rapid.Bool().Draw(t, "answer") {
		a := Answer{
			Run: text.Draw(t, "run"), Outcome: rapid.SampledFrom([]Outcome{Matched, NoMatch, Refused}).Draw(t, "outcome"), Reason: text.Draw(t, "reason"),
			Status: rapid.IntRange(0, 999).Draw(t, "status"), Body: body, Resolution: text.Draw(t, "resolution"), Request: text.Draw(t, "request"), Received: at("received"),
		}
		if rapid.Bool().Draw(t, "priced") {
			a.Credits = credits(rapid.Int64Range(0, 1<<40).Draw(t, "credits"))
		}
		return Line{Item: Item{q.Hash(), q, a}}
	}
	c := &OpenCall{
		Hash: q.Hash(), Question: q, Address: text.Draw(t, "address"), Run: text.Draw(t, "run"), IdempotencyKey: rapid.StringN(1, 9, -1).Draw(t, "idempotency"),
		Attempts: rapid.IntRange(1, 9).Draw(t, "attempts"), Sent: at("sent"), State: Unknown, MaybeBilled: true, Reason: text.Draw(t, "reason"),
		Status: rapid.IntRange(0, 999).Draw(t, "status"), Request: text.Draw(t, "request"), Body: keepBody(body),
	}
	if rapid.Bool().Draw(t, "parked") {
		c.State, c.MaybeBilled, c.Resolution = Parked, rapid.Bool().Draw(t, "billed"), rapid.StringN(1, 9, -1).Draw(t, "resolution")
	}
	if rapid.Bool().Draw(t, "limited") {
		c.Deadline = at("deadline").Add(time.Millisecond)
	}
	return Line{Call: c}
}

// TestLineIsReadAsWritten: nothing of an answer or an open call is lost, but white space between the
// values of a JSON body.
func TestLineIsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := someLine(t)
		text, err := want.text()
		if err != nil || strings.Count(text, "\n") != 1 {
			t.Fatalf("%q, %v", text, err)
		}
		got, err := ParseLine([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again, err := got.text(); err != nil || again != text {
			t.Fatalf("%s is read as %s, %v", text, again, err)
		}
		if want.Call != nil {
			body, err := want.Call.Body.Plain()
			read, other := got.Call.Body.Plain()
			c := *want.Call
			if c.Body = got.Call.Body; err != nil || other != nil || !sameBody(body, read) || !reflect.DeepEqual(c, *got.Call) {
				t.Fatalf("got %+v, want %+v", got.Call, want.Call)
			}
			return
		}
		i := want.Item
		if i.Body = got.Item.Body; !sameBody(want.Item.Body, got.Item.Body) || !reflect.DeepEqual(i, got.Item) {
			t.Fatalf("got %+v, want %+v", got.Item, want.Item)
		}
	})
}

func sameBody(a, b []byte) bool {
	var compact bytes.Buffer
	return bytes.Equal(a, b) || json.Compact(&compact, a) == nil && bytes.Equal(compact.Bytes(), b)
}

// TestMalformedLine: a line that no export has written says what is wrong with it, and nothing of
// what is on it.
func TestMalformedLine(t *testing.T) {
	answer, call := map[string]any{}, map[string]any{}
	h := person("canary").Hash().String()
	for text, into := range map[string]map[string]any{
		`{"key_hash":"` + h + `","key":"network.example/in/canary","service":"https://leads.example","operation":"enrichment","received_at":"2026-11-20T12:00:00Z","outcome":"matched","status":200,"run":"night"}`:                                          answer,
		`{"key_hash":"` + h + `","key":"network.example/in/canary","service":"https://leads.example","operation":"enrichment","state":"parked","sent_at":"2026-11-20T12:00:00Z","idempotency_key":"i","attempts":1,"status":0,"run":"","resolution_id":"r"}`: call,
	} {
		if _, err := ParseLine([]byte(text)); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := json.Unmarshal([]byte(text), &into); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		of     map[string]any
		member string
		value  any
		want   string
	}{
		{answer, "key", "canary", "key_hash is not that of"},
		{answer, "key_hash", "canary", "key_hash is not that of"},
		{answer, "service", "", "must not be empty"},
		{answer, "operation", "canary", "key_hash is not that of"},
		{answer, "outcome", "canary", "outcome is none of"},
		{answer, "outcome", "", "either outcome, for an answer, or state"},
		{answer, "state", "unknown", "either outcome, for an answer, or state"},
		{answer, "received_at", "canary", "it is not a JSON object of leadetl answers export"},
		{answer, "received_at", "0001-01-01T00:00:00Z", "received_at is missing"},
		{answer, "status", -1, "status is not one of HTTP"},
		{answer, "status", "canary", "status has a value of another type"},
		{answer, "credits", -1, "credits are negative"},
		{answer, "attempts", 1, "an answer has members of an open call"},
		{answer, "canary", 1, "it is not a JSON object of leadetl answers export"},
		{answer, "body_text", "canary", ""},
		{call, "state", "under_way", "state is neither unknown nor parked"},
		{call, "sent_at", "0001-01-01T00:00:00Z", "an open call needs sent_at"},
		{call, "idempotency_key", "", "an open call needs sent_at, idempotency_key"},
		{call, "attempts", 0, "an open call needs sent_at, idempotency_key and attempts"},
		{call, "resolution_id", "", "a parked call needs the resolution_id"},
		{call, "credits", 1, "an open call has members of an answer"},
	} {
		other := map[string]any{}
		for name, value := range c.of {
			other[name] = value
		}
		other[c.member] = c.value
		text, err := json.Marshal(other)
		if err != nil {
			t.Fatal(err)
		}
		refused(t, string(text), c.want)
	}
	for text, want := range map[string]string{
		"":                                  "it is not a JSON object",
		"canary":                            "it is not a JSON object",
		`{"key":"canary"`:                   "or was cut off",
		`{"key":"canary"} {}`:               "more than one value",
		`["canary"]`:                        "has a value of another type",
		"{\"key\":\"canary\xff\"}":          "it is not UTF-8",
		`{"body":"canary","body_text":"x"}`: "only one of body, body_text and body_base64",
	} {
		refused(t, text, want)
	}
}

func refused(t *testing.T, text, want string) {
	t.Helper()
	_, err := ParseLine([]byte(text))
	if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary")) {
		t.Errorf("%s: %v, want %q", text, err, want)
	}
}

// FuzzParseLine: a line that is read is written so that it is read as the same.
func FuzzParseLine(f *testing.F) {
	for _, l := range []Line{
		{Item: Item{person("a").Hash(), person("a"), Answer{Outcome: Matched, Received: noon, Credits: credits(2), Body: []byte(`{"a":1}`)}}},
		{Call: &OpenCall{Hash: person("b").Hash(), Question: person("b"), IdempotencyKey: "i", Attempts: 2, Sent: noon, State: Parked, Resolution: "r", Body: keepBody([]byte("x"))}},
	} {
		text, err := l.text()
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := ParseLine(text)
		if err != nil {
			return
		}
		first, err := l.text()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseLine([]byte(first))
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second, err := again.text(); err != nil || second != first {
			t.Errorf("%s is read as %s, %v", first, second, err)
		}
	})
}
