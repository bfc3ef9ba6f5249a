package runcmd

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
)

// nextStep adds a hint to the error that stopped a run, if a flag can help.
func nextStep(err error) error {
	var refused *resolution.CallError
	if !errors.Is(err, purchase.ErrRefused) || !errors.As(err, &refused) {
		return err
	}
	switch {
	case refused.Code == "callback_url_not_allowed":
		return fmt.Errorf("%w; the service refuses the callback address: use another --callback-url, or allow it at the service (leadetl serve --callback-allow)", err)
	case refused.Status == http.StatusUnauthorized, refused.Status == http.StatusForbidden:
		return fmt.Errorf("%w; check --api-key-file (or %s) and --header-name", err, APIKeyVariable)
	}
	return err
}

// failedRows returns an error about the rows that failed, with advice for those
// that may have been billed. It returns nil if none failed.
func failedRows(t sinks.Totals) error {
	unknown := t.Reasons["failed"]["unknown_call"]
	const next = "list them with leadetl answers list --unknown, send them again with --retry-unknown"
	switch rows := figures.Plural(t.Failed, "row"); {
	case t.Failed == 0:
		return nil
	case unknown == 0:
		return cli.WithCode(cli.ExitRejects, fmt.Errorf("%s failed", rows))
	case unknown == t.Failed:
		return cli.WithCode(cli.ExitRejects, fmt.Errorf("%s failed because their calls may have been billed; %s", rows, next))
	default:
		return cli.WithCode(cli.ExitRejects, fmt.Errorf("%s failed; the calls of %s of them may have been billed; %s", rows, figures.Grouped(unknown), next))
	}
}
