package wire

import (
	"errors"
	"fmt"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/resolution/directory"
)

// OpenDirectory opens reference data.
func OpenDirectory(dir string) (*directory.Directory, error) {
	if dir == "" {
		return nil, cli.UsageError(errors.New("no --directory; name the folder"))
	}
	d, err := directory.Open(dir)
	if errors.Is(err, directory.ErrNotImported) {
		err = fmt.Errorf("%s is not a directory of reference data; make one with leadetl directory import --directory %s", dir, dir)
	}
	return d, cli.UsageError(err)
}
