package runcmd

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
)

// TestNextStep: a refusal names the flags that can mend it, and is still one.
func TestNextStep(t *testing.T) {
	for _, c := range []struct {
		why    error
		status int
		code   string
		says   string // "" for nothing more
	}{
		{purchase.ErrRefused, 401, "", "; check --api-key-file (or LEADETL_API_KEY) and header_name"},
		{purchase.ErrRefused, 403, "forbidden", "; check --api-key-file (or LEADETL_API_KEY) and header_name"},
		{purchase.ErrRefused, 403, "callback_url_not_allowed", "--callback-url, or allow it at the service (leadetl serve --callback-allow)"},
		{purchase.ErrRefused, 422, "callback_url_not_allowed", "--callback-url, or allow it at the service (leadetl serve --callback-allow)"},
		{purchase.ErrRefused, 404, "", ""},
		{purchase.ErrNoCredits, 403, "", ""},
	} {
		err := fmt.Errorf("%w: %w", c.why, &resolution.CallError{Class: resolution.Denied, Status: c.status, Code: c.code})
		got := nextStep(err)
		if !errors.Is(got, c.why) || !strings.HasSuffix(got.Error(), c.says) || c.says == "" && got.Error() != err.Error() {
			t.Errorf("%d %s: %v, want %q", c.status, c.code, got, c.says)
		}
	}
}

// TestFailedRows: rows whose calls may have been billed say what comes next.
func TestFailedRows(t *testing.T) {
	const list = "list them with leadetl answers list --unknown, send them again with --retry-unknown"
	const later = " have not come yet: run the same command later, they are asked for again, free"
	for _, c := range []struct {
		reasons map[string]int64
		want    string
	}{
		{map[string]int64{"http_400": 1}, "1 row failed"},
		{map[string]int64{"unknown_call": 1}, "1 row failed because its call may have been billed; " + list},
		{map[string]int64{"unknown_call": 2}, "2 rows failed because their calls may have been billed; " + list},
		{map[string]int64{"unknown_call:a": 1100, "http_400": 100}, "1,200 rows failed; the calls of 1,100 of them may have been billed; " + list},
		{map[string]int64{"no_callback:a": 1, "no_callback:b": 1}, "2 rows failed; the answers to 2 rows" + later},
		{map[string]int64{"no_callback:a": 1, "unknown_call:a": 1}, "2 rows failed; the calls of 1 of them may have been billed; " + list + "; the answers to 1 row" + later},
	} {
		totals := sinks.Totals{Reasons: map[string]map[string]int64{"failed": c.reasons}}
		for _, n := range c.reasons {
			totals.Failed += n
		}
		if err := failedRows(totals); err == nil || err.Error() != c.want || cli.ExitCode(err) != cli.ExitRejects {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if err := failedRows(sinks.Totals{}); err != nil {
		t.Error(err)
	}
}

// TestRejectsAndRows: what share of the input may be rejected, and how few rows
// it may have.
func TestRejectsAndRows(t *testing.T) {
	const tooMany, tooFew, fine = "rejected, more than --max-rejects", "the input has ", ""
	for _, c := range []struct {
		name   string
		totals sinks.Totals
		flags  []string
		want   string
		warns  bool
	}{
		{"30%", sinks.Totals{Rows: 100, Rejected: 30}, nil, tooMany, true},
		{"just over 20%", sinks.Totals{Rows: 100, Rejected: 21}, nil, tooMany, true},
		{"20%", sinks.Totals{Rows: 100, Rejected: 20}, nil, fine, true},
		{"malformed lines are lines", sinks.Totals{Rows: 79, Malformed: 21}, nil, tooMany, true},
		{"both", sinks.Totals{Rows: 90, Rejected: 11, Malformed: 10}, nil, tooMany, true},
		{"5%", sinks.Totals{Rows: 100, Rejected: 5}, nil, fine, true},
		{"less than 5%", sinks.Totals{Rows: 1000, Rejected: 49}, nil, fine, false},
		{"none", sinks.Totals{Rows: 1000}, nil, fine, false},
		{"19 lines", sinks.Totals{Rows: 19, Rejected: 19}, nil, fine, true},
		{"19 rows and a malformed line", sinks.Totals{Rows: 19, Rejected: 19, Malformed: 1}, nil, tooMany, true},
		{"19 lines and a share", sinks.Totals{Rows: 19, Rejected: 1}, []string{"--max-rejects=1%"}, fine, true},
		{"19 lines and a count", sinks.Totals{Rows: 19, Rejected: 1}, []string{"--max-rejects=0"}, tooMany, true},
		{"a higher limit", sinks.Totals{Rows: 100, Rejected: 30}, []string{"--max-rejects=30%"}, fine, true},
		{"malformed lines, 2%", sinks.Totals{Rows: 98, Malformed: 2}, nil, fine, true},
		{"malformed lines, 2%, and a limit", sinks.Totals{Rows: 98, Malformed: 2}, []string{"--max-rejects=2%"}, fine, false},

		// Half of the searches are invalid; the others found many leads.
		{"searches", sinks.Totals{Rows: 50_020, Matched: 50_000, Searches: 40, Rejected: 20}, nil, tooMany, true},
		{"searches without leads", sinks.Totals{Rows: 40, NoMatch: 40, Searches: 40}, nil, fine, false},
		{"more leads than min_rows, and less searches", sinks.Totals{Rows: 500, Matched: 500, Searches: 1}, []string{"--set=min_rows=2"}, tooFew + "1 row, less", false},

		{"no rows", sinks.Totals{}, nil, tooFew + "no rows; ", false},
		{"no rows, as allowed", sinks.Totals{}, []string{"--set=min_rows=0"}, fine, false},
		{"malformed lines alone", sinks.Totals{Malformed: 3}, nil, tooFew + "no rows; ", true},
		{"a row", sinks.Totals{Rows: 1, Suppressed: 1}, nil, fine, false},
		{"too few rows", sinks.Totals{Rows: 999}, []string{"--set=min_rows=1000"}, tooFew + "999 rows, less", false},
		{"a sample", sinks.Totals{Rows: 100}, []string{"--set=min_rows=1000", "--sample=100"}, fine, false},
		{"a sample of malformed lines", sinks.Totals{Malformed: 5}, []string{"--sample=5"}, fine, true},
		{"a sample of nothing", sinks.Totals{}, []string{"--sample=5"}, tooFew + "no rows; ", false},
		{"rejects do not count", sinks.Totals{Rows: 100, Rejected: 100}, []string{"--fail-on=failed"}, fine, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f runFlags
			var command cobra.Command
			f.register(&command)
			if err := errors.Join(command.ParseFlags(c.flags), cliflag.ApplySettings("job", f.set, f.all, cliflag.Keys{})); err != nil {
				t.Fatal(err)
			}
			f.limited = command.Flags().Changed("max-rejects")
			err := f.judge(c.totals)
			if c.want == fine && err != nil || c.want != fine && (err == nil || !strings.Contains(err.Error(), c.want) || cli.ExitCode(err) != cli.ExitRejects) {
				t.Errorf("%v, want %q", err, c.want)
			}
			var log strings.Builder
			f.warnOfRejects(c.totals, slog.New(slog.NewTextHandler(&log, nil)))
			if warns := strings.Contains(log.String(), "level=WARN"); warns != c.warns {
				t.Errorf("the log is %q", &log)
			}
		})
	}
}
