package runview

import (
	"fmt"
	"io"
	"strings"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/order"
)

// Orders is the table of orders that are compared.
type Orders struct {
	*order.Comparison
	Want []string // columns
}

// Print writes the table: the cheapest orders, and that of the job.
func (o Orders) Print(to io.Writer) error {
	complete := "keys with a match"
	if len(o.Want) > 0 {
		complete = "keys with " + strings.Join(o.Want, ", ")
	}
	t := Table{Title: "orders of the resolvers, by stored answers"}
	t.Count("keys", o.Keys, "")
	t.Count("asked of all", o.All, "")
	t.CountIfAny("of some", o.Some, "asked of some resolvers only")
	t.Text("complete", complete)
	if o.Greedy {
		t.Text("orders", "one, made greedily: all orders of more than six resolvers are too many")
	}
	t.CountIfAny("left out", int64(o.TooFew), "orders of which fewer than 200 keys have all answers")
	switch {
	case len(o.Orders) == 0:
		t.Text("to do", "run with --sample 2000 --ask-all and a budget: it asks all resolvers about the same keys")
	case o.Some*20 > o.All:
		t.Text("warning", "keys that only some were asked about are those that others had nothing for: their figures are one-sided. Give the --sample of a run with --ask-all")
	}
	t.Below = Grid{Heads: []string{"order", "keys", "complete", "credits", "credits a key", "note"}, Notes: 1}
	for _, of := range o.Orders {
		if !of.Cheapest && !of.Own {
			continue
		}
		note := ""
		if of.Own {
			note = "the job's"
		}
		if of.Own && !of.Cheapest {
			note += ", not the cheapest"
		}
		t.Below.Rows = append(t.Below.Rows, []string{
			strings.Join(of.Resolvers, ", "), figures.Grouped(of.Keys), figures.Share(of.Complete, of.Keys), figures.Grouped(of.Credits), fmt.Sprintf("%.2f", of.Price()), note,
		})
	}
	return t.Print(to)
}
