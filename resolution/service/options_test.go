package service

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/answering"
)

func TestValidate(t *testing.T) {
	good := newFixture(t).options
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.State = nil }, "no state"},
		{func(o *Options) { o.Resolver = nil }, "no resolver"},
		{func(o *Options) { o.Searcher = nil }, "no searcher"},
		{func(o *Options) { o.Callbacks = nil }, "no callback policy"},
		{func(o *Options) { o.Requests.Keywords = 0 }, "keywords"},
		{func(o *Options) { o.Limits.Single.Events = -1 }, "limit of single-record operations"},
		{func(o *Options) { o.Limits.ActiveJobs = -1 }, "unfinished jobs"},
		{func(o *Options) { o.Costs = changed(o.Costs, answering.Costs{"enrichments": 1}) }, `"enrichments": there is no such price`},
		{func(o *Options) { o.Costs = changed(o.Costs, answering.Costs{"enrichment": -1}) }, "enrichment: not from 0"},
		{func(o *Options) { o.Limits.KeptBytes = -1 }, "bytes kept"},
		{func(o *Options) { o.Costs = answering.Costs{} }, "enrichment: missing"},
		{func(o *Options) { o.Costs = changed(o.Costs, answering.Costs{answering.DeanonymizationCompany: 4}) }, "more than deanonymization"},
		{func(o *Options) { o.JobWorkers = 0 }, "job workers"},
		{func(o *Options) { o.Lease = 0 }, "lease"},
		{func(o *Options) { o.MaxBody = 0 }, "largest body"},
		{func(o *Options) { o.Connections.IdleTimeout = 0 }, "every time has to be positive"},
		{func(o *Options) { o.Connections.WriteTimeout = 45 * time.Second }, "time to write: 45s is not more than the 45s"},
		{func(o *Options) { o.ResolveTimeout = time.Minute }, "time to write"},
		{func(o *Options) { o.Connections.MaxHeaderBytes = 1 }, "largest header"},
		{func(o *Options) {
			o.Retirements = map[resolution.Operation]Retirement{resolution.Enrichment: {Deprecated: time.Unix(1, 0), Sunset: time.Unix(2, 0)}}
		}, "less than 180 days"},
		{func(o *Options) { o.Retirements = linked("leads.example/end") }, "not an absolute URI"},
		{func(o *Options) { o.Retirements = linked("/end") }, "not an absolute URI"},
		{func(o *Options) { o.Retirements = linked("https://leads.example/end>; rel=\"next\"") }, "not an absolute URI"},
		{func(o *Options) { o.Retirements = linked("https://leads.example/an end") }, "not an absolute URI"},
		{func(o *Options) { o.Retirements = map[resolution.Operation]Retirement{"x": {}} }, "no such operation"},
	} {
		o := good
		c.change(&o)
		err := o.Validate()
		if !errors.Is(err, resolution.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	err := Options{}.Validate()
	for _, want := range []string{"no state", "no resolver", "job workers"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: not %s", err, want)
		}
	}
}

// linked is a retirement with a link.
func linked(link string) map[resolution.Operation]Retirement {
	return map[resolution.Operation]Retirement{resolution.Enrichment: {Deprecated: time.Unix(1, 0), Sunset: time.Unix(1, 0).Add(noticePeriod), Link: link}}
}

// changed returns the prices of c with some of them changed.
func changed(c, changes answering.Costs) answering.Costs {
	all := maps.Clone(c)
	maps.Copy(all, changes)
	return all
}
