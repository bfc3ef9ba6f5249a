package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/verify"
	"github.com/leadetl/leadetl/sinks"
)

// openDataset is where a finished dataset is, to be read.
func openDataset(ctx context.Context, dataset string, flags *s3Flags, log *slog.Logger) (verify.Dataset, error) {
	if objects.Is(dataset) {
		store, err := flags.open(ctx, log)
		if err != nil {
			return nil, err
		}
		reader, err := sinks.OpenReader(ctx, dataset, sinks.Options{Objects: store})
		return storedDataset{reader}, err
	}
	if strings.Contains(dataset, "://") {
		return nil, fmt.Errorf("%s: no place of a dataset; name a local folder or s3://bucket/prefix/", dataset)
	}
	return verify.Folder(dataset), nil
}

// storedDataset is a dataset on S3 to verify.
type storedDataset struct{ *sinks.Reader }

func (d storedDataset) List(context.Context) ([]string, error) {
	own, foreign, err := d.Reader.List()
	return slices.Concat(own, foreign), err
}

func (d storedDataset) Open(_ context.Context, name string) (verify.File, error) {
	f, err := d.Reader.Open(name)
	if err != nil {
		return nil, err
	}
	return storedFile{f}, nil
}

type storedFile struct{ *sinks.OpenFile }

func (f storedFile) Size() int64 { return f.OpenFile.Size }
