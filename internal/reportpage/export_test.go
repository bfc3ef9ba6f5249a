package reportpage

import "reflect"

// What the page reads, for tests that know what is written.
var (
	ReportRead   = reflect.TypeFor[report]()
	ManifestRead = reflect.TypeFor[manifest]()
)

const FormatRead = format

// KnowsStop reports whether the page has words for a reason to stop.
func KnowsStop(reason string) bool { return stops[reason].Word != "" }
