package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
)

func TestParseDelimiter(t *testing.T) {
	for text, want := range map[string]byte{"": 0, ",": ',', ";": ';', "|": '|', "tab": '\t', `\t`: '\t', "\t": '\t', ":": ':'} {
		if got, err := parseDelimiter(text); got != want || err != nil {
			t.Errorf("parseDelimiter(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{`"`, "\n", "\r", ";;", "é", "comma"} {
		if got, err := parseDelimiter(text); err == nil {
			t.Errorf("parseDelimiter(%q) = %q, want an error", text, got)
		}
	}
}

func TestDefaultStateDir(t *testing.T) {
	t.Setenv("HOME", "/home/ada")
	for xdg, want := range map[string]string{
		"":            "/home/ada/.local/state/leadetl",
		"/var/state":  "/var/state/leadetl",
		"relative/to": "/home/ada/.local/state/leadetl", // to be ignored. Source: XDG Base Directory Specification 0.8
	} {
		t.Setenv("XDG_STATE_HOME", xdg)
		if got := defaultStateDir(); got != filepath.FromSlash(want) {
			t.Errorf("with XDG_STATE_HOME=%q it is %s, want %s", xdg, got, want)
		}
	}
}

func TestNewLogger(t *testing.T) {
	for _, c := range []struct {
		format, level string
		begins        string // what a warning looks like
	}{
		{"text", "debug", "level=WARN "},
		{"text", "warn", "level=WARN "},
		{"text", "error", ""},
		{"json", "info", `{"level":"WARN",`},
	} {
		var out bytes.Buffer
		log, err := cli.NewLogger(&out, c.format, c.level)
		if err != nil {
			t.Fatal(err)
		}
		log.Warn("look")
		line := out.String()
		if _, after, found := strings.Cut(line, "level"); found { // behind the time
			line = map[string]string{"text": "level", "json": `{"level`}[c.format] + after
		}
		if !strings.HasPrefix(line, c.begins) || (line == "") != (c.begins == "") {
			t.Errorf("%s at %s writes %q", c.format, c.level, line)
		}
	}
	for _, c := range [][2]string{{"xml", "info"}, {"text", "loud"}, {"", "info"}, {"text", ""}} {
		if _, err := cli.NewLogger(nil, c[0], c[1]); err == nil {
			t.Errorf("format %q at level %q is no error", c[0], c[1])
		}
	}
}
