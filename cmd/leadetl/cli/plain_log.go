package cli

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/invisible"
)

// plainLog writes the log as sentences for somebody who reads it on a terminal:
//
//	warning: the collector does not answer: url http://127.0.0.1:4318, after 5s
type plainLog struct {
	to    io.Writer
	lock  *sync.Mutex // of to
	level slog.Level
	about string // the attributes of WithAttrs
	group string // of WithGroup, with a dot behind it
}

// words begin the lines of the levels that are not said to be normal.
var words = map[slog.Level]string{slog.LevelDebug: "debug: ", slog.LevelWarn: "warning: ", slog.LevelError: "error: "}

func (p *plainLog) Enabled(_ context.Context, level slog.Level) bool { return level >= p.level }

func (p *plainLog) Handle(_ context.Context, r slog.Record) error {
	about := p.about
	r.Attrs(func(a slog.Attr) bool {
		about += p.text(p.group, a)
		return true
	})
	line := words[r.Level] + invisible.Escape(r.Message)
	if about != "" {
		line += ": " + strings.TrimPrefix(about, ", ")
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	_, err := io.WriteString(p.to, line+"\n")
	return err
}

func (p *plainLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *p
	for _, a := range attrs {
		with.about += p.text(p.group, a)
	}
	return &with
}

func (p *plainLog) WithGroup(name string) slog.Handler {
	with := *p
	with.group += name + "."
	return &with
}

// text is an attribute: its name with spaces, and its value.
func (p *plainLog) text(group string, a slog.Attr) (text string) {
	value := a.Value.Resolve()
	switch value.Kind() {
	case slog.KindGroup:
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, member := range value.Group() {
			text += p.text(group, member)
		}
		return text
	case slog.KindTime:
		value = slog.StringValue(value.Time().UTC().Format(time.RFC3339))
	}
	if a.Key == "" {
		return ""
	}
	return ", " + group + strings.ReplaceAll(a.Key, "_", " ") + " " + invisible.Escape(value.String())
}
