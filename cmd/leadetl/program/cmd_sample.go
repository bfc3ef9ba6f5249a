package program

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/testdata"
)

func newSampleCommand(std cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "sample [DIR]",
		Short: "Write sample lists, reference data and a job to try the program with",
		Long: `Write small lists of each kind, the sources of reference data and a job file to
DIR, by default the folder sample. The people and companies in them are invented.

A file that is there already must have the same content: the command writes
over nothing. Run again, it adds what is missing.`,
		Example: `  leadetl sample
  leadetl run email_to_hem --in sample/emails.csv --out hems
  leadetl directory import --directory dir --people sample/directory/people.csv`,
		DisableFlagsInUseLine: true,

		Args: func(_ *cobra.Command, args []string) error { return cli.AtMost(1, args) },
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "sample"
			if len(args) > 0 {
				dir = args[0]
			}
			return writeSample(dir, std)
		},
	}
}

// sampleFiles are the files of the sample, and what each holds.
var sampleFiles = []struct{ name, holds string }{
	{"emails.csv", "emails, for email_to_hem"},
	{"profiles.csv", "profile addresses, for network_to_hem, network_to_phone and enrichment"},
	{"ips.csv", "IP addresses, for ip_to_company and deanonymization"},
	{"searches.csv", "keyword searches, for keyword_to_lead and keyword_to_lead_count"},
	{"nightly.yaml", "a job: email_to_hem of emails.csv"},
	{"nightly.sh", "a script that runs nightly.yaml for each night that is due"},
	{"directory/people.csv", "reference data: people"},
	{"directory/companies.csv", "reference data: companies"},
	{"directory/ip-ranges.csv", "reference data: address ranges of companies"},
	{"directory/searches.csv", "reference data: keyword searches of people"},
	{"directory/visits.csv", "reference data: people seen behind addresses"},
}

// writeSample writes the files of the sample that a folder lacks, and lists all.
func writeSample(dir string, std cli.Streams) error {
	missing := map[string][]byte{} // path to content
	table := tabwriter.NewWriter(std.Out, 0, 0, 2, ' ', 0)
	for _, f := range sampleFiles {
		path := filepath.Join(dir, filepath.FromSlash(f.name))
		fmt.Fprintf(table, "%s\t%s\n", path, f.holds)
		data, err := testdata.Sample.ReadFile(f.name)
		if err != nil {
			return err
		}
		switch there, err := os.ReadFile(path); {
		case errors.Is(err, fs.ErrNotExist):
			missing[path] = data
		case err != nil:
			return cli.UsageError(err)
		case !bytes.Equal(there, data):
			return cli.UsageError(fmt.Errorf("%s is there and differs from the sample; name another folder, or remove it", path))
		}
	}
	for path, data := range missing {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return cli.UsageError(err)
		}
		if err := atomicfile.Write(path, data); err != nil {
			return err
		}
	}
	return table.Flush()
}
