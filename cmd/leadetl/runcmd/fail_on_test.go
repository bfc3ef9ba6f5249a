package runcmd

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
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
		{purchase.ErrRefused, 401, "", "; check --api-key-file (or LEADETL_API_KEY) and --header-name"},
		{purchase.ErrRefused, 403, "forbidden", "; check --api-key-file (or LEADETL_API_KEY) and --header-name"},
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
	for _, c := range []struct {
		failed, unknown int64
		want            string
	}{
		{1, 0, "1 row failed"},
		{1, 1, "1 row failed because their calls may have been billed; list them with leadetl answers list --unknown, send them again with --retry-unknown"},
		{1200, 1100, "1,200 rows failed; the calls of 1,100 of them may have been billed; list them with leadetl answers list --unknown, send them again with --retry-unknown"},
	} {
		err := failedRows(sinks.Totals{Failed: c.failed, Reasons: map[string]map[string]int64{"failed": {"unknown_call": c.unknown}}})
		if err == nil || err.Error() != c.want || cli.ExitCode(err) != cli.ExitRejects {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if err := failedRows(sinks.Totals{}); err != nil {
		t.Error(err)
	}
}
