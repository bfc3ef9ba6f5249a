package columns_test

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
)

// What the builders make of a service's answers and of keyword searches comes
// back from a part of a dataset.
func TestRoundTrip(t *testing.T) {
	const n = 50
	for _, c := range []struct {
		op   resolution.Operation
		fill func(b *columns.Batch, i int)
	}{
		{resolution.KeywordToLead, func(b *columns.Batch, i int) {
			switch i % 3 {
			case 0:
				b.Answers.AddFound(&resolution.FoundLead{LeadID: fmt.Sprint("lead_", i), LeadType: "b2c", MatchedKeywords: []string{"crm", "sales software"}, SearchedAt: time.Date(2026, 11, 1+i%20, 0, 0, 0, 0, time.UTC), Lead: *fullLead})
			case 1:
				b.Answers.AddFound(&resolution.FoundLead{LeadID: "lead_x", MatchedKeywords: []string{"crm"}})
			case 2:
				b.Answers.AddMiss("")
			}
			b.Finds = append(b.Finds, []columns.Find{{SearchRow: 1, Page: int32(i + 1)}, {SearchRow: 2, Page: 1}, {SearchRow: 3}}[i%3])
		}},
		{resolution.KeywordToLeadCount, func(b *columns.Batch, i int) {
			b.Counts = append(b.Counts, []*resolution.SearchCount{{Leads: int64(i), HashedEmails: int64(3 * i), Approximate: i%4 == 0}, nil}[i%2])
		}},
		{resolution.Enrichment, func(b *columns.Batch, i int) {
			b.Answers.AddLead([]*resolution.Lead{fullLead, {}, nil}[i%3])
		}},
	} {
		t.Run(string(c.op), func(t *testing.T) {
			batch := leadBatch(make([]*resolution.Lead, n)...)
			batch.Answers = answersOf()
			for i := range n {
				batch.Receipts = append(batch.Receipts, []outcome.Receipt{{ResolutionID: "res_1", ResolvedAt: time.Unix(int64(i), 1000), Credits: 1, Priced: true}, {}}[i%2])
				c.fill(batch, i)
			}
			inTheUS.CleanPhones(batch.Answers)
			layout, err := columns.NewLayout(columns.Settings{Operation: c.op, DefaultRegion: "US", Remote: true})
			if err != nil {
				t.Fatal(err)
			}
			rec := layout.NewBuilder().Record(batch)
			got := readFacts(t, written(t, layout, batch))
			if len(got) != n {
				t.Fatalf("%d rows, want %d", len(got), n)
			}
			for i, want := range facts(t, rec) {
				if !reflect.DeepEqual(got[i], want) {
					t.Errorf("row %d: %v, want %v", i, got[i], want)
				}
			}
		})
	}
}

// written writes a batch as a part of a dataset, and returns the path of its file.
func written(t *testing.T, layout *columns.Layout, batch *columns.Batch) string {
	t.Helper()
	dir := t.TempDir()
	out, err := sinks.Open(t.Context(), dir, sinks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w, err := out.PartFiles(0, sinks.Table{Columns: layout.Columns(), Compression: sinks.Snappy}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write("", layout.NewBuilder().Record(batch)); err != nil {
		t.Fatal(err)
	}
	part, _, err := w.Commit()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, part.Name)
}

// readFacts reads a file with the Arrow project's reader.
func readFacts(t *testing.T, path string) (rows []map[string]any) {
	t.Helper()
	r, err := file.OpenParquetFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	table, err := f.ReadTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	records := array.NewTableReader(table, -1)
	for records.Next() {
		rows = append(rows, facts(t, records.Record())...)
	}
	return rows
}
