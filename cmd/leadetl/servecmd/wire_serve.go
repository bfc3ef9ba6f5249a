package servecmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/resolution/service"
	"github.com/leadetl/leadetl/resolution/service/answering"
)

// engine returns the options of the engine.
func (f *serveFlags) engine(ctx context.Context, log *slog.Logger) (embedded.Options, error) {
	o := embedded.Options{IncludeProviders: f.includeProviders}
	var err error
	if f.suppress.Reading.Objects, err = f.s3.Open(ctx, log); err != nil {
		return o, cli.UsageError(err)
	}
	lists, err := f.suppress.Open(ctx, f.defaultRegion, f.networkHosts, log)
	o.Listed = wire.ListedIn(lists)
	return o, err
}

// costsOf parses prices, in credits.
func costsOf(costs answering.Costs) *cliflag.Assignments {
	return cliflag.NewAssignments("enrichment=3", slices.Sorted(maps.Keys(costs)), func(name, value string) error {
		credits, err := strconv.ParseInt(value, 10, 64)
		if err != nil || credits < 0 {
			return errors.New("not a number of credits")
		}
		costs[name] = credits
		return nil
	})
}

// retirementsOf parses the retirement of operations: the day of the
// announcement, the day of the retirement and, after another comma, a link to
// more information.
func retirementsOf(retirements map[resolution.Operation]service.Retirement) *cliflag.Assignments {
	return cliflag.NewAssignments("enrichment=2027-01-01,2027-07-01", slices.Sorted(slices.Values(resolution.OperationNames())), func(name, value string) error {
		dates := strings.SplitN(value, ",", 3)
		if len(dates) < 2 {
			return errors.New("not two dates")
		}
		var r service.Retirement
		for i, at := range []*time.Time{&r.Deprecated, &r.Sunset} {
			var err error
			if *at, err = time.Parse(time.DateOnly, dates[i]); err != nil {
				return fmt.Errorf("%q is no day that exists; write one as YYYY-MM-DD", dates[i])
			}
		}
		if len(dates) == 3 {
			r.Link = dates[2]
		}
		retirements[resolution.Operation(name)] = r
		return nil
	})
}
