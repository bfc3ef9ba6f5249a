package place

import (
	"regexp"
	"slices"

	"github.com/leadetl/leadetl/internal/atomicfile"
)

// The names of the files of a dataset beside its parts.
const (
	ManifestName  = "_manifest.json" // describes the dataset
	SuccessName   = "_SUCCESS"       // written last of all
	RejectsFolder = "_rejects"
	ChangesFolder = "_changes" // rows that differ from an earlier dataset
	// SuppressedFolder has the ids of rows of suppressed people.
	SuppressedFolder = "_suppressed"
	AskedFolder      = "_asked" // what each of several resolvers says
	// ComparisonName says which datasets were compared, beside the files of leadetl changes.
	ComparisonName = "_comparison.json"
	// The report of the last run, for programs and as a page for people.
	ReportName     = "_report.json"
	ReportPageName = "_report.html"
)

// ReportNames are the files of the report. They are in the folder of the dataset but
// not part of it: no manifest lists them, and a folder with nothing else counts as
// empty.
var ReportNames = []string{ReportPageName, ReportName}

// IsReport reports whether this is the name of a file of the report.
func IsReport(name string) bool { return slices.Contains(ReportNames, name) }

// HiddenFolders are the folders of a dataset whose files are not data to readers of it.
var HiddenFolders = []string{RejectsFolder, ChangesFolder, SuppressedFolder, AskedFolder}

// partName matches the names of parts and of the files beside them.
var partName = regexp.MustCompile(`^part-\d{5,}\.parquet$`)

// partitionFolder matches the folders of values of a partition column.
var partitionFolder = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*=[^/]+$`)

// isDatasetFile reports whether a dataset, finished or not, has a file with this name in
// this folder.
func isDatasetFile(folder, name string) bool {
	if atomicfile.IsTemp(name) {
		name = atomicfile.FinalName(name)
	}
	return partName.MatchString(name) || folder == "" && (name == ManifestName || name == SuccessName || name == ComparisonName || IsReport(name))
}
