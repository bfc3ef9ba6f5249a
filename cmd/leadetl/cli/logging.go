package cli

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/internal/suggest"
)

// LogFlags are the flags of a command's log.
type LogFlags struct {
	Format string // text or json
	Level  string
	Quiet  bool // warnings and errors only
}

// LogFormats and LogLevels are the values of --log-format and --log-level.
var (
	LogFormats = []string{"text", "json"}
	LogLevels  = []string{"debug", "info", "warn", "error"}
)

// Settings are those of a log.
func (f *LogFlags) Settings() []Setting {
	f.Format, f.Level = "text", "info"
	return []Setting{
		{Name: "log-format", To: &f.Format, Text: "log `format`: text or json", Words: LogFormats},
		{Name: "log-level", To: &f.Level, Text: "lowest `level` that is logged: debug, info, warn or error", Words: LogLevels},
	}
}

// Open makes the logger.
func (f *LogFlags) Open(to io.Writer) (*slog.Logger, error) {
	level := f.Level
	if f.Quiet && level != "error" {
		level = "warn"
	}
	return NewLogger(to, f.Format, level)
}

// Log is the log of a command without settings of it.
func (s Streams) Log() *slog.Logger { return textLog(s.Err, slog.LevelInfo) }

// Warnings is Log for warnings and errors only.
func (s Streams) Warnings() *slog.Logger { return textLog(s.Err, slog.LevelWarn) }

// textLog writes sentences on a terminal, and logfmt elsewhere.
func textLog(to io.Writer, level slog.Level) *slog.Logger {
	if IsTerminal(to) {
		return slog.New(&plainLog{to: to, lock: new(sync.Mutex), level: level})
	}
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level}))
}

// NewLogger makes a logger of a format and a level.
func NewLogger(to io.Writer, format, level string) (*slog.Logger, error) {
	var at slog.Level
	if err := at.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("unknown --log-level %q%s", level, suggest.OneOf(level, []string{"debug", "info", "warn", "error"}))
	}
	switch format {
	case "text":
		return textLog(to, at), nil
	case "json":
		return slog.New(slog.NewJSONHandler(to, &slog.HandlerOptions{Level: at, ReplaceAttr: asText})), nil
	}
	return nil, fmt.Errorf("unknown --log-format %q; it is text or json", format)
}

// asText writes durations and texts as text logs do: slog would write numbers without
// a unit, and invisible characters as they are.
func asText(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindDuration:
		a.Value = slog.StringValue(a.Value.Duration().String())
	case slog.KindString:
		a.Value = slog.StringValue(invisible.Escape(a.Value.String()))
	case slog.KindAny:
		if err, is := a.Value.Any().(error); is {
			a.Value = slog.StringValue(invisible.Escape(err.Error()))
		}
	}
	return a
}

// CompleteList lets shells complete each value of a flag that takes several,
// separated by commas.
func CompleteList(c *cobra.Command, flag string, values ...string) {
	err := c.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		var all []cobra.Completion
		for _, v := range values {
			all = append(all, before+v)
		}
		return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
	if err != nil {
		panic(err) // the flag does not exist
	}
}

// Complete lets shells complete the values of a flag.
func Complete(c *cobra.Command, flag string, values ...string) {
	CompleteLater(c, flag, func() []string { return values })
}

// CompleteLater is Complete for values that take a while to find.
func CompleteLater(c *cobra.Command, flag string, values func() []string) {
	err := c.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag does not exist
	}
}
