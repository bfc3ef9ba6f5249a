package runcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/provider"
)

// checkAnswers checks the source of answers, or each of several. clock is the time of one of them.
func (d *checkup) checkAnswers(ctx context.Context, operation string, j job.Job, known bool) (clock time.Time, of string) {
	f := d.flags
	switch {
	case f.isRemote() && f.remote.offline:
		d.skip("service", "is not asked with --offline")
	case f.isRemote():
		clock, of = d.checkResolvers(ctx, operation, j)
		d.checkPlan(ctx, operation)
	case known && (f.directory != "" || len(needs(j.Operation)) > 0):
		d.checkDirectory("reference data", f.directory, j)
	}
	return clock, of
}

func (d *checkup) checkDirectory(what, folder string, j job.Job) {
	o := opening{runFlags: d.flags, run: &job.Run{Job: j, Log: slog.New(slog.DiscardHandler)}}
	err := o.openEngine(&order.Step{}, folder)
	d.report(what, folder, cli.UsageError(errors.Join(err, o.Close())))
}

// checkResolvers checks each resolver of an order.
func (d *checkup) checkResolvers(ctx context.Context, operation string, j job.Job) (clock time.Time, of string) {
	f := d.flags
	entries, err := f.order.entries(ctx)
	if err != nil {
		d.failed("providers", cli.UsageError(err))
		return clock, ""
	}
	for _, s := range f.items {
		at := time.Time{}
		switch {
		case s.directory != "" && operation == "":
			d.skip(s.name, "no operation is named")
		case s.directory != "":
			d.checkDirectory(s.name, s.directory, j)
		case s.address != "":
			at = d.checkService(ctx, f.service(s))
		default:
			at = d.checkProvider(ctx, s, entries, j.Operation)
		}
		if clock.IsZero() && !at.IsZero() {
			clock, of = at, s.name
		}
	}
	if f.isService() {
		of = "the service"
	}
	return clock, of
}

// checkProvider checks the entry of a provider, its key as far as that can be without a question,
// and whether its address answers.
func (d *checkup) checkProvider(ctx context.Context, s *resolverSettings, entries provider.Entries, op resolution.Operation) (clock time.Time) {
	e, known := entries[s.name]
	if op != "" || !known {
		var err error
		if e, _, err = s.entry(entries, op); err != nil {
			d.failed(s.name, cli.UsageError(err))
			return clock
		}
	}
	of, what := &d.flags.remote, "API key of "+s.name
	c, err := s.client(ctx, e, "", 1, of)
	if err != nil {
		d.failed(what, err)
		return clock
	}
	defer c.Close()
	timed, done := context.WithTimeout(ctx, of.timeout)
	defer done()
	clock, err = c.Reach(timed)
	if err != nil {
		err = cli.WithCode(cli.ExitTryAgain, fmt.Errorf("%s cannot be reached: %w; check base in its entry, or try again later", e.Base(), err))
	}
	if counts, asks := e.Balance(); d.report(s.name, e.Base(), err) && asks {
		d.checkBalance(timed, c, s, counts)
	} else if e.NeedsKey() {
		d.skip(what, "given; not checked, because each question may cost something")
	}
	return clock
}

// checkBalance asks a provider for what is left, and so whether it accepts the key.
func (d *checkup) checkBalance(ctx context.Context, c *provider.Client, s *resolverSettings, counts string) {
	left, err := c.Balance(ctx)
	what, credits := "API key of "+s.name, "credits of "+s.name
	switch most := s.maxCredits.Or(-1); {
	case errors.Is(err, resolution.ErrDenied):
		d.failed(what, cli.UsageError(fmt.Errorf("%w; the provider may refuse it: check key_file (or %s)", err, keyVariable(s.name))))
		return
	case err != nil:
		d.skip(credits, err.Error())
	case counts != "":
		d.ok(credits, figures.Grouped(left)+" "+counts+", not compared: credits are counted otherwise")
	case left == 0:
		d.failed(credits, fmt.Errorf("%w: buy some", purchase.ErrNoCredits))
	case most > left:
		d.ok(credits, fmt.Sprintf("%s, less than max_credits %s", figures.Grouped(left), figures.Grouped(most)))
	default:
		d.ok(credits, figures.Grouped(left))
	}
	if err == nil {
		d.ok(what, "accepted")
	}
}

// checkService asks a service for the balance of the account.
func (d *checkup) checkService(ctx context.Context, f *service) (clock time.Time) {
	name, of := "service", ""
	setting, budget := "--resolver", "--max-credits"
	limit := d.flags.remote.maxCredits // that of the job
	if !d.flags.isService() {
		name, limit = f.storedName(), f.maxCredits
		of, setting, budget = " of "+name, "its address", "max_credits"
	}
	account, err := f.account(ctx)
	if key, missing := errors.AsType[errNoKey](err); missing {
		d.skip(name, "is not asked without an API key")
		d.failed("API key"+of, key.error)
		return clock
	}
	call, refused := errors.AsType[*resolution.CallError](err)
	switch {
	case refused && call.Status == http.StatusUnauthorized:
		d.ok(name, f.address)
		d.failed("API key"+of, cli.UsageError(fmt.Errorf("the service refuses it; check %s (or %s)%s", f.settingOfKey(), f.ofKey(), map[bool]string{true: " and header_name"}[of == ""])))
		return account.Clock
	case refused && call.Class == resolution.NoCredits:
		account.Told = true
	case refused && call.Class == resolution.Unavailable:
		d.failed(name, cli.WithCode(cli.ExitTryAgain, fmt.Errorf("%s: %s; check %s, or try again later", f.address, call.Reason(), setting)))
		return account.Clock
	case refused:
		d.failed(name, cli.UsageError(fmt.Errorf("%s: %s; check %s", f.address, call.Reason(), setting)))
		return account.Clock
	case err != nil:
		d.failed(name, err)
		return account.Clock
	case account.Foreign:
		d.failed(name, cli.UsageError(fmt.Errorf("%s answers, but does not look like a Lead Resolution Service; check %s", f.address, setting)))
		return account.Clock
	}
	d.ok(name, f.address)
	if !account.Told {
		d.skip("API key"+of, fmt.Sprintf("not checked: the service answers %d to /account/balance", account.Status))
		return account.Clock
	}
	d.ok("API key"+of, "accepted")
	switch most := limit.Or(-1); {
	case account.Credits <= 0:
		d.failed("credits"+of, fmt.Errorf("%w: buy some", purchase.ErrNoCredits))
	case most > account.Credits:
		d.ok("credits"+of, fmt.Sprintf("%s, less than %s %s", figures.Grouped(account.Credits), budget, figures.Grouped(most)))
	default:
		d.ok("credits"+of, figures.Grouped(account.Credits))
	}
	if of == "" {
		d.account = &account.Credits
	}
	return account.Clock
}
