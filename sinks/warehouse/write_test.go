package warehouse

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/sinks/schema"
)

var update = flag.Bool("update", false, "rewrite testdata")

// sample has a column of every type, names that need quotes somewhere, and
// texts with quotes.
var sample = Table{
	Operation: "email_to_hem", Version: 1,
	Columns: []schema.Column{
		{Name: "id", Type: "STRING", Nullable: true, Meaning: schema.Meaning{Text: "the input's column", Null: "a Parquet input has no value", From: "docs/input.md"}},
		{Name: "Full Name", Type: "STRING", Nullable: true, Meaning: schema.Meaning{Text: `a "name" | a \name`}},
		{Name: "order", Type: "STRING", Nullable: true, Meaning: schema.Meaning{Form: "one of: new old"}},
		{Name: "we`ird\"", Type: "STRING", Nullable: true},
		{Name: "source_row", Type: "INT64", Meaning: schema.Meaning{Text: "data row of that file", Unit: "rows, from 1", From: "docs/input.md"}},
		{Name: "credits", Type: "INT32", Nullable: true},
		{Name: "resolved_at", Type: "TIMESTAMP(MICROS, UTC)", Nullable: true},
		{Name: "searched_on", Type: "DATE", Nullable: true},
		{Name: "confidence", Type: "DOUBLE", Nullable: true},
		{Name: "phone_valid", Type: "BOOLEAN", Nullable: true},
		{Name: "matched_keywords", Type: "LIST<STRING>", Nullable: true},
		{Name: "hashed_emails", Type: "LIST<STRUCT<email STRING, type STRING>>", Nullable: true},
	},
}

// TestWrite compares every dialect with testdata, without partitions, with
// those of the dataset, and with those of its rows.
func TestWrite(t *testing.T) {
	partitioned := sample
	partitioned.Name, partitioned.Location = "hems", "s3://lake/it's/"
	partitioned.Partitions = []schema.Partition{{Name: "dt", Value: "2026-11-20"}, {Name: "run", Value: "a/b c"}}
	parted := partitioned
	parted.Name = "lake.crm.hems"
	parted.Partitions = []schema.Partition{{Name: "dt", Value: "2026-11-20"}}
	parted.PartitionBy = "country"
	replacing := parted
	replacing.Columns, replacing.Replace = sample.Columns[:5], true
	for _, d := range Dialects {
		for name, table := range map[string]Table{"plain": sample, "partitioned": partitioned, "parted": parted, "replacing": replacing} {
			if table.Replace && !slices.Contains(Warehouses, d) {
				continue
			}
			got, err := Write(d, table)
			if err != nil {
				t.Errorf("%s: %v", d, err)
				continue
			}
			extension := ".sql"
			switch d {
			case DBT:
				extension = ".yml"
			case Markdown:
				extension = ".md"
			}
			path := filepath.Join("testdata", string(d)+"_"+name+extension)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s, %s:\ngot\n%s\nwant\n%s", d, name, got, want)
			}
		}
	}
}

func TestWriteRefusesTypesThatNoDatasetHas(t *testing.T) {
	for _, typeName := range []string{"", "INT96", "LIST<INT96>", "STRUCT<a INT96>", "LIST<STRING"} {
		if text, err := Write(DuckDB, Table{Columns: []schema.Column{{Name: "a", Type: typeName}}}); err == nil {
			t.Errorf("%q became\n%s", typeName, text)
		}
	}
	if _, err := Write("oracle", sample); err == nil {
		t.Error("an unknown dialect is written")
	}
}

func TestParse(t *testing.T) {
	if d, err := Parse("BigQuery", Warehouses); d != BigQuery || err != nil {
		t.Error(d, err)
	}
	for _, name := range []string{"", "oracle", "markdown"} {
		if _, err := Parse(name, Warehouses); err == nil || !strings.Contains(err.Error(), "snowflake") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestIssues(t *testing.T) {
	column := func(name, typeName string) schema.Column {
		return schema.Column{Name: name, Type: typeName, Nullable: true}
	}
	long := strings.Repeat("n", 200)
	for _, c := range []struct {
		name    string
		d       Dialect
		column  schema.Column
		longest int64
		want    string // part of the trip; empty for none
		fails   bool
	}{
		{"a text at the limit", Redshift, column("a", "STRING"), 65_535, "", false},
		{"a text beyond it", Redshift, column("a", "STRING"), 65_536, "column a: a text has at most 65535 bytes there, and the longest here 65536", true},
		{"the same elsewhere", Snowflake, column("a", "STRING"), 65_536, "", false},
		{"16 MB and more", Snowflake, column("a", "STRING"), 16<<20 + 1, "at most 16777216 bytes", true},
		{"a row too large", Athena, column("a", "STRING"), 33 << 20, "a row has at most 33554432 bytes", true},
		{"a row too large for a load", BigQuery, column("a", "STRING"), 51_000_000, "a row has at most 50000000 bytes", true},
		{"no limit", DuckDB, column("a", "STRING"), 1 << 30, "", false},
		{"a list", Redshift, column("a", "LIST<STRING>"), 70_000, "SERIALIZETOJSON", false},
		{"a list too large", Redshift, column("a", "LIST<STRING>"), 17 << 20, "column a: a list has at most 16777216 bytes", true},
		{"lists at BigQuery", BigQuery, column("a", "LIST<STRING>"), 0, "enable_list_inference", false},
		{"lists at Spark", Spark, column("a", "LIST<STRING>"), 0, "", false},
		{"a name with a space", BigQuery, column("Full Name", "STRING"), 0, "letters, digits and underscores only", true},
		{"a name with a digit first", BigQuery, column("2nd", "STRING"), 0, "does not begin with a digit", true},
		{"BigQuery's own", BigQuery, column("_partitiondate", "STRING"), 0, "BigQuery reserves names", true},
		{"a name with a dash", Athena, column("e-mail", "STRING"), 0, "letters, digits and underscores only", true},
		{"a name with a dash, quoted", Snowflake, column("e-mail", "STRING"), 0, "", false},
		{"a name with a space", Spark, column("Full Name", "STRING"), 0, "Spark before 3.3", true},
		{"a name with a space, quoted", Redshift, column("Full Name", "STRING"), 0, "", false},
		{"a quote in a shell", Spark, column("Customer's Name", "STRING"), 0, `or --rename 'Customer'\''s Name=customers_name'`, true},
		{"no name", DuckDB, column("", "STRING"), 0, "a column needs a name; run it with --normalize-names snake, or --rename '=column_1'", true},
		{"how to mend it", BigQuery, column("Full Name", "STRING"), 0, "a digit; run it with --normalize-names snake, or --rename 'Full Name=full_name'", true},
		{"a long name, cut", Redshift, column(long, "STRING"), 0, "127 bytes; run it with --normalize-names snake, or --rename " + long + "=" + long[:127], true},
		{"an expression", DBT, column("{{ env_var('PATH') }}", "STRING"), 0, "dbt may take it for an expression", true},
		{"a reserved word", Snowflake, column("order", "STRING"), 0, "", false},
		{"a column of Redshift", Redshift, column("XMIN", "STRING"), 0, "every table there has a column of its own with this name; run it with --rename XMIN=NEW", true},
		{"the same elsewhere", BigQuery, column("xmin", "STRING"), 0, "", false},
		{"a column of PostgreSQL", Postgres, column("ctid", "STRING"), 0, "every table there has a column of its own with this name; run it with --rename ctid=NEW", true},
		{"none of its own", Postgres, column("oid", "STRING"), 0, "", false},
		{"a name that PostgreSQL cuts", Postgres, column(long, "STRING"), 0, "63 bytes; run it with --rename " + long + "=NEW", true},
		{"a control character", Redshift, column("a\x00b", "STRING"), 0, "printable", true},
		{"a long name", Redshift, column(long, "STRING"), 0, "at most 127 bytes", true},
		{"a long name elsewhere", BigQuery, column(long, "STRING"), 0, "", false},
	} {
		issues, err := Issues(c.d, Table{Columns: []schema.Column{c.column}}, []int64{c.longest})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		found := ""
		fails := false
		for _, trip := range issues {
			found, fails = found+trip.String()+"; "+trip.Advice+"\n", fails || trip.Fails
		}
		if (c.want == "") != (found == "") || !strings.Contains(found, c.want) || fails != c.fails {
			t.Errorf("%s at %s: %q, fails %v; want %q, %v", c.name, c.d, found, fails, c.want, c.fails)
		}
	}
}

func TestIssuesOfTables(t *testing.T) {
	many := Table{Columns: make([]schema.Column, 1_601)}
	for i := range many.Columns {
		many.Columns[i] = schema.Column{Name: strings.Repeat("a", i%100+1) + strings.Repeat("b", i/100), Type: "STRING"}
	}
	issues, err := Issues(Redshift, many, nil)
	if err != nil || len(issues) == 0 || !strings.Contains(issues[0].String(), "at most 1600 columns") {
		t.Error(issues, err)
	}
	issues, err = Issues(Spark, Table{Columns: []schema.Column{{Name: "id", Type: "STRING"}, {Name: "ID", Type: "STRING"}}}, nil)
	if err != nil || len(issues) != 1 || issues[0].String() != "column ID: id is the same name there: case is ignored" {
		t.Error(issues, err)
	}
	for _, c := range []struct {
		d    Dialect
		by   string
		want string
	}{
		{Athena, "Country", "column Country: MSCK REPAIR TABLE finds only folders whose names are in lower case; run it with --normalize-names snake, or --rename Country=country"},
		{Athena, "country", ""},
		{Spark, "ID", "column ID: id is the same name there: case is ignored"},
		{Redshift, "ctid", "column ctid: every table there has a column of its own with this name; run it with --rename ctid=NEW"},
	} {
		got := ""
		issues, err = Issues(c.d, Table{Columns: []schema.Column{{Name: "id", Type: "STRING"}}, PartitionBy: c.by}, nil)
		for _, issue := range issues {
			got += issue.String()
			if issue.Advice != "" {
				got += "; " + issue.Advice
			}
		}
		if err != nil || got != c.want {
			t.Errorf("%s by %s: %s, %v", c.d, c.by, got, err)
		}
	}
	for name, want := range map[string]string{
		strings.Repeat("a", 55): "", strings.Repeat("a", 56): "the name of a table has at most 55 bytes, for what comes behind it in the statements",
		"lake.crm." + strings.Repeat("a", 55): "", "crm..hems": "the name of a table is NAME, SCHEMA.NAME or DATABASE.SCHEMA.NAME", "a.b.c.d": "the name of a table is NAME, SCHEMA.NAME or DATABASE.SCHEMA.NAME",
	} {
		issues, err := Issues(Postgres, Table{Name: name}, nil)
		if err != nil || want == "" && len(issues) > 0 || want != "" && (len(issues) != 1 || issues[0].String() != want || !issues[0].Fails) {
			t.Errorf("a table %s: %v, %v; want %q", name, issues, err, want)
		}
	}
	if _, err := Issues(Markdown, sample, nil); err == nil {
		t.Error("Markdown has limits")
	}
}

func TestRedshiftManifest(t *testing.T) {
	got, err := RedshiftManifest("s3://lake/hems", []File{{"part-00000.parquet", 12}})
	want := `{
  "entries": [
    {
      "url": "s3://lake/hems/part-00000.parquet",
      "mandatory": true,
      "meta": {
        "content_length": 12
      }
    }
  ]
}
`
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
}
