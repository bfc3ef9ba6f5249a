package answerscmd

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/pipeline/answers"
)

func newAnswersStatCommand(std cli.Streams) *cobra.Command {
	var at stored
	var asJSON bool
	c := at.reading(&cobra.Command{
		Use:   "stat",
		Short: "Show how many answers are stored, and what they cost",
		Long: `Count the stored answers of each service, operation and outcome, and the calls
without an answer. CREDITS is the total cost of the answers; UNPRICED counts the
answers without a price. Forgotten answers are not counted.

An open call is unknown when it has no answer but may have been billed, and
parked when its answer will come later; leadetl answers list shows them. Calls
of a run that uses the folder now are under way.`,
		Args: cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return at.read(c.Context(), std, func(s *answers.Contents) error {
				st, err := s.Stat(c.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(std.Out).Encode(newStatJSON(st))
				}
				return printStat(std, st)
			})
		},
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printStat(std cli.Streams, st answers.Stat) error {
	table := tabwriter.NewWriter(std.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "SERVICE\tOPERATION\tOUTCOME\tANSWERS\tCREDITS\tUNPRICED\tOLDEST\tNEWEST")
	for _, t := range st.Tallies {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", invisible.Escape(t.Service), t.Operation, t.Outcome, figures.Grouped(t.Answers), figures.Grouped(t.Credits),
			figures.Grouped(t.Unpriced), cli.Timestamp(t.Oldest), cli.Timestamp(t.Newest))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	underWay := ""
	if st.UnderWay > 0 {
		underWay = fmt.Sprintf(", %s under way", figures.Grouped(st.UnderWay))
	}
	kept := ""
	if st.Kept > 0 {
		kept = fmt.Sprintf("; the answers to %s could not be read, and are kept", figures.Grouped(st.Kept))
	}
	_, err := fmt.Fprintf(std.Out, "open calls: %s unknown, %s parked%s%s\n", figures.Grouped(st.Unknown), figures.Grouped(st.Parked), underWay, kept)
	return err
}

// statJSON is a Stat in JSON output.
type statJSON struct {
	Answers   []tallyJSON `json:"answers"`
	OpenCalls openJSON    `json:"open_calls"`
}

type tallyJSON struct {
	Service   string          `json:"service"`
	Operation string          `json:"operation"`
	Outcome   answers.Outcome `json:"outcome"`
	Answers   int64           `json:"answers"`
	Credits   int64           `json:"credits"`
	Unpriced  int64           `json:"unpriced"`
	Oldest    time.Time       `json:"oldest"`
	Newest    time.Time       `json:"newest"`
}

type openJSON struct {
	Unknown int64 `json:"unknown"`
	Parked  int64 `json:"parked"`
	// UnderWay counts the calls of a run in progress.
	UnderWay int64 `json:"under_way,omitempty"`
	// Kept counts those whose answer could not be read, and is kept.
	Kept int64 `json:"kept_bodies,omitempty"`
}

func newStatJSON(st answers.Stat) statJSON {
	out := statJSON{Answers: []tallyJSON{}, OpenCalls: openJSON{st.Unknown, st.Parked, st.UnderWay, st.Kept}}
	for _, t := range st.Tallies {
		out.Answers = append(out.Answers, tallyJSON{t.Service, string(t.Operation), t.Outcome, t.Answers, t.Credits, t.Unpriced, t.Oldest, t.Newest})
	}
	return out
}
