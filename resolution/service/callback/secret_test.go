package callback

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestParseSecret(t *testing.T) {
	encode := func(n int) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xfb}, n)) }
	for _, c := range []struct {
		name, text string
		good       bool
	}{
		{"shortest", "whsec_" + encode(24), true},
		{"with padding", "whsec_" + encode(32), true},
		{"longest", "whsec_" + encode(64), true},
		{"short", "whsec_" + encode(23), false},
		{"long", "whsec_" + encode(65), false},
		{"no prefix", encode(32), false},
		{"prefix in capitals", "WHSEC_" + encode(32), false},
		{"private key of another scheme", "whsk_" + encode(32), false},
		{"nothing", "", false},
		{"nothing behind the prefix", "whsec_", false},
		{"padding missing", "whsec_" + strings.TrimRight(encode(32), "="), false},
		{"URL alphabet", "whsec_" + strings.ReplaceAll(encode(24), "+", "-"), false},
		{"line break inside", "whsec_" + encode(24)[:8] + "\n" + encode(24)[8:], false},
		{"space behind", "whsec_" + encode(24) + " ", false},
		{"bits behind the end", "whsec_" + strings.TrimSuffix(encode(25), "w==") + "x==", false},
	} {
		s, err := ParseSecret(c.text)
		switch {
		case c.good && (err != nil || s.Reveal() != c.text):
			t.Errorf("%s: got %q, %v", c.name, s.Reveal(), err)
		case !c.good && !errors.Is(err, ErrSecret):
			t.Errorf("%s: got %v, want ErrSecret", c.name, err)
		}
	}
}

func TestNewSecret(t *testing.T) {
	a, b := NewSecret(), NewSecret()
	if a.Equal(b.Text) {
		t.Fatal("two new secrets are one")
	}
	if again, err := ParseSecret(a.Reveal()); err != nil || again.Reveal() != a.Reveal() {
		t.Fatalf("%v after revealing and parsing", err)
	}
}

func TestSecretPrintsRedacted(t *testing.T) {
	s := NewSecret()
	held := struct{ S Secret }{s}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "s", s, "held", held)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "s", s, "held", held)
	marshalled, err := json.Marshal(held)
	if err != nil {
		t.Fatal(err)
	}
	all := log.String() + string(marshalled) + s.String()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%t"} {
		all += fmt.Sprintf(verb+verb, s, &s) + fmt.Sprintf(verb, held) + fmt.Sprintf(verb, []Secret{s})
	}
	for _, form := range []string{
		s.Text.Reveal(), s.Reveal(), s.Reveal()[6:], fmt.Sprintf("%x", s.Text.Reveal()), fmt.Sprintf("%X", s.Text.Reveal()), fmt.Sprint([]byte(s.Text.Reveal())),
	} {
		if strings.Contains(all, form) {
			t.Errorf("the secret shows in %q", all)
		}
	}
}
