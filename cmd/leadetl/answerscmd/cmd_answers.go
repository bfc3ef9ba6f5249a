// Package answerscmd holds the commands of leadetl answers: list, export and
// forget what runs have bought.
package answerscmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
)

// NewCommand makes leadetl answers.
func NewCommand(std cli.Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "answers",
		Short: "Show, export and forget answers that runs have bought",
		Long: `Runs with --resolver URL store every answer they buy, and every call without an
answer that may have been billed, in the folder answers of their state folder.
These commands need that no run uses it; sqlite3 -readonly can read
STATE/answers/answers.sqlite at any time.`,
	}
	c.AddCommand(newAnswersStatCommand(std), newAnswersListCommand(std), newAnswersExportCommand(std), newAnswersForgetCommand(std))
	return c
}

// stored selects the answers that a command works on.
type stored struct {
	state     string
	service   string
	operation string
}

// command adds what all commands of answers share.
func (s *stored) command(c *cobra.Command) *cobra.Command {
	c.Annotations = cli.ExitCodes(map[int]string{cli.ExitTryAgain: "stored answers in use by another process; run the same command later", cli.ExitInterrupted: "interrupted"})
	c.Flags().SortFlags = false
	c.Flags().StringVar(&s.state, "state", wire.DefaultStateDir(), "`folder` with the state of runs")
	return c
}

// filtered adds the flags that choose among the answers.
func (s *stored) filtered(c *cobra.Command) *cobra.Command {
	s.command(c)
	c.Flags().StringVar(&s.service, "service", "", "only answers of the service at this `URL`")
	c.Flags().StringVar(&s.operation, "operation", "", "only answers to this `operation`")
	return c
}

// operations are the operations of stored answers.
var operations = slices.Concat(resolution.SingleRecord, []resolution.Operation{resolution.KeywordToLead, resolution.KeywordToLeadCount})

// filter is what filtered's flags choose.
func (s *stored) filter() (answers.Filter, error) {
	op := resolution.Operation(s.operation)
	if op != "" && !slices.Contains(operations, op) {
		var names []string
		for _, o := range operations {
			names = append(names, string(o))
		}
		return answers.Filter{}, cli.UsageError(fmt.Errorf("unknown --operation %q; it is one of %s", s.operation, strings.Join(names, ", ")))
	}
	return answers.Filter{Service: strings.TrimRight(s.service, "/"), Operation: op}, nil
}

// on runs a command's work on the open store.
func (s *stored) on(ctx context.Context, work func(*answers.Store) error) (err error) {
	store, err := wire.OpenAnswers(s.state, answers.Options{MustExist: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	err = work(store)
	if err != nil && ctx.Err() != nil {
		return cli.WithCode(cli.ExitInterrupted, errors.New("interrupted"))
	}
	return err
}
