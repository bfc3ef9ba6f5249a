package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

func newAdminCommand(std cli.Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "admin",
		Short: "Manage organizations, keys, credits and callbacks of a service",
		Long: `Manage what a service keeps in its state folder, on the machine it runs on. A
service that is running follows within a second; none has to be.

An organization is named by its name or its id (org_…). What a command makes is
alone on standard output, so that scripts can take it from there.`,
	}
	c.AddCommand(newAdminOrgCommand(std), newAdminKeyCommand(std), newAdminCreditsCommand(std), newAdminSecretCommand(std), newAdminDeliveriesCommand(std))
	return c
}

// admin is where the state is that a command manages.
type admin struct {
	state  string
	pepper string
	now    func() time.Time
}

// command makes a command of admin with the flags all have.
func (a *admin) command(c *cobra.Command) *cobra.Command {
	a.now = time.Now
	c.Flags().StringVar(&a.state, "state", defaultServiceStateDir(), "`folder` of the service's state")
	return c
}

// sealing adds the flag of commands that hash keys or read secrets.
func (a *admin) sealing(c *cobra.Command) *cobra.Command {
	a.command(c)
	c.Flags().StringVar(&a.pepper, "pepper-file", "", "`file` of the secret that keys are hashed under (default: pepper, in the state folder)")
	return c
}

func defaultServiceStateDir() string { return filepath.Join(defaultStateDir(), "service") }

// pepperName is the pepper's file where --pepper-file names none.
const pepperName = "pepper"

// pepperPath is where the pepper of a state folder is.
func pepperPath(given, state string) string {
	if given != "" {
		return given
	}
	return filepath.Join(state, pepperName)
}

// open opens the state, making it where a command may be the first.
func (a *admin) open(create bool) (*sqlite.Store, error) {
	s, err := sqlite.Administer(a.state, create)
	if errors.Is(err, sqlite.ErrNoState) {
		return nil, cli.UsageError(fmt.Errorf("%s holds no service's state; leadetl admin org create makes one, or name another with --state", a.state))
	}
	return s, stateError(err)
}

// on runs a command's work on the open state.
func (a *admin) on(create bool, work func(*sqlite.Store) error) (err error) {
	s, err := a.open(create)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return stateError(work(s))
}

// onOrganization runs a command's work on an organization.
func (a *admin) onOrganization(ctx context.Context, name string, work func(*sqlite.Store, state.Organization) error) error {
	return a.on(false, func(s *sqlite.Store) error {
		org, err := s.FindOrganization(ctx, name)
		if errors.Is(err, state.ErrNotFound) {
			return cli.UsageError(errors.New("there is no such organization; leadetl admin org list names all"))
		}
		if err != nil {
			return err
		}
		return work(s, org)
	})
}

// onSealed runs a command's work on an organization, with the pepper that its
// keys are hashed and its secrets are sealed under.
func (a *admin) onSealed(ctx context.Context, name string, work func(*sqlite.Store, state.Organization, credential.Pepper) error) error {
	return a.onOrganization(ctx, name, func(s *sqlite.Store, org state.Organization) error {
		pepper, err := openPepper(ctx, s, pepperPath(a.pepper, a.state))
		if err != nil {
			return err
		}
		return work(s, org, pepper)
	})
}

// openPepper reads the pepper of a state from a file. It is made only for a
// state that has no organization yet, and has to open the secrets of those
// there are: what was hashed or sealed under another one is lost.
func openPepper(ctx context.Context, s *sqlite.Store, path string) (credential.Pepper, error) {
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

// stateError tells what the caller has to put right from what failed.
func stateError(err error) error {
	if errors.Is(err, resolution.ErrInvalid) || errors.Is(err, state.ErrExists) || errors.Is(err, filelock.ErrLocked) {
		return cli.UsageError(err)
	}
	return err
}
