package duckdbtest

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// mergeNights are the lists of several nights.
var mergeNights = []struct {
	list     string
	suppress bool   // Ada
	want     string // added, changed, removed
}{
	{"1,Ada,ada@bakery.example\n2,Ben,ben@rockets.example\n3,Cy,cy@bakery.example\n4,Dee,not an address\n3,Cy,cy@bakery.example\n", false, "5 0 0"},
	{"2,Benjamin,ben@rockets.example\n1,Ada,ada@bakery.example\n3,Cy,cy@bakery.example\n5,Eve,eve@rockets.example\n", false, "1 1 2"},
	{"1,Ada,ada@bakery.example\n3,Cy,cy@bakery.example\n3,Cy,cy@bakery.example\n5,Eve,eve@rockets.example\n", true, "1 0 2"},
	{"1,Ada,ada@bakery.example\n2,Ben,ben@rockets.example\n5,Eve,eve@rockets.example\n", false, "2 0 2"},
	// Rows with one key move, and are still told apart when one of them changes later.
	{"1,Ada,ada@bakery.example\n6,Ada B,ada@bakery.example\n7,Ada C,ada@bakery.example\n", false, "2 0 2"},
	{"7,Ada C,ada@bakery.example\n1,Ada,ada@bakery.example\n6,Ada B,ada@bakery.example\n", false, "0 0 0"},
	{"6,Ada B,ada@bakery.example\n8,Ada C,ada@bakery.example\n1,Ada,ada@bakery.example\n8,Ada C,ada@bakery.example\n", false, "1 1 0"},
	{"1,Ada,ada@bakery.example\n8,Ada C,ada@bakery.example\n6,Ada D,ada@bakery.example\n", false, "0 1 1"},
}

// runNight runs a night into a folder, with the changes since the one before, and returns its dataset.
func runNight(t *testing.T, folder string, i int) string {
	t.Helper()
	at := func(name string) string { return filepath.Join(folder, name) }
	list, optout := at(fmt.Sprint(i, ".csv")), at("optout.txt")
	write(t, list, "id,name,email\n"+mergeNights[i].list)
	args := []string{"run", "email_to_hem", "--in", list, "--out", at("hems"), "--partition-by", fmt.Sprint("dt=2026-11-2", i), "--state", at("state"), "--changes-from", "previous", "--fail-on", "never", "--quiet"}
	if mergeNights[i].suppress {
		write(t, optout, "ada@bakery.example\n")
		args = append(args, "--suppress", optout)
	}
	leadetl(t, args...)
	return fmt.Sprintf("%s/dt=2026-11-2%d", at("hems"), i)
}

// TestMerge takes the changes of several nights over by the statements that leadetl schema
// prints. After each night the table has the rows of its dataset that have a key.
func TestMerge(t *testing.T) {
	folder, db := t.TempDir(), open(t)
	const table = "SELECT id, name, key, outcome, hem_sha256 FROM email_to_hem ORDER BY ALL"
	for i, night := range mergeNights {
		out := runNight(t, folder, i)
		leadetl(t, "verify", out)
		counts := query(t, db, fmt.Sprintf("SELECT count(*) FILTER (change = 'added') || ' ' || count(*) FILTER (change = 'changed') || ' ' || count(*) FILTER (change = 'removed') FROM read_parquet('%s/_changes/*.parquet')", out))
		if counts[0][0] != night.want {
			t.Errorf("night %d: %s, want %s", i, counts[0][0], night.want)
		}
		merge := leadetl(t, "schema", "--dataset", out, "--changes", "--dialect", "duckdb", "--table", "main.email_to_hem")
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
