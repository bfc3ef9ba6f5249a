package secret

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unicode"

	"github.com/leadetl/leadetl/internal/fileaccess"
	"github.com/leadetl/leadetl/internal/wholefile"
)

// secretFile is a file that is read as a secret.
var secretFile = wholefile.Kind{Name: "a secret", Bytes: 64 << 10, Check: private}

var (
	// ErrNotGiven means that the variable of a secret is not set, or that the
	// variable or file is empty.
	ErrNotGiven = errors.New("no secret given")

	// ErrExposed means that other users may read or change the file of a secret.
	ErrExposed = errors.New("open to other users")
)

// Read reads a secret from a file or, if file is "", from the environment
// variable env. White space around the secret is dropped; line ends and other
// control characters inside it are an error.
//
// A file that others may access is ErrExposed: its mode is 0600 or 0400, or 0640
// or 0440 with a group that the process is in.
// Pipes are read with any mode: they store nothing. Errors name the file or
// variable and what to do, and never contain what was read. A pipe is waited for
// until ctx ends.
func Read(ctx context.Context, env, file string) (Text, error) {
	content, place, err := load(ctx, env, file)
	if err != nil {
		return Text{}, err
	}
	value := strings.TrimSpace(content)
	if value == "" {
		return Text{}, notGiven(env, file)
	}
	if strings.ContainsFunc(value, unicode.IsControl) {
		return Text{}, fmt.Errorf("%s holds more than one line, or control characters: it must hold the secret alone", place)
	}
	return New(value), nil
}

// ReadWords is Read for several secrets, separated by white space or line ends,
// such as an old and a new key that are both valid. It returns at least one.
func ReadWords(ctx context.Context, env, file string) ([]Text, error) {
	content, place, err := load(ctx, env, file)
	if err != nil {
		return nil, err
	}
	var words []Text
	for word := range strings.FieldsSeq(content) {
		if strings.ContainsFunc(word, unicode.IsControl) {
			return nil, fmt.Errorf("%s holds control characters: it must hold the secrets alone", place)
		}
		words = append(words, New(word))
	}
	if len(words) == 0 {
		return nil, notGiven(env, file)
	}
	return words, nil
}

func notGiven(env, file string) error {
	if file != "" {
		return fmt.Errorf("%w: %s is empty, write the secret to it", ErrNotGiven, file)
	}
	return fmt.Errorf("%w: the environment variable %s is empty or not set, put the secret there", ErrNotGiven, env)
}

// load returns what a file or, if file is "", an environment variable holds,
// and the name of that place for messages.
func load(ctx context.Context, env, file string) (content, place string, err error) {
	if file == "" {
		return os.Getenv(env), "the environment variable " + env, nil
	}
	read, err := secretFile.Read(ctx, file)
	return string(read), file, err
}

// private returns an error if others may access a file. The process's own group
// may read it, as it may read secrets that are mounted for it.
func private(name string, info fs.FileInfo) error {
	mode := info.Mode()
	if mode.IsRegular() && (mode.Perm()&0o020 != 0 || fileaccess.Others(info, 0o7) != 0) {
		return fmt.Errorf("%s has mode %04o and is %w: chmod 600 it, or where it is mounted, mount it with mode 0400, or 0440 with a group of this process",
			name, mode.Perm(), ErrExposed)
	}
	return nil
}
