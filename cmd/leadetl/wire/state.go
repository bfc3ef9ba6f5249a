package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/fileaccess"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// DefaultStateDir returns leadetl's folder under the user's state folder, ""
// for a user without a home. Paid answers are never stored where others could
// delete them, such as in a temporary folder.
// Source: XDG Base Directory Specification 0.8.
func DefaultStateDir() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) { // the specification says to ignore relative paths
		return filepath.Join(dir, "leadetl")
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, ".local", "state", "leadetl")
}

// DefaultServiceStateDir returns the folder of a service in DefaultStateDir, ""
// if DefaultStateDir is "".
func DefaultServiceStateDir() string {
	if dir := DefaultStateDir(); dir != "" {
		return filepath.Join(dir, "service")
	}
	return ""
}

// CheckState refuses an empty path, and a state folder that others may write
// to. It creates a missing folder, accessible to its user only.
func CheckState(dir string) error {
	if dir == "" {
		return cli.UsageError(errors.New("no state folder: HOME is not set; name a folder that is kept with --state"))
	}
	if objects.Is(dir) {
		return cli.UsageError(fmt.Errorf("--state %s: this command needs a folder", dir))
	}
	for _, folder := range []string{dir, filepath.Join(dir, AnswersFolder)} {
		info, err := os.Stat(folder)
		if err != nil || !info.IsDir() {
			continue // the code that opens it reports the error
		}
		if fileaccess.Others(info, 0o2) != 0 {
			return cli.UsageError(fmt.Errorf("--state: other users may write to %s (mode %04o): chmod go-w it, or name another folder", folder, info.Mode().Perm()))
		}
	}
	return nil
}

// CheckRunState is CheckState for the state of runs. It refuses one in another format, too.
func CheckRunState(dir string) error {
	if err := CheckState(dir); err != nil {
		return err
	}
	return journal.InFolder(disk.Dir(dir)).CheckFormat()
}

// PepperName is the default name of the pepper's file.
const PepperName = "pepper"

// PepperPath returns the path of the pepper of a state folder.
func PepperPath(given, state string) string {
	if given != "" {
		return given
	}
	return filepath.Join(state, PepperName)
}

// OpenPepper reads the pepper of a state from a file. It creates a pepper only
// for a state without organizations. Otherwise the pepper must be able to open
// the existing secrets: data that was hashed or sealed with another pepper is
// lost.
func OpenPepper(ctx context.Context, s *sqlite.Store, path string) (credential.Pepper, error) {
	kept, err := s.Credentials(ctx)
	if err != nil {
		return credential.Pepper{}, err
	}
	p, err := credential.LoadPepper(ctx, path, len(kept.Organizations) == 0)
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

// StateError distinguishes errors that the caller must correct from failures.
func StateError(err error) error {
	if errors.Is(err, resolution.ErrInvalid) || errors.Is(err, state.ErrExists) || errors.Is(err, sqlite.ErrEmpty) {
		return cli.UsageError(err)
	}
	return err
}

// SystemKeyVariable is the environment variable with the key of the internal
// listener.
const SystemKeyVariable = "LEADETL_SYSTEM_KEY"
