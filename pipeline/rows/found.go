package rows

import (
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
)

// searchWriter writes the rows of one search.
type searchWriter struct {
	turn  *searchTurn
	found *foundRows
	key   string
	seen  map[string]struct{} // ids of its leads
	rows  int
	first outcome.Receipt // of its first page
}

func (w *searchWriter) add(r foundRow) error {
	w.rows++
	r.key = w.key
	return w.found.add(w.turn.in, w.turn.row, r)
}

// page adds the leads of a page, or a row with its outcome.
func (w *searchWriter) page(p foundPage) error {
	if w.rows == 0 {
		w.first = p.answer.Receipt
	}
	if p.answer.Outcome != outcome.Matched {
		return w.add(foundRow{answer: p.answer, find: columns.Find{Page: int32(p.number)}})
	}
	if p.count != nil {
		return w.add(foundRow{answer: p.answer, count: p.count})
	}
	leads, err := p.load()
	if err != nil {
		return err
	}
	rows := newLeads(leads, w.seen)
	for i, row := range rows {
		r := foundRow{answer: p.answer, lead: resolution.AnswerRow{Of: leads, I: row}, find: columns.Find{Page: int32(p.number)}}
		r.answer.Receipt = p.answer.Receipt.Share(i, len(rows))
		if err := w.add(r); err != nil {
			return err
		}
	}
	return nil
}

// end adds a row for a search that found no leads.
func (w *searchWriter) end() error {
	if w.rows > 0 {
		return nil
	}
	return w.add(foundRow{answer: purchase.Result{Outcome: outcome.NoMatch, Reason: outcome.ReasonNotFound, Receipt: w.first}})
}

// foundRowsAtOnce is how many rows are collected before they are written.
const foundRowsAtOnce = 1024

// foundRows collects the output rows of searches: one row for each lead, with
// the kept columns of the input row.
type foundRows struct {
	write   func(*columns.Batch) error
	layout  *columns.Layout
	remote  bool
	count   bool
	batch   columns.Batch
	answers resolution.Answers
	kept    []*array.StringBuilder
}

func newFoundRows(write func(*columns.Batch) error, layout *columns.Layout, kept int, op resolution.Operation, remote bool) *foundRows {
	f := &foundRows{write: write, layout: layout, remote: remote, count: op.Gives() == resolution.GivesCount, answers: *resolution.NewAnswers()}
	for range kept {
		f.kept = append(f.kept, array.NewStringBuilder(memory.DefaultAllocator))
	}
	f.batch.Reset(0)
	return f
}

// foundRow is an output row.
type foundRow struct {
	answer purchase.Result
	lead   resolution.AnswerRow
	key    string
	find   columns.Find
	count  *resolution.SearchCount
}

// add adds an output row for a row of in.
func (f *foundRows) add(in *sources.Batch, row int, r foundRow) error {
	b := &f.batch
	if b.Len() >= foundRowsAtOnce || b.Len() > 0 && b.Source != in.Source {
		if err := f.flush(); err != nil {
			return err
		}
	}
	b.Source = in.Source
	b.Rows = append(b.Rows, in.Rows[row])
	for i, column := range f.kept {
		if in.Columns[i].IsNull(row) {
			column.AppendNull()
		} else {
			column.Append(in.Columns[i].Value(row))
		}
	}
	b.Outcomes = append(b.Outcomes, r.answer.Outcome)
	b.Reasons = append(b.Reasons, r.answer.Reason)
	b.Keys.Data = append(b.Keys.Data, r.key...)
	b.Keys.End()
	if f.remote {
		b.Receipts = append(b.Receipts, r.answer.Receipt)
	}
	if f.count {
		b.Counts = append(b.Counts, r.count)
		return nil
	}
	if f.answers.Len() == 0 {
		f.answers.Companies.Table = f.layout.Companies()
	}
	f.answers.AddRow(r.lead)
	r.find.SearchRow = in.Rows[row]
	b.Finds = append(b.Finds, r.find)
	return nil
}

// flush writes the collected rows.
func (f *foundRows) flush() error {
	if f.batch.Len() == 0 {
		return nil
	}
	f.batch.Kept = f.batch.Kept[:0]
	for _, column := range f.kept {
		kept := column.NewStringArray()
		defer kept.Release()
		f.batch.Kept = append(f.batch.Kept, kept)
	}
	if !f.count {
		f.layout.CleanPhones(&f.answers)
		f.batch.Answers = &f.answers
	}
	err := f.write(&f.batch)
	f.answers.Reset()
	f.batch.Reset(0)
	f.batch.Rows = f.batch.Rows[:0]
	return err
}

// newLeads returns the rows of a page whose leads were not on an earlier page.
func newLeads(leads *resolution.Answers, seen map[string]struct{}) []int {
	rows := make([]int, 0, leads.Len())
	for i := range leads.Len() {
		id := leads.Texts[resolution.FieldLeadID].At(i)
		if _, twice := seen[string(id)]; twice {
			continue
		}
		if rows = append(rows, i); len(id) > 0 { // else the service sends no ids
			seen[string(id)] = struct{}{}
		}
	}
	return rows
}
