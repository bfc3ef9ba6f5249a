package admincmd

import (
	"errors"
	"fmt"
	"strconv"
	"text/tabwriter"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

func newAdminCreditsCommand(std cli.Streams) *cobra.Command {
	c := &cobra.Command{Use: "credits", Short: "Credits, which pay for calls"}
	c.AddCommand(newAdminCreditsGrantCommand(std), newAdminCreditsTakeCommand(std), newAdminCreditsListCommand(std))
	return c
}

func newAdminCreditsGrantCommand(std cli.Streams) *cobra.Command {
	return newAdminCreditsChangeCommand(std, &cobra.Command{
		Use:     "grant ORG NUMBER",
		Short:   "Give an organization credits and print what it has then",
		Example: `  leadetl admin credits grant "Example Rockets" 5000 --note "invoice 17"`,
	}, "leadetl admin credits take takes credits back", 1)
}

func newAdminCreditsTakeCommand(std cli.Streams) *cobra.Command {
	return newAdminCreditsChangeCommand(std, &cobra.Command{
		Use:     "take ORG NUMBER",
		Short:   "Take credits back and print what is left",
		Example: `  leadetl admin credits take "Example Rockets" 5000 --note "invoice 17 was for somebody else"`,
	}, "leadetl admin credits grant gives credits", -1)
}

// newAdminCreditsChangeCommand makes c a command that changes an organization's
// credits and prints the new balance. opposite is the hint for a number below 0:
// the command that changes them the other way. sign is 1 or -1.
func newAdminCreditsChangeCommand(std cli.Streams, c *cobra.Command, opposite string, sign int64) *cobra.Command {
	var a admin
	var note string
	var test bool
	c.Args = nameAndNumber("organization")
	c.RunE = func(c *cobra.Command, args []string) error {
		credits, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil || credits < 1 {
			return cli.UsageError(fmt.Errorf("%q is not a number of credits; write a whole number of at least 1", args[1]))
		}
		return a.onOrganization(c.Context(), args[0], func(s *sqlite.Store, org state.Organization) error {
			if test {
				var err error
				if org, err = s.TestOrganization(c.Context(), org.ID, a.now()); err != nil {
					return err
				}
			}
			balance, err := s.ChangeCredits(c.Context(), state.CreditChange{Organization: org.ID, Credits: sign * credits, Note: note, At: a.now()})
			if too, is := errors.AsType[*state.InsufficientError](err); is {
				return cli.UsageError(fmt.Errorf("%s has %s", org.Name, figures.Plural(too.Balance, "credit")))
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(std.Out, balance.Available)
			return err
		})
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if unknown, is := errors.AsType[*pflag.NotExistError](err); is {
			number := "-" + unknown.GetSpecifiedShortnames()
			if _, err := strconv.ParseFloat(number, 64); err == nil {
				return cli.UsageError(fmt.Errorf("%q is not a number of credits; write a whole number of at least 1; %s", number, opposite))
			}
		}
		return c.Parent().FlagErrorFunc()(c, err)
	})
	flags := a.command(c).Flags()
	flags.StringVar(&note, "note", "", "`text` that the ledger keeps with the entry")
	flags.BoolVar(&test, "test", false, "change the ledger of the test keys")
	return c
}

func nameAndNumber(of string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < 2 {
			return errors.New("name the " + of + " and the number of credits")
		}
		return cli.AtMost(2, args)
	}
}

func newAdminCreditsListCommand(std cli.Streams) *cobra.Command {
	var a admin
	var limit int
	var after int64
	var test bool
	c := a.ofOrganization(&cobra.Command{
		Use:   "list ORG",
		Short: "Print an organization's ledger, the oldest entry first",
	}, func(c *cobra.Command, s *sqlite.Store, org state.Organization) (err error) {
		if limit < 1 || after < 0 {
			return cli.UsageError(errors.New("--limit has to be at least 1, --after at least 0"))
		}
		if test {
			if org, err = s.TestOrganization(c.Context(), org.ID, a.now()); err != nil {
				return err
			}
		}
		entries, err := s.Ledger(c.Context(), org.ID, after, limit)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(std.Out, 0, 0, 3, ' ', 0)
		fmt.Fprintln(table, "ENTRY\tTIME\tKIND\tCREDITS\tAVAILABLE\tRESERVED\tOPERATION\tRESOLUTION\tKEY\tNOTE")
		for _, e := range entries {
			resolution := ""
			if e.Resolution != uuid.Nil {
				resolution = request.FormatID(e.Resolution)
			}
			fmt.Fprintf(table, "%d\t%s\t%s\t%d\t%+d\t%+d\t%s\t%s\t%s\t%s\n", e.Seq, cli.Timestamp(e.At), e.Kind, e.Credits, e.Available, e.Reserved, e.Operation, resolution, e.Key, invisible.Escape(e.Note))
		}
		return table.Flush()
	})
	flags := c.Flags()
	flags.IntVar(&limit, "limit", 1000, "greatest `number` of entries printed")
	flags.BoolVar(&test, "test", false, "print the ledger of the test keys")
	flags.Int64Var(&after, "after", 0, "print from the `entry` that follows this one")
	return c
}
