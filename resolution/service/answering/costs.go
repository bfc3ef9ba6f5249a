package answering

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/resolution"
)

// Costs are prices in credits, by name: of an operation, or of a part of one.
type Costs map[string]int64

// The prices of parts of operations.
const (
	// DeanonymizationCompany is a deanonymization that found the company alone.
	DeanonymizationCompany = "deanonymization_company"
	// KeywordDeanonymize and KeywordSuperEnrichment are added to the price of
	// a delivered lead (keyword_to_lead) that asks for them.
	KeywordDeanonymize     = "keyword_to_lead_deanonymize"
	KeywordSuperEnrichment = "keyword_to_lead_super_enrichment"
)

// maxCost keeps every product of prices far from overflowing.
const maxCost = 1_000_000

// DefaultCosts returns the default prices.
func DefaultCosts() Costs {
	costs := Costs{DeanonymizationCompany: 1, KeywordDeanonymize: 1, KeywordSuperEnrichment: 1}
	for _, f := range resolution.Operations {
		costs[string(f.Name)] = f.Credits
	}
	return costs
}

// Validate returns all errors in c.
func (c Costs) Validate() (errs []error) {
	known := DefaultCosts()
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if _, ok := known[name]; !ok {
			errs = append(errs, fmt.Errorf("cost of %q: there is no such price; prices are %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
		} else if c[name] < 0 || c[name] > maxCost {
			errs = append(errs, fmt.Errorf("cost of %s: not from 0 to %d", name, maxCost))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if _, ok := c[name]; !ok {
			errs = append(errs, fmt.Errorf("cost of %s: missing", name))
		}
	}
	if c[DeanonymizationCompany] > c[string(resolution.Deanonymization)] {
		errs = append(errs, fmt.Errorf("cost of %s: more than deanonymization", DeanonymizationCompany))
	}
	return errs
}

// of returns the full price of an operation.
func (c Costs) of(o resolution.Operation) int64 { return c[string(o)] }

// found returns the price of an answer.
func (c Costs) found(o resolution.Operation, a resolution.Answer) int64 {
	switch {
	case !a.Matched():
		return 0
	case o.Gives() == resolution.GivesVisitor && a.Lead.MatchLevel != "person":
		return c[DeanonymizationCompany]
	}
	return c.of(o)
}

// lead returns the price of one delivered lead of a keyword search.
func (c Costs) lead(p resolution.SearchPage) int64 {
	price := c.of(resolution.KeywordToLead)
	if p.Deanonymize {
		price += c[KeywordDeanonymize]
	}
	if p.SuperEnrichment {
		price += c[KeywordSuperEnrichment]
	}
	return price
}
