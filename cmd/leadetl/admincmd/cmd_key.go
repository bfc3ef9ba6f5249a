package admincmd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/resolution/service/account"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
	refusals "github.com/leadetl/leadetl/resolution/service/wire"
)

func newAdminKeyCommand(std cli.Streams) *cobra.Command {
	c := &cobra.Command{Use: "key", Short: "API keys of organizations"}
	c.AddCommand(newAdminKeyCreateCommand(std), newAdminKeyListCommand(std), newAdminKeyLimitCommand(std), newAdminKeyRevokeCommand(std), newAdminKeySystemCommand(std))
	return c
}

func newAdminKeyCreateCommand(std cli.Streams) *cobra.Command {
	var a admin
	var label string
	var test, makesKeys bool
	var limit int64
	var expires cliflag.Age
	var operations []string
	var networks cliflag.Networks
	c := a.ofSealed(&cobra.Command{
		Use:   "create ORG",
		Short: "Make an API key and print it, once",
		Long: `Make an API key for an organization and print it alone on standard output. Only
its hash is kept, so this is the one time it can be seen. An organization may
have any number of keys: make a new one, change over, revoke the old one.

A key may be limited to operations, to networks that calls come from, and to an
amount of credits. A key that may make others on the dashboard (--makes-keys) gives
them at most what it has itself, and what they spend counts for it too. Calls
with a --test key are answered by the same rules, are marked in every answer,
and spend the credits of a ledger for tests alone.`,
		Example: `  leadetl admin key create "Example Rockets" --label nightly > key && chmod 600 key`,
	}, func(c *cobra.Command, s *sqlite.Store, org state.Organization, pepper credential.Pepper) error {
		for _, o := range operations {
			if !slices.Contains(account.Scopes(), o) {
				return cli.UsageError(fmt.Errorf("--operation %s: there is no such operation%s", o, suggest.OneOf(o, account.Scopes())))
			}
		}
		asked := account.NewKey{Organization: org.ID, Test: test, Label: label, Limit: limit, Operations: operations, Networks: networks, Life: time.Duration(expires)}
		if c.Flags().Changed("makes-keys") {
			asked.MakesKeys = &makesKeys
		}
		key, record, err := account.Keys{State: s, Pepper: pepper, Now: a.now}.Make(c.Context(), nil, asked)
		if err != nil {
			return refusedKey(err)
		}
		fmt.Fprintf(std.Err, "%s of %s; this is the one time the key is shown\n", record.Public, org.Name)
		_, err = fmt.Fprintln(std.Out, key)
		return err
	})
	flags := c.Flags()
	flags.StringVar(&label, "label", "", "`text` to know the key by")
	flags.Var(&expires, "expires", "`time` from now after which the key is not valid any more, such as 90d (default: never)")
	flags.Int64Var(&limit, "limit", 0, "most `credits` that the key may spend in all (default: any number)")
	flags.BoolVar(&test, "test", false, "make a test key, which spends no credits")
	flags.StringSliceVar(&operations, "operation", nil, "only `operation` that the key may call; repeatable (default: all); account is for the account's own calls")
	flags.Var(&networks, "network", "only `network` (CIDR) that the key may be used from; repeatable (default: all)")
	flags.BoolVar(&makesKeys, "makes-keys", false, "let the key make and revoke keys on the dashboard (default: if nothing else limits it)")
	cli.Complete(c, "operation", account.Scopes()...)
	return c
}

func newAdminKeyListCommand(std cli.Streams) *cobra.Command {
	var a admin
	return a.ofOrganization(&cobra.Command{
		Use:   "list ORG",
		Short: "List the keys of an organization",
	}, func(c *cobra.Command, s *sqlite.Store, org state.Organization) error {
		keys, err := s.Keys(c.Context(), state.KeyChoice{Organization: org.ID})
		if err != nil {
			return err
		}
		slices.Reverse(keys)
		table := tabwriter.NewWriter(std.Out, 0, 0, 3, ' ', 0)
		fmt.Fprintln(table, "ID\tLABEL\tKIND\tENDS IN\tSPENT\tCREATED\tEXPIRES\tREVOKED\tMAKES KEYS\tMADE BY\tSCOPE")
		for _, k := range keys {
			kind, makes := "live", "no"
			if k.Test {
				kind = "test"
			}
			if k.MakesKeys {
				makes = "yes"
			}
			spent := figures.Grouped(k.Spent)
			if k.Limit > 0 {
				spent += " of " + figures.Grouped(k.Limit)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t…%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.Public, invisible.Escape(k.Label), kind, k.Hint, spent, cli.Timestamp(k.Created), cli.Timestamp(k.Expires), cli.Timestamp(k.Revoked), makes, k.MakerPublic,
				strings.Join(slices.Concat(k.Operations, k.NetworkTexts()), ","))
		}
		return table.Flush()
	})
}

func newAdminKeyLimitCommand(std cli.Streams) *cobra.Command {
	var a admin
	return a.command(&cobra.Command{
		Use:   "limit KEY CREDITS",
		Short: "Set how many credits a key may spend in all, or none for any number",
		Long: `Set how many credits an API key may spend in all, with what it has spent already;
none takes the limit away. Calls that would cost more than is left are refused.`,
		Example: `  leadetl admin key limit key_5a1e9b03c7d2f468 5000`,
		Args:    nameAndNumber("key id"),
		RunE: func(c *cobra.Command, args []string) error {
			credits, err := strconv.ParseInt(args[1], 10, 64)
			if args[1] == "none" {
				credits, err = 0, nil
			} else if err != nil || credits < 1 {
				return cli.UsageError(fmt.Errorf("%q is not a number of credits; write a whole number of at least 1, or none", args[1]))
			}
			return a.onKey(args[0], func(s *sqlite.Store) error { return s.LimitKey(c.Context(), args[0], credits) })
		},
	})
}

func newAdminKeyRevokeCommand(std cli.Streams) *cobra.Command {
	var a admin
	var made bool
	c := a.command(&cobra.Command{
		Use:   "revoke KEY",
		Short: "Revoke an API key by its id (key_…)",
		Long: `Revoke an API key by its id (key_…). The keys that it made stay valid, and are
named; --made revokes them too, also later.`,
		Args: cli.OneArgument("key id"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.onKey(args[0], func(s *sqlite.Store) error {
				stay, err := account.Keys{State: s, Now: a.now}.Revoke(c.Context(), nil, 0, args[0], made)
				for _, k := range stay {
					fmt.Fprintf(std.Err, "%s, which it made, stays valid: %s\n", k.Public, invisible.Escape(k.Label))
				}
				if len(stay) > 0 {
					fmt.Fprintf(std.Err, "leadetl admin key revoke --made %s revokes these too\n", args[0])
				}
				return err
			})
		},
	})
	c.Flags().BoolVar(&made, "made", false, "revoke the keys that it made too, and those that they made")
	return c
}

// refusedKey is a refusal to make a key in the words of a command.
func refusedKey(err error) error {
	p, is := errors.AsType[*refusals.Problem](err)
	if !is {
		return err
	}
	flags := map[string]string{"operations": "operation", "networks": "network", "life": "expires"}
	var all []error
	for _, f := range p.Fields {
		name := strings.TrimPrefix(f.Pointer, "/")
		all = append(all, fmt.Errorf("--%s: %s", cmp.Or(flags[name], name), f.Detail))
	}
	return cli.UsageError(errors.Join(all...))
}

// onKey changes a key by its id.
func (a *admin) onKey(id string, change func(*sqlite.Store) error) error {
	if credential.WellFormed(id) {
		return cli.UsageError(errors.New("that is a key, not its id (key_…), which leadetl admin key list shows; it should not be on a command line"))
	}
	return a.on(false, func(s *sqlite.Store) error {
		err := change(s)
		if errors.Is(err, state.ErrNotFound) {
			return cli.UsageError(errors.New("there is no such key; leadetl admin key list names those of an organization"))
		}
		return err
	})
}

func newAdminKeySystemCommand(std cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "system",
		Short: "Create a system key (x-sys-key) and print it; it is not stored",
		Long: `Make a system key for the internal listener and print it. The service takes it
from ` + wire.SystemKeyVariable + ` or from the file of --system-key-file.`,
		Example: `  leadetl admin key system > system-key && chmod 600 system-key`,
		Args:    cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(std.Out, credential.NewSystemKey().Reveal())
			return err
		},
	}
}
