package admincmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/resolution/service/backup"
)

func newAdminBackupCommand(std cli.Streams) *cobra.Command {
	var a admin
	keep := 0
	c := a.command(&cobra.Command{
		Use:   "backup FILE|FOLDER",
		Short: "Copy the state to a file, also while the service runs",
		Long: `Copy the state of a service to a new file that only you can read. The service
may run: the copy is the state of one moment. The file has its name only when it
is complete and on disk. An existing file is not replaced. In a folder, the file
is named after the time, in UTC, and --keep removes older ones.

The secret that keys are hashed under (--pepper-file of serve) is not in the
copy. Keep a copy of it elsewhere, once.`,
		Example: `  leadetl admin backup before-the-update.sqlite
  leadetl admin backup /var/backups/leadetl --keep 48`,
		Args: cli.OneArgument("file"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := wire.CheckState(a.state); err != nil {
				return err
			}
			file := args[0]
			info, err := os.Stat(file)
			inFolder := err == nil && info.IsDir()
			switch rotates := c.Flags().Changed("keep"); {
			case inFolder:
				file = filepath.Join(file, backup.Name(a.now()))
			case rotates:
				return cli.UsageError(fmt.Errorf("--keep needs a folder, and %s is none", args[0]))
			}
			if keep < 0 {
				return cli.UsageError(fmt.Errorf("--keep %d is less than 0", keep))
			}
			ctx, stop := runview.Watch(c.Context(), std, "backing up", "byte", true)
			size, err := backup.Write(ctx, a.state, file)
			stop()
			if errors.Is(err, backup.ErrExists) {
				return cli.UsageError(err)
			}
			if err != nil {
				return wire.StateError(a.noState(err))
			}
			if _, err = fmt.Fprintf(std.Err, "%s bytes in %s\n", figures.Grouped(size), file); err != nil || keep == 0 {
				return err
			}
			return backup.Keep(args[0], keep)
		},
	})
	c.Flags().IntVar(&keep, "keep", 0, "`number` of backups to keep in the folder: older ones are removed; 0 keeps all")
	return c
}

func newAdminRestoreCommand(std cli.Streams) *cobra.Command {
	var a admin
	return a.command(&cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup back and list what that undoes",
		Long: `Put a backup back as the state of a service, and list what it undoes: keys that
are valid again, credits, callbacks. The service has to be stopped. The state
from before stays in the state folder, as replaced-TIME.sqlite.

Everything after the backup is forgotten: a call that was charged is not charged
any more, a revoked key is valid again, a new key is unknown.`,
		Example: `  leadetl admin restore /backup/service-2026-11-20T0200.sqlite --state state`,
		Args:    cli.OneArgument("file"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := wire.CheckState(a.state); err != nil {
				return err
			}
			ctx, stop := runview.Watch(c.Context(), std, "restoring", "byte", true)
			r, err := backup.Restore(ctx, args[0], a.state, a.now())
			stop()
			if err != nil {
				return wire.StateError(err)
			}
			return printRestored(std.Out, r)
		},
	})
}

// printRestored prints the result of a restore, with a line for each thing that
// it undid.
func printRestored(to io.Writer, r backup.Restored) (err error) {
	say := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(to, format+"\n", args...)
		}
	}
	if r.Replaced == "" {
		say("restored; there was no state before")
		return err
	}
	say("restored; the state from before is %s in the state folder", filepath.Base(r.Replaced))
	if r.Unread != nil {
		say("the state from before cannot be compared: %v", r.Unread)
		return err
	}
	for _, k := range r.Revoked {
		say("key valid again: %s of %s, revoked %s; revoke it with leadetl admin key revoke %s", k.ID, k.Organization, cli.Timestamp(k.At), k.ID)
	}
	for _, name := range r.Suspended {
		say("organization not suspended any more: %s; suspend it with leadetl admin org suspend", name)
	}
	for _, name := range r.Deleted {
		say("organization not deleted any more: %s; delete it with leadetl admin org delete", name)
	}
	for _, k := range r.Made {
		say("key unknown now: %s of %s, made %s", k.ID, k.Organization, cli.Timestamp(k.At))
	}
	for _, o := range r.Lost {
		say("organization unknown now: %s (%s), with %s", o.Organization, o.ID, figures.Plural(o.Before, "credit"))
	}
	for _, o := range r.Changed {
		say("credits of %s: %s before, %s now; since the backup %s granted, %s charged", o.Organization,
			figures.Grouped(o.Before), figures.Grouped(o.After), figures.Grouped(o.Granted), figures.Grouped(o.Charged))
	}
	for _, name := range r.Secrets {
		say("callbacks of %s are signed with an older secret again", name)
	}
	for _, n := range []struct {
		number int
		what   string
	}{
		{r.Forgotten, "keyword searches unknown now"},
		{r.Resumed, "keyword searches unfinished again"},
		{r.Reposted, "callbacks that will be posted again"},
		{r.Replies, "stored replies lost; a repeated call with their Idempotency-Key is charged again"},
	} {
		if n.number > 0 {
			say("%s: %s", n.what, figures.Grouped(int64(n.number)))
		}
	}
	return err
}
