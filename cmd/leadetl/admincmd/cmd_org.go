package admincmd

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

func newAdminOrgCommand(std cli.Streams) *cobra.Command {
	c := &cobra.Command{Use: "org", Short: "Organizations, which have credits and keys"}
	c.AddCommand(newAdminOrgCreateCommand(std), newAdminOrgListCommand(std), newAdminOrgRenameCommand(),
		newAdminOrgSuspendCommand(true), newAdminOrgSuspendCommand(false), newAdminOrgDeleteCommand())
	return c
}

func newAdminOrgCreateCommand(std cli.Streams) *cobra.Command {
	var a admin
	var credits int64
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Make an organization and print its id",
		Long: `Make an organization, with its secret for signing callbacks, and print its id
alone. The state folder is made if it is missing.`,
		Example: `  leadetl admin org create "Example Rockets" --credits 10000`,
		Args:    cli.OneArgument("name"),
		RunE: func(c *cobra.Command, args []string) error {
			if credits < 0 {
				return cli.UsageError(fmt.Errorf("--credits is %d; it cannot be less than 0", credits))
			}
			return a.on(true, func(s *sqlite.Store) error {
				pepper, err := wire.OpenPepper(c.Context(), s, wire.PepperPath(a.pepper, a.state))
				if err != nil {
					return err
				}
				sealed := pepper.Seal([]byte(callback.NewSecret().Reveal()))
				org, err := s.CreateOrganization(c.Context(), args[0], credits, sealed, a.now())
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(std.Out, org.Public)
				return err
			})
		},
	}
	a.sealing(a.command(c)).Flags().Int64Var(&credits, "credits", 0, "`number` of credits it begins with")
	return c
}

func newAdminOrgListCommand(std cli.Streams) *cobra.Command {
	var a admin
	return a.command(&cobra.Command{
		Use:   "list",
		Short: "List organizations and their credits",
		Args:  cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.on(false, func(s *sqlite.Store) error {
				accounts, err := s.Organizations(c.Context())
				if err != nil {
					return err
				}
				table := tabwriter.NewWriter(std.Out, 0, 0, 3, ' ', 0)
				fmt.Fprintln(table, "ID\tNAME\tCREDITS\tRESERVED\tSTATE\tCREATED")
				for _, a := range accounts {
					o, status := a.Organization, "active"
					if !o.Suspended.IsZero() {
						status = "suspended"
					}
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", o.Public, invisible.Escape(o.Name), figures.Grouped(a.Balance.Available), figures.Grouped(a.Balance.Reserved), status, cli.Timestamp(o.Created))
				}
				return table.Flush()
			})
		},
	})
}

func newAdminOrgRenameCommand() *cobra.Command {
	var a admin
	return a.command(&cobra.Command{
		Use:     "rename ORG NAME",
		Short:   "Give an organization another name",
		Example: `  leadetl admin org rename "Example Rockets" "Example Rockets Inc"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return errors.New("name the organization and its new name")
			}
			return cli.AtMost(2, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			return a.onOrganization(c.Context(), args[0], func(s *sqlite.Store, org state.Organization) error {
				err := s.RenameOrganization(c.Context(), org.ID, args[1])
				if errors.Is(err, state.ErrExists) || errors.Is(err, resolution.ErrInvalid) {
					err = cli.UsageError(err)
				}
				return err
			})
		},
	})
}

// newAdminOrgSuspendCommand returns the command that suspends an organization,
// or the command that ends the suspension.
func newAdminOrgSuspendCommand(suspend bool) *cobra.Command {
	var a admin
	c := &cobra.Command{
		Use:   "suspend ORG",
		Short: "Refuse all calls of an organization, with 403",
		Long: `Refuse all calls of an organization, with 403. Its unfinished searches and its
callbacks continue, and its keys and credits stay as they are.`,
	}
	if !suspend {
		c.Use, c.Short, c.Long = "resume ORG", "Accept the calls of a suspended organization again", ""
	}
	return a.ofOrganization(c, func(c *cobra.Command, s *sqlite.Store, org state.Organization) error {
		var from time.Time
		if suspend {
			from = a.now()
		}
		return s.SuspendOrganization(c.Context(), org.ID, from)
	})
}

func newAdminOrgDeleteCommand() *cobra.Command {
	var a admin
	var confirm string
	c := a.ofOrganization(&cobra.Command{
		Use:   "delete ORG --confirm ID",
		Short: "Delete an organization with its keys, results and callbacks",
		Long: `Delete an organization with its keys, its callback secrets, its searches and
their results, and its callbacks. Unfinished searches are cancelled. This cannot
be undone. The ledger is kept, under the organization's id alone; answers kept
for an Idempotency-Key are gone after 24 hours.`,
		Example: `  leadetl admin org delete "Example Rockets" --confirm org_072f9029a2509b47`,
	}, func(c *cobra.Command, s *sqlite.Store, org state.Organization) error {
		if confirm != org.Public {
			return cli.UsageError(fmt.Errorf("to delete %s for good, add --confirm %s", org.Name, org.Public))
		}
		return s.DeleteOrganization(c.Context(), org.ID, a.now())
	})
	c.Flags().StringVar(&confirm, "confirm", "", "`id` (org_…) of the organization, so that none is deleted by mistake")
	return c
}
