// Package admincmd holds the commands of leadetl admin: organizations, keys,
// credits, secrets and callbacks of a service.
package admincmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// NewCommand returns the command leadetl admin.
func NewCommand(std cli.Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "admin",
		Short: "Manage organizations, keys, credits and callbacks of a service",
		Long: `Manage the state folder of a service, on the machine it runs on. A running
service follows within a second; the service need not run.

Name an organization by its name or its id (org_…). Standard output holds only
what a command creates, for use in scripts.`,
	}
	c.AddCommand(newAdminOrgCommand(std), newAdminKeyCommand(std), newAdminCreditsCommand(std), newAdminSecretCommand(std), newAdminDeliveriesCommand(std),
		newAdminBackupCommand(std), newAdminRestoreCommand(std))
	return c
}

// admin is the location of the state that a command manages.
type admin struct {
	state  string
	pepper string
	now    func() time.Time
}

// command adds the flags that all admin commands have.
func (a *admin) command(c *cobra.Command) *cobra.Command {
	a.now = time.Now
	c.Annotations = cli.ExitCodes(map[int]string{cli.ExitTryAgain: "state locked by another process; run the same command later"})
	c.Flags().StringVar(&a.state, "state", wire.DefaultServiceStateDir(), "`folder` of the service's state")
	return c
}

// sealing adds the flag of commands that hash keys or read secrets.
func (a *admin) sealing(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&a.pepper, "pepper-file", "", "`file` of the secret that keys are hashed under (default: pepper, in the state folder)")
	return c
}

// open opens the state. With create it creates a missing state.
func (a *admin) open(create bool) (*sqlite.Store, error) {
	if err := wire.CheckState(a.state); err != nil {
		return nil, err
	}
	s, err := sqlite.Administer(a.state, create)
	return s, wire.StateError(a.noState(err))
}

// noState returns an error with advice for a folder that holds no state.
func (a *admin) noState(err error) error {
	if errors.Is(err, sqlite.ErrNoState) {
		return cli.UsageError(fmt.Errorf("%s holds no service's state; leadetl admin org create makes one, or name another with --state", a.state))
	}
	return err
}

// on runs work on the open state.
func (a *admin) on(create bool, work func(*sqlite.Store) error) (err error) {
	s, err := a.open(create)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return wire.StateError(work(s))
}

// onOrganization runs work on an organization.
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

// ofOrganization makes c do work on the organization that its argument names.
func (a *admin) ofOrganization(c *cobra.Command, work func(*cobra.Command, *sqlite.Store, state.Organization) error) *cobra.Command {
	c.Args = cli.OneArgument("organization")
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.onOrganization(c.Context(), args[0], func(s *sqlite.Store, org state.Organization) error { return work(c, s, org) })
	}
	return a.command(c)
}

// ofSealed is ofOrganization with the pepper that hashes its keys and seals its
// secrets.
func (a *admin) ofSealed(c *cobra.Command, work func(*cobra.Command, *sqlite.Store, state.Organization, credential.Pepper) error) *cobra.Command {
	a.ofOrganization(c, func(c *cobra.Command, s *sqlite.Store, org state.Organization) error {
		pepper, err := wire.OpenPepper(c.Context(), s, wire.PepperPath(a.pepper, a.state))
		if err != nil {
			return err
		}
		return work(c, s, org, pepper)
	})
	return a.sealing(c)
}
