package wire

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/internal/store/bucket"
	"github.com/leadetl/leadetl/internal/store/folder"
)

// Files are the files of the folder or the place on S3 that a flag names. A folder is that of in.
func Files(flag, uri string, on *objects.Store, in func(disk.Folder) *folder.Folder) (store.Store, error) {
	if !objects.Is(uri) {
		return in(disk.Dir(filepath.Clean(uri))), nil
	}
	files, err := bucket.Open(on, uri, bucket.Options{})
	if err != nil {
		return nil, cli.UsageError(fmt.Errorf("--%s: %w", flag, err))
	}
	return files, nil
}

// InFolder divides the path or URI of a file into its folder and its name.
func InFolder(uri string) (folder, name string) {
	at := strings.LastIndexByte(filepath.ToSlash(uri), '/') + 1
	return uri[:at], uri[at:]
}
