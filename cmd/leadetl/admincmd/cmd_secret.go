package admincmd

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/state"
)

func newAdminSecretCommand(std cli.Streams) *cobra.Command {
	c := &cobra.Command{Use: "secret", Short: "Secrets, which sign callbacks"}
	c.AddCommand(newAdminSecretShowCommand(std), newAdminSecretRotateCommand(std))
	return c
}

func newAdminSecretShowCommand(std cli.Streams) *cobra.Command {
	var a admin
	return a.ofSealed(&cobra.Command{
		Use:   "show ORG",
		Short: "Print the secrets callbacks are signed with, the present one first",
	}, func(c *cobra.Command, s *sqlite.Store, org state.Organization, pepper credential.Pepper) error {
		secrets, err := s.Secrets(c.Context(), org.ID, a.now())
		if err != nil {
			return err
		}
		for _, secret := range secrets {
			plain, err := pepper.Open(secret.Sealed)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(std.Out, string(plain)); err != nil {
				return err
			}
		}
		return nil
	})
}

func newAdminSecretRotateCommand(std cli.Streams) *cobra.Command {
	var a admin
	keep := cliflag.Age(cliflag.OneDay)
	c := a.ofSealed(&cobra.Command{
		Use:   "rotate ORG",
		Short: "Make a new secret and print it",
		Long: `Make a new secret and print it. Until --keep is over callbacks are signed with
both, so that receivers can change over in their own time. Of a secret that
got out write --keep 0.`,
	}, func(c *cobra.Command, s *sqlite.Store, org state.Organization, pepper credential.Pepper) error {
		secret := callback.NewSecret().Reveal()
		now := a.now()
		if err := s.RotateSecret(c.Context(), org.ID, pepper.Seal([]byte(secret)), now, now.Add(time.Duration(keep))); err != nil {
			return err
		}
		_, err := fmt.Fprintln(std.Out, secret)
		return err
	})
	c.Flags().Var(&keep, "keep", "`time` for which the secret before stays valid")
	return c
}
