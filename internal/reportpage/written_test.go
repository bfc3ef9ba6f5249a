package reportpage_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/reportpage"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/sinks"
)

// TestReadsWhatIsWritten: every member that the page reads is one that a run
// writes, of the same kind.
func TestReadsWhatIsWritten(t *testing.T) {
	for _, c := range []struct {
		name          string
		read, written reflect.Type
	}{
		{"_report.json", reportpage.ReportRead, reflect.TypeFor[report.Report]()},
		{"_manifest.json", reportpage.ManifestRead, reflect.TypeFor[sinks.Manifest]()},
	} {
		written := members(c.written, "")
		for name, kind := range members(c.read, "") {
			if written[name] != kind {
				t.Errorf("%s: the page reads %s as %s, it is written as %q", c.name, name, kind, written[name])
			}
		}
	}
	for name, written := range map[string]int{"_report.json": report.Format, "_manifest.json": sinks.ManifestFormat} {
		if written != reportpage.FormatRead {
			t.Errorf("%s is written in format %d, and the page reads %d", name, written, reportpage.FormatRead)
		}
	}
	for _, reason := range []report.StopReason{report.StopInterrupted, report.StopBudget, report.StopNoCredits, report.StopRefused, report.StopUnreachable, report.StopFailed} {
		if !reportpage.KnowsStop(string(reason)) {
			t.Errorf("the page has no words for a run that ended with %q", reason)
		}
	}
}

// members are the kinds of a type's members in JSON by their path.
func members(t reflect.Type, below string) map[string]string {
	found := map[string]string{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "-" || len(f.Index) > 1 && !promoted(t, f) {
			continue
		}
		inner := f.Type
		path := below + name
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct {
			inner = inner.Elem()
		}
		found[path] = inner.Kind().String()
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() {
			for name, kind := range members(inner, path+".") {
				found[name] = kind
			}
		}
	}
	return found
}

// promoted reports whether a field is one of an embedded struct.
func promoted(t reflect.Type, f reflect.StructField) bool { return t.Field(f.Index[0]).Anonymous }
