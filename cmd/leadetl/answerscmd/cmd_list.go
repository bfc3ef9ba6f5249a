package answerscmd

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/pipeline/answers"
)

func newAnswersListCommand(std cli.Streams) *cobra.Command {
	var at stored
	var unknown, parked, asJSON bool
	c := at.filtered(at.reading(&cobra.Command{
		Use:   "list",
		Short: "List stored answers, or calls without one, by key hash",
		Long: `List the stored answers, oldest first (those on S3 in the order of their key
hashes), or with --unknown or --parked the calls
without an answer. The list has no personal data: questions are shown by their
key hash, the SHA-256 of service, operation and key, as in reports.

An unknown call may have been billed. The service's support can look it up by
its idempotency key and request id, a provider's by the latter. A run sends it
again only with --retry-unknown, or with --idempotent while its key, by the time
it was first sent, is young enough.`,
		Example: `  leadetl answers list --unknown
  leadetl answers list --operation enrichment --json | jq -r .key_hash`,
		Args: cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			f, err := at.filter()
			if err != nil {
				return err
			}
			return at.read(c.Context(), std, func(s *answers.Contents) error {
				l := newLister(std, asJSON)
				if unknown || parked {
					return l.open(c.Context(), s, f, unknown, parked)
				}
				return l.answers(c.Context(), s, f)
			})
		},
	}))
	flags := c.Flags()
	flags.BoolVar(&unknown, "unknown", false, "list calls without an answer that may have been billed")
	flags.BoolVar(&parked, "parked", false, "list calls that will be answered later")
	flags.BoolVar(&asJSON, "json", false, "print JSON lines")
	return c
}

// lister prints items one by one, because a list may be larger than memory.
type lister struct {
	table *tabwriter.Writer
	lines *json.Encoder // nil for a table
	rows  int
}

func newLister(std cli.Streams, asJSON bool) *lister {
	l := &lister{table: tabwriter.NewWriter(std.Out, 0, 0, 3, ' ', 0)}
	if asJSON {
		l.lines = json.NewEncoder(std.Out)
	}
	return l
}

// tableBlock is how many rows are aligned together.
const tableBlock = 1000

func (l *lister) head(names ...string) {
	if l.lines == nil {
		fmt.Fprintln(l.table, strings.Join(names, "\t"))
	}
}

// row prints one row: the cells in a table, or the line as JSON.
func (l *lister) row(line any, cells ...string) error {
	if l.lines != nil {
		return l.lines.Encode(line)
	}
	for i, cell := range cells {
		cells[i] = invisible.Escape(cell)
	}
	fmt.Fprintln(l.table, strings.Join(cells, "\t"))
	l.rows++
	if l.rows%tableBlock == 0 {
		return l.table.Flush()
	}
	return nil
}

// answerJSON is a stored answer in JSON output.
type answerJSON struct {
	KeyHash    string          `json:"key_hash"`
	Service    string          `json:"service"`
	Operation  string          `json:"operation"`
	Outcome    answers.Outcome `json:"outcome"`
	Reason     string          `json:"reason,omitempty"`
	Status     int             `json:"status"`
	Credits    *int64          `json:"credits"` // null: the service sent no price
	ReceivedAt time.Time       `json:"received_at"`
	Run        string          `json:"run"`
	Resolution string          `json:"resolution_id,omitempty"`
	Request    string          `json:"request_id,omitempty"`
}

func (l *lister) answers(ctx context.Context, s *answers.Contents, f answers.Filter) error {
	l.head("KEY HASH", "SERVICE", "OPERATION", "OUTCOME", "REASON", "STATUS", "CREDITS", "RECEIVED", "RESOLUTION", "REQUEST")
	for i, err := range s.List(ctx, f) {
		if err != nil {
			return err
		}
		credits := ""
		if i.Credits != nil {
			credits = strconv.FormatInt(*i.Credits, 10)
		}
		err = l.row(answerJSON{i.Hash.String(), i.Service, string(i.Operation), i.Outcome, i.Reason, i.Status, i.Credits, i.Received, i.Run, i.Resolution, i.Request},
			i.Hash.String(), i.Service, string(i.Operation), string(i.Outcome), i.Reason, httpStatus(i.Status), credits, cli.Timestamp(i.Received), i.Resolution, i.Request)
		if err != nil {
			return err
		}
	}
	return l.table.Flush()
}

// callJSON is an open call in JSON output.
type callJSON struct {
	KeyHash        string        `json:"key_hash"`
	Service        string        `json:"service"`
	Operation      string        `json:"operation"`
	State          answers.State `json:"state"`
	Reason         string        `json:"reason,omitempty"`
	Status         int           `json:"status,omitempty"`
	IdempotencyKey string        `json:"idempotency_key"`
	Attempts       int           `json:"attempts"`
	FirstSent      time.Time     `json:"first_sent_at,omitzero"`
	SentAt         time.Time     `json:"sent_at"`
	Deadline       *time.Time    `json:"deadline,omitempty"`
	Run            string        `json:"run"`
	Resolution     string        `json:"resolution_id,omitempty"`
	Request        string        `json:"request_id,omitempty"`
}

func (l *lister) open(ctx context.Context, s *answers.Contents, f answers.Filter, unknown, parked bool) error {
	l.head("KEY HASH", "SERVICE", "OPERATION", "STATE", "REASON", "STATUS", "ATTEMPTS", "FIRST SENT", "SENT", "DEADLINE", "IDEMPOTENCY KEY", "RESOLUTION", "REQUEST")
	var lists []iter.Seq2[answers.OpenCall, error]
	if unknown {
		lists = append(lists, s.Unknown(ctx))
	}
	if parked {
		lists = append(lists, s.Parked(ctx))
	}
	for _, list := range lists {
		for c, err := range list {
			if err != nil {
				return err
			}
			if !f.Selects(c.Scope) {
				continue
			}
			if c.IsProvider() { // what it has promised is a request, which may have the identifier
				c.Resolution = ""
			}
			line := callJSON{c.Hash.String(), c.Service, string(c.Operation), c.State, c.Reason, c.Status, c.SentKey(), c.Attempts, c.FirstSent(), c.Sent, nil, c.Run, c.Resolution, c.Request}
			if !c.Deadline.IsZero() {
				line.Deadline = &c.Deadline
			}
			err = l.row(line, line.KeyHash, c.Service, line.Operation, string(c.State), c.Reason, httpStatus(c.Status), strconv.Itoa(c.Attempts), cli.Timestamp(c.FirstSent()), cli.Timestamp(c.Sent), cli.Timestamp(c.Deadline),
				c.SentKey(), c.Resolution, c.Request)
			if err != nil {
				return err
			}
		}
	}
	return l.table.Flush()
}

// httpStatus formats an HTTP status for a table; "" means none.
func httpStatus(code int) string {
	if code == 0 {
		return ""
	}
	return strconv.Itoa(code)
}
