package service

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/answering"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/openapi"
)

func TestDocumentOfDefaults(t *testing.T) {
	got, want := DefaultOptions().described(), openapi.Defaults()
	got.Retired = nil
	got.Prices = map[string]int64(got.Prices)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the defaults are %+v, the document has %+v", got, want)
	}
}

// The document follows the settings of its service.
func TestDocumentFollowsSettings(t *testing.T) {
	f := newFixture(t, func(o *Options) {
		o.Costs[string(resolution.Enrichment)] = 1234
		o.Costs[answering.KeywordDeanonymize] = 7
		o.Limits.Single = limit.Rate{Events: 77, Per: time.Second, Burst: 9}
		o.Limits.ActiveJobs, o.Limits.KeptBytes, o.MaxBody = 0, 0, 3<<10
		o.Requests.Keywords, o.Requests.DefaultPageLimit, o.Requests.DateSpan = 12, 34, 56
		o.Retirements = map[resolution.Operation]Retirement{
			resolution.NetworkToPhone: {Deprecated: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Sunset: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)},
			resolution.KeywordToLead:  {Deprecated: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Sunset: time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)},
		}
	})
	a := f.do(http.MethodGet, f.public+"/openapi.json", "")
	search := []string{"components", "schemas", "KeywordRequest", "properties"}
	for _, c := range []struct {
		path []string
		want any
	}{
		{[]string{"paths", "/lead/resolution/network_to_phone", "post", "deprecated"}, true},
		{[]string{"paths", "/resolve/keyword_to_lead", "post", "deprecated"}, true},
		{[]string{"paths", "/resolve/keyword_to_lead/result", "post", "deprecated"}, true},
		{[]string{"paths", "/resolve/keyword_to_lead/count", "post", "deprecated"}, nil},
		{[]string{"paths", "/lead/enrichment", "post", "deprecated"}, nil},
		{[]string{"paths", "/lead/enrichment", "post", "x-status"}, "released"},
		{[]string{"paths", "/resolve/keyword_to_lead", "post", "x-status"}, "deprecated"},
		{[]string{"paths", "/account/usage", "get", "x-status"}, "released"},
		{append(search, "keywords", "maxItems"), 12.0},
		{append(search, "limit", "x-default"), 34.0},
	} {
		if got := a.at(c.path...); got != c.want {
			t.Errorf("%v is %v, want %v", c.path, got, c.want)
		}
	}
	for _, c := range []struct {
		path []string
		want string
	}{
		{[]string{"paths", "/lead/enrichment", "post", "description"}, "Costs 1,234 credits."},
		{[]string{"paths", "/lead/resolution/network_to_phone", "post", "description"}, "It ends on 2027-01-01"},
		{[]string{"paths", "/resolve/keyword_to_lead", "post", "description"}, "7 more with `deanonymize`"},
		{append(search, "date_end", "description"), "at most 56 days"},
		{[]string{"info", "description"}, "| single questions | 77 a second, 9 at once |"},
		{[]string{"info", "description"}, "and any number unfinished"},
		{[]string{"info", "description"}, "A body may have 3 KiB."},
	} {
		if got := a.text(c.path...); !strings.Contains(got, c.want) {
			t.Errorf("%v does not say %q: %s", c.path, c.want, got)
		}
	}
	if page := f.do(http.MethodGet, f.public+"/docs/enrichment", ""); !strings.Contains(string(page.raw), "Costs 1,234 credits.") || strings.Contains(string(page.raw), "@{") {
		t.Error("the page does not follow the settings")
	}
}
