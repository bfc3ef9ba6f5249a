package answerscmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/journal"
)

func newAnswersRunsCommand(std cli.Streams) *cobra.Command {
	var at stored
	var remove []string
	c := at.changing(&cobra.Command{
		Use:   "runs [--remove RUN…]",
		Short: "List the runs that have not finished",
		Long: `List the runs of a state that have not finished, the longest unchanged first. A
run removes what it keeps there when it finishes; one that was killed and never
resumed leaves it. It may be personal data: rows and keys.

--remove deletes what such runs keep, except stored answers. The same command
then starts those runs anew, and buys nothing again that is stored. A run that
wrote something within the last hour is not removed, because it may be at work.`,
		Example: `  leadetl answers runs --state s3://leads/state/`,
		Args:    cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.Interrupted(c.Context(), at.runs(c.Context(), std, remove))
		},
	})
	c.Flags().StringArrayVar(&remove, "remove", nil, "`run` to remove, by its name in the list; repeatable")
	return c
}

func (s *stored) runs(ctx context.Context, std cli.Streams, remove []string) error {
	unfinished := journal.InFolder(disk.Dir(s.state))
	if objects.Is(s.state) {
		state, err := wire.OpenObjectState(ctx, s.state, &s.s3, std)
		if err != nil {
			return err
		}
		unfinished = journal.OnS3(state)
	} else if err := wire.CheckRunState(s.state); err != nil {
		return err
	}
	for _, id := range remove {
		switch err := unfinished.Discard(ctx, id); {
		case errors.Is(err, fs.ErrNotExist):
			return cli.UsageError(fmt.Errorf("--remove %s: there is no such run; the list has their names", id))
		case err != nil:
			return err
		}
	}
	if len(remove) > 0 {
		_, err := fmt.Fprintf(std.Out, "%s removed\n", figures.Plural(len(remove), "run"))
		return err
	}
	return listRuns(ctx, std, unfinished)
}

func listRuns(ctx context.Context, std cli.Streams, state *journal.State) error {
	all, err := state.Unfinished(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(std.Out, "all runs have finished")
		return err
	}
	w := tabwriter.NewWriter(std.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "run\tlast change\tobjects\tsize")
	for _, r := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.ID, r.Changed.UTC().Format(time.RFC3339), figures.Grouped(r.Files), figures.Size(r.Bytes))
	}
	return w.Flush()
}
