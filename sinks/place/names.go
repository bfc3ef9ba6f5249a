package place

import (
	"regexp"
	"slices"

	"github.com/leadetl/leadetl/internal/atomicfile"
)

// The names of a dataset's files beside its parts.
const (
	ManifestName  = "_manifest.json" // what the dataset holds
	SuccessName   = "_SUCCESS"       // written last of all
	RejectsFolder = "_rejects"
	// The report of the last run, for programs and as a page for people.
	ReportName     = "_report.json"
	ReportPageName = "_report.html"
)

// ReportNames are the files of the report. They lie in the dataset's folder and
// are no part of the dataset: no manifest lists them, and a folder that holds
// nothing else is empty.
var ReportNames = []string{ReportPageName, ReportName}

// IsReport reports whether a file of this name is of the report.
func IsReport(name string) bool { return slices.Contains(ReportNames, name) }

// partName is the only form of name a part or its rejects have.
var partName = regexp.MustCompile(`^part-\d{5,}\.parquet$`)

// partitionFolder is the form of a folder of the rows with one value of a
// column.
var partitionFolder = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*=[^/]+$`)

// isDatasetFile reports whether a file of a dataset, finished or not, has this
// name in this folder.
func isDatasetFile(folder, name string) bool {
	if atomicfile.IsTemp(name) {
		name = atomicfile.FinalName(name)
	}
	return partName.MatchString(name) || folder == "" && (name == ManifestName || name == SuccessName || IsReport(name))
}
