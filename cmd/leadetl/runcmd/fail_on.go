package runcmd

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
)

// failOn selects the problems of a finished dataset that make a run exit with
// cli.ExitRejects.
type failOn struct{ failed, rejects bool }

// The values of --fail-on.
const (
	failOnNever   = "never"
	failOnFailed  = "failed"
	failOnRejects = "rejects"
)

func (f *failOn) String() string {
	var words []string
	if f.failed {
		words = append(words, failOnFailed)
	}
	if f.rejects {
		words = append(words, failOnRejects)
	}
	if words == nil {
		return failOnNever
	}
	return strings.Join(words, ",")
}

// Type returns the placeholder of the value in help texts.
func (f *failOn) Type() string { return "problems" }

// Set parses a list of values.
func (f *failOn) Set(text string) error {
	var set failOn
	for word := range strings.SplitSeq(text, ",") {
		switch word = strings.TrimSpace(word); {
		case word == failOnFailed:
			set.failed = true
		case word == failOnRejects:
			set.rejects = true
		case word != failOnNever || text != failOnNever:
			return errors.New("write never, failed, rejects, or failed,rejects")
		}
	}
	*f = set
	return nil
}

// demands are the settings of a dataset, and what it must have once it is finished.
type demands struct {
	dataset    JobFlags
	maxRejects cliflag.Limit
	limited    bool // maxRejects is given
	minRows    int64
	failOn     failOn
}

// judge returns an error if a finished dataset has problems that --fail-on
// names. Too few rows count as rejects.
func (f *demands) judge(t sinks.Totals) error {
	if err := failedRows(t); err != nil && f.failOn.failed {
		return err
	}
	return f.checkRejects(t, "were")
}

// fewLines is how many lines an input needs before a share of them can be more
// than --max-rejects: a few lines of a small list say nothing about the list.
const fewLines = 20

// checkRejects returns an error for an input with too many rejects or too few
// rows, if --fail-on names rejects. were is the form of the verb.
func (f *demands) checkRejects(t sinks.Totals, were string) error {
	if !f.failOn.rejects {
		return nil
	}
	rejects, lines := t.RejectShare()
	if f.maxRejects.Exceeded(rejects, lines) && (lines >= fewLines || !f.maxRejects.IsShare()) {
		return cli.WithCode(cli.ExitRejects, fmt.Errorf("%d of %d lines %s rejected, more than --max-rejects %s", rejects, lines, were, f.maxRejects.String()))
	}
	switch rows := t.InputRows() - t.NotSelected; {
	case f.dataset.job.Sample > 0 && lines > 0: // it does not say how many rows the input has
		return nil
	case rows >= f.minRows:
		return nil
	case rows == 0 && t.NotSelected > 0:
		return cli.WithCode(cli.ExitRejects, errors.New("--where selects no row: values are compared exactly, with case and spaces; if it may select none, use --set min_rows=0"))
	case rows == 0:
		return cli.WithCode(cli.ExitRejects, errors.New("the input has no rows; if it may have none, use --set min_rows=0"))
	default:
		return cli.WithCode(cli.ExitRejects, fmt.Errorf("the input has %s, less than min_rows %d", figures.Plural(rows, "row"), f.minRows))
	}
}

// warnOfRejects logs how many lines of an input are rejected, and why, if they
// are many.
func (f *demands) warnOfRejects(t sinks.Totals, log *slog.Logger) {
	switch lines := t.InputLines(); {
	case t.ManyRejects():
		rejects, of := t.RejectShare()
		what := "many lines are rejected"
		if f.dataset.multiple == multipleReject && t.Reasons["rejected"]["multiple"] > 0 {
			what += "; --multiple each or first reads cells with several identifiers"
		}
		log.Warn(what, "rejected", rejects, "lines", of, "share", figures.Share(rejects, of), "reasons", figures.Counts(t.RejectReasons()))
	case !f.limited && t.Malformed*100 > lines:
		log.Warn("many lines are malformed; see _rejects, or make them an error with --max-rejects", "malformed", t.Malformed, "lines", lines)
	}
}

// warnOfPassed says which resolvers rows went on without.
func warnOfPassed(t sinks.Totals, log *slog.Logger) {
	for _, name := range slices.Sorted(maps.Keys(t.Resolvers)) {
		if n := t.Resolvers[name].Passed; n > 0 {
			log.Warn("rows went on without a resolver; the same command asks it again", "resolver", name, "rows", n)
		}
	}
}

// isResumable reports whether the same command resumes a run that stopped with
// err, after the cause is removed.
func isResumable(err error) bool {
	code := cli.ExitCode(err)
	return code == cli.ExitBudget || code == cli.ExitTryAgain || errors.Is(err, purchase.ErrRefused)
}

// nextStep adds a hint to the error that stopped a run, if a flag can help.
func nextStep(err error) error {
	var refused *resolution.CallError
	var of *order.StepError
	if !errors.Is(err, purchase.ErrRefused) || !errors.As(err, &refused) {
		return err
	}
	switch {
	case refused.Code == "callback_url_not_allowed":
		return fmt.Errorf("%w; the service refuses the callback address: use another --callback-url, or allow it at the service (leadetl serve --callback-allow)", err)
	case refused.Status != http.StatusUnauthorized && refused.Status != http.StatusForbidden:
	case errors.As(err, &of):
		return fmt.Errorf("%w; check its key_file (or %s)", err, keyVariable(of.Resolver))
	default:
		return fmt.Errorf("%w; check --api-key-file (or %s) and header_name", err, APIKeyVariable)
	}
	return err
}

// failedRows returns an error about the rows that failed, with advice for those
// that may have been billed, or whose answers come later. It returns nil if none failed.
func failedRows(t sinks.Totals) error {
	var unknown, late int64
	for reason, n := range t.Reasons["failed"] {
		switch reason, _, _ := strings.Cut(reason, ":"); reason {
		case outcome.ReasonUnknownCall:
			unknown += n
		case outcome.ReasonNoCallback:
			late += n
		}
	}
	text := figures.Plural(t.Failed, "row") + " failed"
	const next = "; list them with leadetl answers list --unknown, send them again with --retry-unknown"
	switch {
	case t.Failed == 0:
		return nil
	case unknown == 0:
	case unknown == t.Failed:
		calls := "their calls"
		if unknown == 1 {
			calls = "its call"
		}
		text += " because " + calls + " may have been billed" + next
	default:
		text += fmt.Sprintf("; the calls of %s of them may have been billed%s", figures.Grouped(unknown), next)
	}
	if late > 0 {
		text += fmt.Sprintf("; the answers to %s have not come yet: run the same command later, they are asked for again, free", figures.Plural(late, "row"))
	}
	return cli.WithCode(cli.ExitRejects, errors.New(text))
}
