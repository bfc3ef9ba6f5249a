package main

import (
	"context"
	"log/slog"

	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/sinks"
)

// openDataset opens a dataset for reading, finished or not.
func openDataset(ctx context.Context, dataset string, flags *wire.S3, log *slog.Logger) (*sinks.Reader, error) {
	var o sinks.Options
	if objects.Is(dataset) {
		store, err := flags.Open(ctx, log)
		if err != nil {
			return nil, err
		}
		o.Objects = store
	}
	return sinks.OpenReader(ctx, dataset, o)
}
