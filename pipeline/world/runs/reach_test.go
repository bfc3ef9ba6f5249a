package runs

import "github.com/leadetl/leadetl/internal/testkit/worldtest"

// reach is what whole runs have to reach.
var reach = worldtest.Reach{
	Packages: []string{"pipeline/parts", "pipeline/begin", "pipeline/finish"},
	Least:    0.78, // of begin; the others have 90 of 100. begin lacks what refuses a job or knows the day of a search, and errors of what was read before
	Unreached: map[string]string{
		"pipeline/begin/resume.go Decision.otherJob":  "no world gives the folder of a dataset to another job",
		"pipeline/begin/resume.go previousRun.days":   "is for searches, whose pages the code that pays buys in its own worlds",
		"pipeline/parts/part_output.go Folders.Files": "is for plans",
		"pipeline/parts/part_output.go Folders.fail":  "needs a value that is too long for the name of a folder, or a hundred in a part",
	},
}
