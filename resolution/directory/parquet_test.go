package directory

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"

	"github.com/leadetl/leadetl/resolution"
)

// TestParquet: people as Parquet, in another column order, with typed lists
// and times, are the people of the CSV.
func TestParquet(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "unrelated", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "last_seen_at", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true},
		{Name: "emails", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
		{Name: "zip_code", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "first_name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "Network_URL", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	stamp, err := arrow.TimestampFromTime(at, arrow.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	emails := b.Field(2).(*array.ListBuilder)
	for _, row := range []struct {
		url, name string
		emails    []string
	}{
		{"network.example/in/ada", "Ada", []string{"ada@bakery.example", "ada@mail.example"}},
		{"network.example/in/ben", "", nil},
		{"", "nobody", nil},
	} {
		b.Field(0).AppendNull()
		b.Field(1).(*array.TimestampBuilder).Append(stamp)
		emails.Append(row.emails != nil)
		for _, e := range row.emails {
			emails.ValueBuilder().(*array.StringBuilder).Append(e)
		}
		b.Field(3).(*array.Int64Builder).Append(94105)
		if row.name == "" {
			b.Field(4).AppendNull()
		} else {
			b.Field(4).(*array.StringBuilder).Append(row.name)
		}
		b.Field(5).(*array.StringBuilder).Append(row.url)
	}
	record := b.NewRecord()
	defer record.Release()
	path := filepath.Join(t.TempDir(), "people.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pqarrow.NewFileWriter(schema, f, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(record); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	fromParquet, fromCSV := t.TempDir(), t.TempDir()
	report, err := Import(t.Context(), fromParquet, Files{People: path}, lax())
	if err != nil {
		t.Fatal(err)
	}
	if got := places(report.Kinds[0].BadLines); got != "3 network_url: empty" {
		t.Errorf("bad lines %s", got)
	}
	mustImport(t, fromCSV, Files{People: source(t, "people.csv", "network_url,first_name,emails,zip_code,last_seen_at\n"+
		"network.example/in/ada,Ada,ada@bakery.example;ada@mail.example,94105,2026-01-02T03:04:05Z\n"+
		"network.example/in/ben,,,94105,2026-01-02 03:04:05\n")})
	a, b2 := mustOpen(t, fromParquet), mustOpen(t, fromCSV)
	for _, key := range []string{"network.example/in/ada", "network.example/in/ben"} {
		got, err := a.Person(key)
		if err != nil {
			t.Fatal(err)
		}
		want, err := b2.Person(key)
		if err != nil || want == nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Parquet %+v, CSV %+v, %v", got, want, err)
		}
	}
	if a.Fingerprint() != b2.Fingerprint() {
		t.Error("the same rows have two fingerprints")
	}

	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{len(whole) / 2, len(whole) - 60} {
		damaged := slices.Clone(whole)
		copy(damaged[at:], strings.Repeat("\xff", 40))
		if err := os.WriteFile(path, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Import(t.Context(), t.TempDir(), Files{People: path}, lax())
		if !errors.Is(err, resolution.ErrInvalid) || !strings.Contains(err.Error(), "people.parquet is damaged") {
			t.Errorf("damaged at byte %d: %v", at, err)
		}
	}
}
