package secret_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/secret"
)

const hidden = "correct-horse"

// holder is a struct of somebody else's, printed as a whole.
type holder struct {
	Name   string
	Shown  secret.Text
	inside secret.Text // fmt may not call its methods
}

func TestNotShown(t *testing.T) {
	text := secret.New(hidden)
	values := map[string]any{
		"value": text, "pointer": &text, "slice": []secret.Text{text}, "map": map[string]secret.Text{"a": text},
		"struct": holder{"a", text, text}, "pointer to struct": &holder{"a", text, text}, "any": []any{text},
	}
	for name, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%t", "%T", "%10.3s", "%U", "%c"} {
			wantHidden(t, name+" as "+verb, fmt.Sprintf(verb, v))
		}
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Errorf("%s as JSON: %v", name, err)
		}
		wantHidden(t, name+" as JSON", string(encoded))
		wantHidden(t, name+" in an error", fmt.Errorf("open: %v: %w", v, errors.New("denied")).Error())

		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("started", "key", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("started", "key", v, slog.Group("in", "key", v))
		wantHidden(t, name+" in a log", log.String())
	}
}

func wantHidden(t *testing.T, what, got string) {
	t.Helper()
	// As it is, and as %x and %X of a string would write it.
	for _, form := range []string{hidden, fmt.Sprintf("%x", hidden), fmt.Sprintf("% x", hidden), fmt.Sprintf("%v", []byte(hidden))} {
		if strings.Contains(strings.ToLower(got), form) {
			t.Errorf("%s shows the value: %s", what, got)
		}
	}
}

func TestShownAsRedacted(t *testing.T) {
	for name, text := range map[string]secret.Text{"a value": secret.New(hidden), "none": {}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			if got := fmt.Sprintf(verb, text); got != "redacted" {
				t.Errorf("%s as %s = %q, want redacted", name, verb, got)
			}
		}
		if got, err := json.Marshal(text); err != nil || string(got) != `"redacted"` {
			t.Errorf("%s as JSON = %s, %v, want \"redacted\"", name, got, err)
		}
		if got, err := xml.Marshal(text); err != nil || !strings.Contains(string(got), ">redacted<") {
			t.Errorf("%s as XML = %s, %v, want redacted", name, got, err)
		}
		if text.String() != "redacted" || text.GoString() != "redacted" || text.LogValue().String() != "redacted" {
			t.Errorf("%s: String, GoString or LogValue is not redacted", name)
		}
	}
}

func TestReveal(t *testing.T) {
	for _, want := range []string{"", "a", hidden} {
		text := secret.New(want)
		if got := text.Reveal(); got != want {
			t.Errorf("New(%q).Reveal() = %q", want, got)
		}
		if got := text.Empty(); got != (want == "") {
			t.Errorf("New(%q).Empty() = %v", want, got)
		}
	}
}

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"a", "a", true},
		{hidden, hidden, true},
		{hidden, hidden + "s", false},
		{hidden, hidden[1:], false},
		{"a", "A", false},
		{"a", "", false},
		{"", "a", false},
		{"", "", false}, // no credential is no match
	} {
		if got := secret.New(c.a).Equal(secret.New(c.b)); got != c.want {
			t.Errorf("%q equal %q = %v, want %v", c.a, c.b, got, c.want)
		}
	}
}
