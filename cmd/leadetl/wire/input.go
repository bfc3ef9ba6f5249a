package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// ErrInterruptedEarly is the error of a command that was interrupted while it
// opened its inputs.
var ErrInterruptedEarly = cli.WithCode(cli.ExitInterrupted, errors.New("interrupted before anything was done"))

// OpenInput is sources.Open, but returns when ctx ends. Open reads the header
// and may wait for a pipe or a terminal, so the first Ctrl-C would have no
// effect. The Open in progress is abandoned, which is fine in a process that is
// about to end.
func OpenInput(ctx context.Context, uris []string, o sources.Options) (*sources.List, error) {
	var list *sources.List
	var err error
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		list, err = sources.Open(ctx, uris, o)
	}()
	select {
	case <-opened:
		return list, UnlessUnavailable(err)
	case <-ctx.Done():
		return nil, ErrInterruptedEarly
	}
}

// ParseDelimiter parses --delimiter; 0 means to detect it.
func ParseDelimiter(s string) (byte, error) {
	switch {
	case s == "":
		return 0, nil
	case s == "tab" || s == `\t`:
		return '\t', nil
	case len(s) == 1 && s != `"` && s != "\n" && s != "\r":
		return s[0], nil
	}
	return 0, fmt.Errorf("--delimiter %q; give one ASCII character or \"tab\"", s)
}

// CheckNotRead refuses a dataset that a flag with these URIs would read, once it is
// there: its rows would count again in the next run. partitioned says that its rows
// are partitioned by a column.
func CheckNotRead(flag string, uris []string, dataset string, partitioned bool) error {
	for _, uri := range uris {
		reads, err := sources.WouldRead(uri, dataset, sinks.FilePatterns(partitioned)...)
		if err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		if reads {
			return fmt.Errorf("--%s %s would read the files of --out %s, so the next run would read its own results; choose an --out that --%s does not read", flag, uri, dataset, flag)
		}
	}
	return nil
}

// TellLeftOut logs the datasets among the inputs that are not read, and the empty
// files.
func TellLeftOut(log *slog.Logger, list *sources.List) {
	for _, file := range list.Empty() {
		log.Warn("the list is empty: no row is read from it", "list", file)
	}
	leftOut := list.LeftOut()
	for _, dataset := range leftOut[:min(len(leftOut), ShownPlaces)] {
		log.Warn("left out a dataset; name it itself to read it", "dataset", dataset)
	}
	if more := len(leftOut) - ShownPlaces; more > 0 {
		log.Warn("left out more datasets", "datasets", more)
	}
}

// CheckApart refuses inputs that are files of the dataset at --out. With
// --overwrite they would be removed before they are read.
func CheckApart(dataset string, files []sources.File) error {
	if objects.Is(dataset) {
		return objectsApart(dataset, files)
	}
	out, err := os.Stat(dataset)
	if err != nil {
		return nil // does not exist yet
	}
	for _, file := range files {
		path, err := filepath.EvalSymlinks(file.URI)
		if err != nil {
			continue // standard input
		}
		if path, err = filepath.Abs(path); err != nil {
			return err
		}
		folder := filepath.Dir(path)
		for _, in := range []string{folder, filepath.Dir(folder)} { // folders of parts and rejects
			if info, err := os.Stat(in); err == nil && os.SameFile(info, out) {
				return fmt.Errorf("%s is in the output folder; give another --out", file.URI)
			}
		}
	}
	return nil
}

// objectsApart is CheckApart for S3.
func objectsApart(out string, files []sources.File) error {
	folder, err := objects.ParseFolder(out)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	for _, file := range files {
		if strings.HasPrefix(file.URI, folder.String()) {
			return fmt.Errorf("%s is in the output folder; give another --out", file.URI)
		}
	}
	return nil
}
