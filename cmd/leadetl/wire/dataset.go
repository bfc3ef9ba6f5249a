package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/sinks"
)

// OpenDataset opens a finished or unfinished dataset for reading.
func OpenDataset(ctx context.Context, dataset string, flags *S3, log *slog.Logger) (*sinks.Reader, error) {
	o, err := ReadOptions(ctx, dataset, flags, log)
	if err != nil {
		return nil, err
	}
	if err := CheckFolder(dataset); err != nil {
		return nil, err
	}
	return sinks.OpenReader(ctx, dataset, o)
}

// ReadOptions are the options to read a dataset, which may be on S3.
func ReadOptions(ctx context.Context, dataset string, flags *S3, log *slog.Logger) (o sinks.Options, err error) {
	if objects.Is(dataset) {
		o.Objects, err = flags.Open(ctx, log)
	}
	return o, err
}

// CheckFolder refuses a local folder that is not there; one on S3 is seen when it is read.
func CheckFolder(name string) error {
	if strings.Contains(name, "://") {
		return nil
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist; name the folder of a dataset", name)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s cannot be read: permission denied; check its permissions", name)
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is a file; name the dataset's folder", name)
	}
	return err
}
