package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strings"

	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/sinks"
)

// openNight opens a dataset as wire.OpenDataset does and, in place of a folder that holds nights, the
// newest night, with the names of the others in the log. name is the folder that it has opened.
func openNight(ctx context.Context, dataset string, flags *wire.S3, log *slog.Logger) (opened *sinks.Reader, name string, err error) {
	opened, err = wire.OpenDataset(ctx, dataset, flags, log)
	if err != nil {
		return nil, "", err
	}
	night, others, err := newestNight(ctx, opened)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("%s: %w", dataset, err)
	case night == "":
		return opened, dataset, nil
	}
	log.Info("the folder holds nights; this is the newest", "night", night, "others", cmp.Or(strings.Join(others, " "), "none"))
	name = wire.PathIn(dataset, night)
	opened, err = wire.OpenDataset(ctx, name, flags, log)
	return opened, name, err
}

// newestNight returns the last folder NAME=VALUE in a folder that is no dataset, whether its run has
// finished or not, and the others. It is empty if none has a dataset: then they may be the folders of
// an unfinished one.
func newestNight(ctx context.Context, folder *sinks.Reader) (night string, others []string, err error) {
	night, others, found, err := lastBelow(ctx, folder, "")
	if !found {
		return "", nil, err
	}
	return night, others, err
}

// lastBelow is the last folder at or below one that is no dataset itself, and the others beside that
// folder. found reports whether any of them has a dataset.
func lastBelow(ctx context.Context, folder *sinks.Reader, at string) (last string, others []string, found bool, err error) {
	_, err = folder.ReadFile(path.Join(at, sinks.ManifestName))
	if !errors.Is(err, fs.ErrNotExist) {
		return at, nil, err == nil, err
	}
	others, err = folder.Partitions(ctx, at)
	if len(others) == 0 || err != nil {
		return at, nil, false, err
	}
	end := len(others) - 1
	last, _, found, err = lastBelow(ctx, folder, others[end])
	others = others[:end]
	for i := end - 1; !found && err == nil && i >= 0; i-- {
		_, _, found, err = lastBelow(ctx, folder, others[i])
	}
	return last, others, found, err
}
