// Package testdata holds the sample directory's sources for leadetl serve
// --demo, which has them with it wherever the program is copied to.
package testdata

import "embed"

// Directory holds directory/people.csv, companies.csv, ip-ranges.csv,
// searches.csv and visits.csv.
//
//go:embed directory/*.csv
var Directory embed.FS
