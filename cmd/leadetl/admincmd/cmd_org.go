package admincmd

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
)

func newAdminOrgCommand(std cli.Streams) *cobra.Command {
	c := &cobra.Command{Use: "org", Short: "Organizations, which have credits and keys"}
	c.AddCommand(newAdminOrgCreateCommand(std), newAdminOrgListCommand(std))
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
	a.sealing(c).Flags().Int64Var(&credits, "credits", 0, "`number` of credits it begins with")
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
				fmt.Fprintln(table, "ID\tNAME\tCREDITS\tRESERVED\tCREATED")
				for _, a := range accounts {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", a.Organization.Public, a.Organization.Name, figures.Grouped(a.Balance.Available), figures.Grouped(a.Balance.Reserved), cli.Timestamp(a.Organization.Created))
				}
				return table.Flush()
			})
		},
	})
}
