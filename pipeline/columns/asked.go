package columns

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/sinks/schema"
)

// Asked is an answer of one of several resolvers about the key of a row, or its open call.
type Asked struct {
	About    string // the values of a person that were asked about, if not the key
	Row      int    // the first with the key
	Step     int    // of the resolver in the order
	Resolver string
	Outcome  outcome.Outcome
	Reason   string          // empty on a match
	Receipt  outcome.Receipt // its resolution is not kept
	Request  string          // the service's id of the call; empty if it sent none
	// Open says that there is no answer: the call is open, and costs MaxCredits at most.
	Open       bool
	MaxCredits int64
	PaidHere   bool // the run pays
}

// AskedColumns are the columns of a file of what several resolvers say. The first is left out if
// identifiers are dropped.
func AskedColumns() []schema.Column {
	return []schema.Column{
		schema.Text("key"), schema.Required(schema.Repeating("resolver")), schema.Required(schema.Repeating("outcome")), schema.Repeating("reason"), schema.Of("credits", arrow.PrimitiveTypes.Int32),
		schema.Of("max_credits_open", arrow.PrimitiveTypes.Int64), schema.Of("received_at", schema.Instant), schema.Text("request_id"), schema.Required(schema.Of("paid_here", arrow.FixedWidthTypes.Boolean)),
	}
}

// AppendAsked appends what resolvers say of rows to a record of AskedColumns. What they say of
// suppressed people has neither a key nor the id of a call.
func AppendAsked(to *array.RecordBuilder, b *Batch, all []Asked) {
	fields := to.Fields()
	withKey := len(fields) == len(AskedColumns())
	for _, a := range all {
		kept := b.Outcomes[a.Row] != outcome.Suppressed
		if withKey {
			appendText(fields[0], string(b.Keys.At(a.Row)), kept)
		}
		f := fields[len(fields)-8:]
		appendText(f[0], a.Resolver, true)
		appendText(f[1], a.Outcome.String(), true)
		appendText(f[2], a.Reason, a.Reason != "")
		appendKnown(f[3].(*array.Int32Builder), a.Receipt.Credits, a.Receipt.Priced && !a.Open)
		appendKnown(f[4].(*array.Int64Builder), a.MaxCredits, a.Open)
		appendKnown(f[5].(*array.TimestampBuilder), arrow.Timestamp(a.Receipt.ResolvedAt.UnixMicro()), a.Receipt.Answered())
		appendText(f[6], a.Request, kept && a.Request != "")
		f[7].(*array.BooleanBuilder).Append(a.PaidHere)
	}
}

func appendText(to array.Builder, text string, known bool) {
	appendKnown(to.(*array.StringBuilder), text, known)
}
