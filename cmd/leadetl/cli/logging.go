package cli

import (
	"fmt"
	"io"
	"log/slog"
)

// NewLogger makes the logger of --log-format and --log-level.
func NewLogger(to io.Writer, format, level string) (*slog.Logger, error) {
	var options slog.HandlerOptions
	var at slog.Level
	if err := at.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("unknown --log-level %q; it is one of debug, info, warn, error", level)
	}
	options.Level = at
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(to, &options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(to, &options)), nil
	}
	return nil, fmt.Errorf("unknown --log-format %q; it is text or json", format)
}
