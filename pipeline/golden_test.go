package pipeline_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/job"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/transforms/email"
)

var update = flag.Bool("update", false, "rewrite testdata/golden")

// TestGolden runs every operation over the lists of testdata and compares the
// rows, one JSON object a line.
func TestGolden(t *testing.T) {
	t.Chdir("..") // sources are named as a user at the root names them
	people := importSample(t)
	for _, c := range []struct {
		name, in string
		op       resolution.Operation
		engine   *embedded.Engine
		job      func(*job.Job)
	}{
		{"email_to_hem", "emails.csv", resolution.EmailToHEM, embedded.New(people, embedded.Options{}), nil},
		{"email_to_hem_alone", "emails.csv", resolution.EmailToHEM, embedded.New(nil, embedded.Options{}), func(j *job.Job) {
			j.HEMProfiles = []email.Profile{email.UID2, email.Google}
		}},
		{"network_to_hem", "profiles.csv", resolution.NetworkToHEM, embedded.New(people, embedded.Options{}), nil},
		{"network_to_phone", "profiles.csv", resolution.NetworkToPhone, embedded.New(people, embedded.Options{}), nil},
		{"ip_to_company", "ips.csv", resolution.IPToCompany, embedded.New(people, embedded.Options{}), nil},
		{"ip_to_company_providers", "ips.csv", resolution.IPToCompany, embedded.New(people, embedded.Options{IncludeProviders: true}), func(j *job.Job) {
			j.IncludeProviders = true
			j.DropIdentifier = true
		}},
		{"enrichment", "profiles.csv", resolution.Enrichment, embedded.New(people, embedded.Options{}), nil},
		{"deanonymization", "ips.csv", resolution.Deanonymization, embedded.New(people, embedded.Options{}), nil},
		{"keyword_to_lead", "searches.csv", resolution.KeywordToLead, embedded.New(people, embedded.Options{}), asOfSample},
		{"keyword_to_lead_count", "searches.csv", resolution.KeywordToLeadCount, embedded.New(people, embedded.Options{}), asOfSample},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := setup{
				dir: t.TempDir(), op: c.op, in: []string{filepath.Join("testdata", c.in)}, resolver: c.engine, searcher: c.engine,
				job: c.job, rowsPerPart: 10, workers: 2,
			}
			s.mustDo(t)
			got := strings.Join(rows(t, content(t, s.outDir())), "\n") + "\n"
			golden := filepath.Join("testdata", "golden", c.name+".jsonl")
			if *update {
				if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
			if len(gotLines) != len(wantLines) {
				t.Errorf("%d rows, want %d", len(gotLines)-1, len(wantLines)-1)
			}
			for i := range min(len(gotLines), len(wantLines)) {
				if gotLines[i] != wantLines[i] {
					t.Errorf("row %d\n got %s\nwant %s", i+1, gotLines[i], wantLines[i])
				}
			}
		})
	}
}

// asOfSample is soon after the last of the sample's searches. Only the columns
// that say what was searched for are kept.
func asOfSample(j *job.Job) {
	j.AsOf = time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
	j.Select = []string{"id", "answers"}
}

// importSample opens the sample directory, freshly imported.
func importSample(t *testing.T) *directory.Directory {
	t.Helper()
	from := filepath.Join("testdata", "directory")
	return imported(t, directory.Files{
		People:    filepath.Join(from, "people.csv"),
		Companies: filepath.Join(from, "companies.csv"),
		IPRanges:  filepath.Join(from, "ip-ranges.csv"),
		Searches:  filepath.Join(from, "searches.csv"),
		Visits:    filepath.Join(from, "visits.csv"),
	})
}

// imported opens a directory, freshly imported from files.
func imported(t *testing.T, files directory.Files) *directory.Directory {
	t.Helper()
	dir := t.TempDir()
	if _, err := directory.Import(t.Context(), dir, files, directory.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	d, err := directory.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}
