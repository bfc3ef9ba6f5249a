package duckdbtest

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestMerge takes the changes of several nights over by the statements that leadetl schema
// prints. After each night the table has the rows of its dataset that have a key.
func TestMerge(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) string {
		if err := os.WriteFile(at(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	suppress := write("optout.txt", "ada@bakery.example\n")
	nights := []struct {
		list  string
		flags []string
		want  string // added, changed, removed
	}{
		{"1,Ada,ada@bakery.example\n2,Ben,ben@rockets.example\n3,Cy,cy@bakery.example\n4,Dee,not an address\n3,Cy,cy@bakery.example\n", nil, "5 0 0"},
		{"2,Benjamin,ben@rockets.example\n1,Ada,ada@bakery.example\n3,Cy,cy@bakery.example\n5,Eve,eve@rockets.example\n", nil, "1 1 2"},
		{"1,Ada,ada@bakery.example\n3,Cy,cy@bakery.example\n3,Cy,cy@bakery.example\n5,Eve,eve@rockets.example\n", []string{"--suppress", suppress}, "1 0 2"},
		{"1,Ada,ada@bakery.example\n2,Ben,ben@rockets.example\n5,Eve,eve@rockets.example\n", nil, "2 0 2"},
		// Rows with one key move, and are still told apart when one of them changes later.
		{"1,Ada,ada@bakery.example\n6,Ada B,ada@bakery.example\n7,Ada C,ada@bakery.example\n", nil, "2 0 2"},
		{"7,Ada C,ada@bakery.example\n1,Ada,ada@bakery.example\n6,Ada B,ada@bakery.example\n", nil, "0 0 0"},
		{"6,Ada B,ada@bakery.example\n8,Ada C,ada@bakery.example\n1,Ada,ada@bakery.example\n8,Ada C,ada@bakery.example\n", nil, "1 1 0"},
		{"1,Ada,ada@bakery.example\n8,Ada C,ada@bakery.example\n6,Ada D,ada@bakery.example\n", nil, "0 1 1"},
	}
	db := open(t)
	table, state := "SELECT id, name, key, outcome, hem_sha256 FROM email_to_hem ORDER BY ALL", at("state")
	for i, night := range nights {
		list := write(fmt.Sprint(i, ".csv"), "id,name,email\n"+night.list)
		out := fmt.Sprintf("%s/dt=2026-11-2%d", at("hems"), i)
		leadetl(t, append([]string{"run", "email_to_hem", "--in", list, "--out", at("hems"), "--partition-by", fmt.Sprint("dt=2026-11-2", i), "--state", state, "--changes-from", "previous", "--fail-on", "never", "--quiet"}, night.flags...)...)
		leadetl(t, "verify", out)
		counts := query(t, db, fmt.Sprintf("SELECT count(*) FILTER (change = 'added') || ' ' || count(*) FILTER (change = 'changed') || ' ' || count(*) FILTER (change = 'removed') FROM read_parquet('%s/_changes/*.parquet')", out))
		if counts[0][0] != night.want {
			t.Errorf("night %d: %s, want %s", i, counts[0][0], night.want)
		}
		merge := leadetl(t, "schema", "--dataset", out, "--changes", "--dialect", "duckdb")
		for range 2 { // a second time changes nothing
			execute(t, db, merge)
			want := query(t, db, fmt.Sprintf("SELECT id, name, key, outcome, hem_sha256 FROM read_parquet('%s/part-*.parquet') WHERE key IS NOT NULL ORDER BY ALL", out))
			if got := query(t, db, table); !reflect.DeepEqual(got, want) {
				t.Errorf("night %d: the table has\n%v\nwant\n%v", i, got, want)
			}
		}
		execute(t, db, "CREATE OR REPLACE TABLE merged AS FROM email_to_hem")
		// A row that failed keeps its answer.
		statements, last, _ := strings.Cut(merge, "MERGE INTO")
		execute(t, db, statements)
		execute(t, db, "UPDATE email_to_hem_changes SET outcome = 'failed', hem_sha256 = NULL WHERE change <> 'removed'")
		execute(t, db, "MERGE INTO"+last)
		if got := query(t, db, "SELECT count(*) FROM email_to_hem WHERE key IS NOT NULL AND hem_sha256 IS NULL"); got[0][0] != "0" {
			t.Errorf("night %d: %s rows that failed lost their answers", i, got[0][0])
		}
		execute(t, db, "CREATE OR REPLACE TABLE email_to_hem AS FROM merged")
	}
}
