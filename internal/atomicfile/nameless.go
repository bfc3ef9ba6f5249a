package atomicfile

import (
	"errors"
	"os"
	"strings"
)

const namelessPrefix = ".nameless-"

// Nameless makes a temporary file in dir, for reading and writing. Its name is removed at once, so
// nothing is left however the process ends.
func Nameless(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, namelessPrefix+"*"+tempSuffix)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// IsNameless reports whether a file of this name, without folder, is one of Nameless whose process
// was killed before it removed the name.
func IsNameless(name string) bool {
	return strings.HasPrefix(name, namelessPrefix) && IsTemp(name)
}
