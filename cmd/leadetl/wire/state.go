package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// DefaultStateDir is leadetl's folder under the user's state folder.
// Source: XDG Base Directory Specification 0.8.
func DefaultStateDir() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) { // others are to be ignored
		return filepath.Join(dir, "leadetl")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "leadetl")
	}
	return filepath.Join(home, ".local", "state", "leadetl")
}

func DefaultServiceStateDir() string { return filepath.Join(DefaultStateDir(), "service") }

// PepperName is the pepper's file where --pepper-file names none.
const PepperName = "pepper"

// PepperPath is where the pepper of a state folder is.
func PepperPath(given, state string) string {
	if given != "" {
		return given
	}
	return filepath.Join(state, PepperName)
}

// OpenPepper reads the pepper of a state from a file. It is made only for a
// state that has no organization yet, and has to open the secrets of those
// there are: what was hashed or sealed under another one is lost.
func OpenPepper(ctx context.Context, s *sqlite.Store, path string) (credential.Pepper, error) {
	kept, err := s.Credentials(ctx)
	if err != nil {
		return credential.Pepper{}, err
	}
	p, err := credential.LoadPepper(path, len(kept.Organizations) == 0)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the secret that keys are hashed under is missing: %w; put it back, or name where it is with --pepper-file", err)
	}
	if err != nil {
		return p, cli.UsageError(err)
	}
	for _, secret := range kept.Secrets {
		if _, err := p.Open(secret.Sealed); err != nil {
			return p, cli.UsageError(fmt.Errorf("%s is not the secret that the keys of this state are hashed under; name that with --pepper-file", path))
		}
	}
	return p, nil
}

// StateError tells what the caller has to put right from what failed.
func StateError(err error) error {
	if errors.Is(err, resolution.ErrInvalid) || errors.Is(err, state.ErrExists) {
		return cli.UsageError(err)
	}
	return err
}

// SystemKeyVariable is the environment variable with the key of the internal
// listener.
const SystemKeyVariable = "LEADETL_SYSTEM_KEY"
