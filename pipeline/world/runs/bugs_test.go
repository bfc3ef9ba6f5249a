package runs

import "github.com/leadetl/leadetl/internal/worldtest"

// planted are the bugs that whole runs have to find.
var planted = worldtest.Bugs{
	{"a journal is removed before _SUCCESS", "pipeline/finish/finish.go",
		"\tif err := d.Run.Output.Publish(m); err != nil {", "\t_ = d.Journal.Remove()\n\tif err := d.Run.Output.Publish(m); err != nil {"},
	{"_SUCCESS is written before the manifest", "sinks/publish.go",
		"\tif err := d.place.Write(ManifestName, append(data, '\\n')); err != nil {", "\tif err := d.place.Write(place.SuccessName, nil); err != nil {\n\t\treturn err\n\t}\n\tif err := d.place.Write(ManifestName, append(data, '\\n')); err != nil {"},
	{"_SUCCESS of a dataset that is replaced is removed last", "sinks/publish.go",
		"\tcase place.SuccessName:\n\t\treturn 0", "\tcase place.SuccessName:\n\t\treturn 3"},
	{"on S3, what a kill leaves of a journal that is removed counts as lost", "pipeline/objectstate/progress.go",
		"if listed < p.next-first {", "if listed < 0 {"},
}
