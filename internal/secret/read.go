package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode"
)

// maxFileSize bounds a file that is read as a secret, in bytes.
const maxFileSize = 64 << 10

var (
	// ErrNotGiven says that no secret was given: the variable is not set, or
	// what should hold the secret is empty.
	ErrNotGiven = errors.New("no secret given")

	// ErrExposed says that other users of the machine may read or change the
	// file of a secret.
	ErrExposed = errors.New("open to other users")
)

// Read takes a secret from the file called file, or where that is "" from the
// environment variable called env. White space around the secret is not part
// of it; inside it, line ends and other control characters are refused.
//
// A file must be its owner's alone (mode 0600 or 0400), or it is ErrExposed;
// pipes, which hold nothing at rest, are read whatever their mode. Errors name
// the file or the variable and what to do, and never hold what was read.
func Read(env, file string) (Text, error) {
	if file == "" {
		return parse(os.Getenv(env), "the environment variable "+env)
	}
	content, err := readFile(file)
	if err != nil {
		return Text{}, err
	}
	return parse(content, file)
}

// parse makes a Text of what was read from the named place.
func parse(content, place string) (Text, error) {
	value := strings.TrimSpace(content)
	if value == "" {
		return Text{}, fmt.Errorf("%w: %s is empty or not set, put the secret there", ErrNotGiven, place)
	}
	if strings.ContainsFunc(value, unicode.IsControl) {
		return Text{}, fmt.Errorf("%s holds more than one line, or control characters: it must hold the secret alone", place)
	}
	return New(value), nil
}

func readFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	// Of the open file, not of the name: that may by now be another's.
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if err := private(name, info); err != nil {
		return "", err
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return "", err
	}
	if len(content) > maxFileSize {
		return "", fmt.Errorf("%s is too large for a secret: more than %d bytes", name, maxFileSize)
	}
	return string(content), nil
}

// private says whether a file is its owner's alone.
func private(name string, info fs.FileInfo) error {
	if mode := info.Mode(); mode.IsRegular() && mode.Perm()&0o077 != 0 {
		return fmt.Errorf("%s has mode %04o and is %w: chmod 600 it, or where it is mounted, mount it with mode 0400",
			name, mode.Perm(), ErrExposed)
	}
	return nil
}
