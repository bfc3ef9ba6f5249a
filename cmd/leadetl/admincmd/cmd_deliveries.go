package admincmd

import (
	"errors"
	"fmt"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

func newAdminDeliveriesCommand(std cli.Streams) *cobra.Command {
	c := &cobra.Command{Use: "deliveries", Short: "Callbacks: delivered, pending and failed"}
	c.AddCommand(newAdminDeliveriesListCommand(std), newAdminDeliveriesReplayCommand(std))
	return c
}

func newAdminDeliveriesListCommand(std cli.Streams) *cobra.Command {
	var a admin
	var org, is string
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List callbacks: delivered, pending and failed",
		Long: `List callbacks, the newest first. A callback is pending until its receiver has
it (delivered) or the attempts are used up (dead); FAILURE says what was wrong
with the last attempt. Addresses are not shown whole: they may hold secrets.`,
		Args: cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			switch is {
			case "", state.Pending, state.Delivered, state.Dead:
			default:
				return cli.UsageError(fmt.Errorf("unknown --is %q%s", is, suggest.OneOf(is, []string{string(state.Pending), string(state.Delivered), string(state.Dead)})))
			}
			if limit < 1 {
				return cli.UsageError(fmt.Errorf("--limit is %d; it must be at least 1", limit))
			}
			show := func(s *sqlite.Store, organization int64) error {
				deliveries, err := s.Deliveries(c.Context(), organization, is, "", limit)
				if err != nil {
					return err
				}
				accounts, err := s.Organizations(c.Context())
				if err != nil {
					return err
				}
				names := map[int64]string{}
				for _, a := range accounts {
					names[a.Organization.ID] = a.Organization.Name
				}
				table := tabwriter.NewWriter(std.Out, 0, 0, 3, ' ', 0)
				fmt.Fprintln(table, "ID\tSTATE\tRECEIVER\tATTEMPTS\tSTATUS\tFAILURE\tCREATED\tNEXT\tENDED\tRESOLUTION\tORGANIZATION")
				for _, d := range deliveries {
					next, status := "", ""
					if d.State == state.Pending {
						next = cli.Timestamp(d.Due)
					}
					if d.Status != 0 {
						status = strconv.Itoa(d.Status)
					}
					fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.WebhookID, d.State, d.Receiver, d.Attempts, status, d.Failure, cli.Timestamp(d.Created), next, cli.Timestamp(d.Finished),
						request.FormatID(d.Resolution), names[d.Organization])
				}
				return table.Flush()
			}
			if org == "" {
				return a.on(false, func(s *sqlite.Store) error { return show(s, 0) })
			}
			return a.onOrganization(c.Context(), org, func(s *sqlite.Store, o state.Organization) error { return show(s, o.ID) })
		},
	}
	flags := a.command(c).Flags()
	flags.StringVar(&org, "org", "", "`organization` whose callbacks are listed (default: all)")
	flags.StringVar(&is, "is", "", "only callbacks in this `state`: pending, delivered or dead")
	flags.IntVar(&limit, "limit", 100, "greatest `number` of callbacks listed")
	return c
}

func newAdminDeliveriesReplayCommand(std cli.Streams) *cobra.Command {
	var a admin
	var dead string
	c := &cobra.Command{
		Use:   "replay ID… | --dead ORG",
		Short: "Post callbacks again, with the same webhook id",
		Example: `  leadetl admin deliveries replay msg_0199b4f6c8d07d0f8a4f3c2b1a098765
  leadetl admin deliveries replay --dead "Example Rockets"`,
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) == 0) == (dead == "") {
				return errors.New("name callbacks by their ids (msg_…), or an organization with --dead")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if dead != "" {
				return a.onOrganization(c.Context(), dead, func(s *sqlite.Store, org state.Organization) error {
					n, err := s.ReplayDead(c.Context(), org.ID, a.now())
					fmt.Fprintf(std.Out, "%s to be posted again\n", figures.Plural(n, "callback"))
					return err
				})
			}
			return a.on(false, func(s *sqlite.Store) error {
				var errs []error
				done := 0
				for _, id := range args {
					err := s.ReplayDelivery(c.Context(), 0, id, a.now())
					switch {
					case errors.Is(err, state.ErrNotFound):
						err = cli.UsageError(fmt.Errorf("%s: there is no such delivery; leadetl admin deliveries list names them", id))
					case errors.Is(err, state.ErrGone):
						err = cli.UsageError(fmt.Errorf("%s: its %w", id, err))
					case err == nil:
						done++
					}
					errs = append(errs, err)
				}
				fmt.Fprintf(std.Out, "%s to be posted again\n", figures.Plural(done, "callback"))
				return errors.Join(errs...)
			})
		},
	}
	a.command(c).Flags().StringVar(&dead, "dead", "", "every dead callback of this `organization`")
	return c
}
