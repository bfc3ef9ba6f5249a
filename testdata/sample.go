// Package testdata holds the sample lists and reference data. The program has them with
// it wherever it is copied to: leadetl sample writes them, leadetl serve --demo answers
// from them.
package testdata

import "embed"

// Sample holds emails.csv, profiles.csv, ips.csv, searches.csv, the job nightly.yaml with nightly.sh,
// and the sources of reference data: directory/people.csv, companies.csv, ip-ranges.csv,
// searches.csv and visits.csv.
//
//go:embed *.csv nightly.yaml nightly.sh directory/*.csv
var Sample embed.FS
