package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/resolution/service"
	"github.com/leadetl/leadetl/resolution/service/limit"
)

// engine is how the engine answers.
func (f *serveFlags) engine(ctx context.Context, log *slog.Logger) (embedded.Options, error) {
	o := embedded.Options{IncludeProviders: f.includeProviders}
	lists, err := f.suppress.open(ctx, f.defaultRegion, f.networkHosts, log)
	o.Listed = listedIn(lists)
	return o, err
}

// rate is a flag's rate, such as 600/min.
type rate struct{ *limit.Rate }

func (r rate) Type() string { return "rate" }

func (r rate) String() string {
	if r.Rate == nil { // the zero value, by which defaults are told
		return ""
	}
	return r.Rate.String()
}

// Set leaves the burst as it is where text names none.
func (r rate) Set(text string) error {
	parsed, err := limit.ParseRate(text)
	if err != nil {
		return err
	}
	if parsed != limit.None && !strings.Contains(text, "burst") {
		parsed.Burst = min(r.Rate.Burst, parsed.Burst)
		if r.Rate.Burst == 0 { // there was no limit
			parsed.Burst = defaultBurst
		}
	}
	*r.Rate = parsed
	return nil
}

// defaultBurst is the burst of a rate that replaces no limit.
const defaultBurst = 20

// prefixes is a flag's list of networks; an address alone is one of its own.
type prefixes []netip.Prefix

func (p *prefixes) Type() string       { return "network" }
func (p *prefixes) String() string     { return strings.Join(p.GetSlice(), ",") }
func (p *prefixes) Set(s string) error { return p.Append(s) }

// Append, Replace and GetSlice are pflag.SliceValue.
func (p *prefixes) Append(s string) error {
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		addr, notAddr := netip.ParseAddr(s)
		if notAddr != nil || addr.Zone() != "" {
			return errors.New("write a network such as 10.1.0.0/16 or fd00::/8, or an address")
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	*p = append(*p, prefix.Masked())
	return nil
}

func (p *prefixes) Replace(all []string) error {
	*p = nil
	for _, s := range all {
		if err := p.Append(s); err != nil {
			return err
		}
	}
	return nil
}

func (p *prefixes) GetSlice() []string {
	all := make([]string, len(*p))
	for i, prefix := range *p {
		all[i] = prefix.String()
	}
	return all
}

// assignments is a flag's list of name=value, of one thing or another that has
// a default.
type assignments struct {
	form  string // how one is written
	names []string
	set   func(name, value string) error
	given []string
}

func (a *assignments) Type() string       { return "name=value" }
func (a *assignments) String() string     { return strings.Join(a.given, ",") }
func (a *assignments) Set(s string) error { return a.Append(s) }

// Append, Replace and GetSlice are pflag.SliceValue.
func (a *assignments) Append(s string) error {
	name, value, _ := strings.Cut(s, "=")
	name = strings.ReplaceAll(name, "-", "_")
	if !slices.Contains(a.names, name) {
		return fmt.Errorf("unknown name %q%s; write it as in %s", name, guess(name, a.names), a.form)
	}
	if err := a.set(name, value); err != nil {
		return fmt.Errorf("%w; write it as in %s", err, a.form)
	}
	a.given = append(a.given, s)
	return nil
}

func (a *assignments) Replace(all []string) error {
	for _, s := range all {
		if err := a.Append(s); err != nil {
			return err
		}
	}
	return nil
}

func (a *assignments) GetSlice() []string { return a.given }

// usage is what the flag's help says about it.
func (a *assignments) usage(what string) string {
	return fmt.Sprintf("%s, such as %s; may be given again; names: %s", what, a.form, strings.Join(a.names, ", "))
}

// costsOf sets prices, in credits.
func costsOf(costs service.Costs) *assignments {
	return &assignments{form: "enrichment=3", names: slices.Sorted(maps.Keys(costs)), set: func(name, value string) error {
		credits, err := strconv.ParseInt(value, 10, 64)
		if err != nil || credits < 0 {
			return errors.New("not a number of credits")
		}
		costs[name] = credits
		return nil
	}}
}

// numbersOf sets numbers that have to be positive.
func numbersOf(form string, numbers map[string]*int) *assignments {
	return &assignments{form: form, names: slices.Sorted(maps.Keys(numbers)), set: func(name, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return errors.New("not a whole number of at least 1")
		}
		*numbers[name] = n
		return nil
	}}
}

// timesOf sets durations.
func timesOf(form string, times map[string]*time.Duration) *assignments {
	return &assignments{form: form, names: slices.Sorted(maps.Keys(times)), set: func(name, value string) error {
		var a age
		if err := a.Set(value); err != nil || a == 0 {
			return errors.New("not a time")
		}
		*times[name] = time.Duration(a)
		return nil
	}}
}

// retirementsOf sets the end of operations: when it was announced, when it
// is, and, after another comma, where there is more to read.
func retirementsOf(retirements map[resolution.Operation]service.Retirement) *assignments {
	a := &assignments{form: "enrichment=2027-01-01,2027-07-01"}
	for operation := range service.DefaultOptions().Costs {
		if o := resolution.Operation(operation); o.Identifier() != "" || o == resolution.KeywordToLead || o == resolution.KeywordToLeadCount {
			a.names = append(a.names, operation)
		}
	}
	slices.Sort(a.names)
	a.set = func(name, value string) error {
		dates := strings.SplitN(value, ",", 3)
		if len(dates) < 2 {
			return errors.New("not two dates")
		}
		var r service.Retirement
		for i, at := range []*time.Time{&r.Deprecated, &r.Sunset} {
			var err error
			if *at, err = time.Parse(time.DateOnly, dates[i]); err != nil {
				return fmt.Errorf("%q is no date", dates[i])
			}
		}
		if len(dates) == 3 {
			r.Link = dates[2]
		}
		retirements[resolution.Operation(name)] = r
		return nil
	}
	return a
}
