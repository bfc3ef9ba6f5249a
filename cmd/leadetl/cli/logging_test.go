package cli

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

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
		log, err := NewLogger(&out, c.format, c.level)
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
	// Durations have units.
	for _, format := range LogFormats {
		var out bytes.Buffer
		log, err := NewLogger(&out, format, "info")
		if err != nil {
			t.Fatal(err)
		}
		log.Info("request", "took", 1500*time.Millisecond)
		if !strings.Contains(strings.ReplaceAll(out.String(), `"`, ""), strings.ReplaceAll("took=1.5s", "=", map[string]string{"text": "=", "json": ":"}[format])) {
			t.Errorf("%s writes %q", format, out.String())
		}
	}
	// Names of files are shown, not obeyed.
	for _, format := range LogFormats {
		var out bytes.Buffer
		log, err := NewLogger(&out, format, "info")
		if err != nil {
			t.Fatal(err)
		}
		log.Info("read", "list", "a\n\x1b\u009b\u202e", "error", errors.New("b\u202e"))
		if line := out.String(); strings.ContainsAny(line, "\x1b\u009b\u202e") || strings.Count(line, "\n") != 1 || strings.Count(line, "u202e") != 2 {
			t.Errorf("%s writes %q", format, line)
		}
	}
	for _, c := range [][2]string{{"xml", "info"}, {"text", "loud"}, {"", "info"}, {"text", ""}} {
		if _, err := NewLogger(nil, c[0], c[1]); err == nil {
			t.Errorf("format %q at level %q is no error", c[0], c[1])
		}
	}
}

// TestPlainLog: what somebody reads on a terminal.
func TestPlainLog(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(&plainLog{to: &out, lock: new(sync.Mutex), level: slog.LevelInfo})
	log.Debug("nobody asked")
	log.Info("serving", "url", "http://127.0.0.1:8080", "in_flight", 3)
	log.Warn("slow", "after", 1500*time.Millisecond, "error", errors.New("a\x1b[2Jb"))
	log.With("list", "a.csv").WithGroup("row").Error("bad", "number", 7)
	log.Info("done", slog.Group("took", "read", time.Second))
	want := "serving: url http://127.0.0.1:8080, in flight 3\n" +
		"warning: slow: after 1.5s, error a\\x1b[2Jb\n" +
		"error: bad: list a.csv, row.number 7\n" +
		"done: took.read 1s\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}
