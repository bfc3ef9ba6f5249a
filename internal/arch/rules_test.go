package arch

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// below lists, for each family (the first folder of a path), the families
// whose packages its own may import. A package inside resolution, sources,
// sinks or pipeline is its family's business: others import the head and the
// leaves.
var below = map[string][]string{
	"internal":   {"internal"},
	"transforms": {"internal"},
	"resolution": {"transforms", "internal"},
	"sources":    {"internal"},
	"sinks":      {"internal"},
	"pipeline":   {"sources", "sinks", "transforms", "resolution", "internal"},
	"cmd":        {"pipeline", "sources", "sinks", "transforms", "resolution", "internal", "testdata"},
}

// siblings lists the pairs in one family that do know each other, and those of
// two families that are not below each other.
var siblings = map[[2]string]string{
	{"resolution/embedded", "resolution/directory"}:       "the embedded engine answers from a directory",
	{"resolution/resolutiontest", "resolution/directory"}: "the conformance suite brings the directory it asks about",

	{"resolution/embedded", "resolution/directory/companies"}: "the embedded engine answers from a directory",
	{"resolution/embedded", "resolution/directory/people"}:    "the embedded engine answers from a directory",
	{"resolution/embedded", "resolution/directory/ranges"}:    "the embedded engine answers from a directory",
	{"resolution/embedded", "resolution/directory/searches"}:  "the embedded engine answers from a directory",
	{"resolution/embedded", "resolution/directory/visits"}:    "the embedded engine answers from a directory",

	{"resolution/directory/imports", "sources"}: "imports read the files that runs read",

	{"resolution/directory/companies", "resolution/directory/imports"}: "all kinds are imported alike",
	{"resolution/directory/people", "resolution/directory/imports"}:    "all kinds are imported alike",
	{"resolution/directory/ranges", "resolution/directory/companies"}:  "the owners of ranges are joined to companies",
	{"resolution/directory/ranges", "resolution/directory/imports"}:    "all kinds are imported alike",
	{"resolution/directory/searches", "resolution/directory/imports"}:  "all kinds are imported alike",
	{"resolution/directory/visits", "resolution/directory/imports"}:    "all kinds are imported alike",

	{"transforms/person", "transforms/company"}:      "a person is asked about by the domain of a company",
	{"transforms/person", "transforms/email"}:        "a person is asked about by an email address",
	{"transforms/suppression", "transforms/email"}:   "a list holds identifiers of every kind",
	{"transforms/suppression", "transforms/phone"}:   "a list holds identifiers of every kind",
	{"transforms/suppression", "transforms/profile"}: "a list holds identifiers of every kind",
	{"transforms/suppression", "transforms/ipaddr"}:  "a list holds identifiers of every kind",
	{"transforms/suppression", "transforms/person"}:  "a list holds persons without an identifier, too",

	{"transforms/platform", "transforms/email"}: "a platform hashes addresses by a profile",
	{"transforms/platform", "transforms/phone"}: "a platform hashes numbers in a form",
	{"transforms/hashed", "transforms/email"}:   "the table has the profiles of every kind",
	{"transforms/hashed", "transforms/phone"}:   "the table has the profiles of every kind",

	{"transforms/fiction", "transforms/email"}: "what is made up is a value of each kind",
	{"transforms/fiction", "transforms/phone"}: "what is made up is a value of each kind",

	{"resolution/values", "sinks/schema"}: "a value is a column of the output",

	{"cmd/leadetl/wire", "cmd/leadetl/cli"}:           "wiring reports wrong usage",
	{"cmd/leadetl/runcmd", "cmd/leadetl/cli"}:         "every command is made of it",
	{"cmd/leadetl/runcmd", "cmd/leadetl/wire"}:        "flags that commands share",
	{"cmd/leadetl/admincmd", "cmd/leadetl/cli"}:       "every command is made of it",
	{"cmd/leadetl/admincmd", "cmd/leadetl/wire"}:      "flags that commands share",
	{"cmd/leadetl/answerscmd", "cmd/leadetl/cli"}:     "every command is made of it",
	{"cmd/leadetl/answerscmd", "cmd/leadetl/wire"}:    "flags that commands share",
	{"cmd/leadetl/servecmd", "cmd/leadetl/cli"}:       "every command is made of it",
	{"cmd/leadetl/providercmd", "cmd/leadetl/cli"}:    "every command is made of it",
	{"cmd/leadetl/providercmd", "cmd/leadetl/wire"}:   "flags that commands share",
	{"cmd/leadetl/providercmd", "cmd/leadetl/runcmd"}: "a provider is tried as a run asks it",
	{"cmd/leadetl/workercmd", "cmd/leadetl/cli"}:      "every command is made of it",
	{"cmd/leadetl/workercmd", "cmd/leadetl/wire"}:     "flags that commands share",
	{"cmd/leadetl/workercmd", "cmd/leadetl/runcmd"}:   "workers open runs as leadetl run does",
	{"cmd/leadetl/servecmd", "cmd/leadetl/wire"}:      "flags that commands share",
	{"cmd/leadetl/runcmd", "cmd/leadetl/runview"}:     "run and plan show what they do",
	{"cmd/leadetl/runcmd", "cmd/leadetl/observe"}:     "runs tell others how they end",
	{"cmd/leadetl/observe", "cmd/leadetl/cli"}:        "its settings are of the one table",
	{"cmd/leadetl/runview", "cmd/leadetl/cli"}:        "what is shown fits the terminal",
	{"cmd/leadetl/admincmd", "cmd/leadetl/runview"}:   "copies of a state show how far they are",
	{"cmd/leadetl/findcmd", "cmd/leadetl/cli"}:        "every command is made of it",
	{"cmd/leadetl/findcmd", "cmd/leadetl/wire"}:       "flags that commands share",
	{"cmd/leadetl/findcmd", "cmd/leadetl/runview"}:    "it shows how far it is",
	{"cmd/leadetl/answerscmd", "cmd/leadetl/runview"}: "they show how far they are",

	{"resolution/service/openapi/openapitest", "resolution/service/openapi"}: "it holds tests to the document",
	{"pipeline/journal/journaltest", "pipeline/journal"}:                     "it tests implementations of its interface",
	{"resolution/service/backup", "resolution/service/sqlite"}:               "it copies that state",
}

// rooms lists the packages in pipeline, and those of the service that answer, from the ground up: each may import those
// before it.
var rooms = []string{
	"pipeline/outcome", "pipeline/pace", "pipeline/stats", "pipeline/columns", "pipeline/answers", "pipeline/answertable", "pipeline/objectstate",
	"pipeline/journal", "pipeline/cut", "pipeline/keys", "pipeline/changes", "pipeline/audience", "pipeline/report", "pipeline/purchase", "pipeline/order", "pipeline/job",
	"pipeline/rows", "pipeline/find", "pipeline/begin", "pipeline/parts", "pipeline/finish", "pipeline/steps",

	"resolution/service/callback", "resolution/service/account", "resolution/service/admission", "resolution/service/answering",
	"resolution/service/operator", "resolution/service/dashboard",
}

// leaves lists the packages that their siblings, and the families above, may
// import: small types that several of them share. A leaf imports no sibling that is not a leaf, unless
// siblings allows it.
var leaves = map[string]string{
	"pipeline/outcome": "what became of a row",

	"resolution/values":   "what answers say of people and companies, a row for each column",
	"resolution/exchange": "how requests are sent over HTTP, and answers read",

	"resolution/service/state":      "what stores of a service keep",
	"resolution/service/wire":       "the JSON of the interface",
	"resolution/service/request":    "what callers may ask",
	"resolution/service/credential": "keys, tokens and the pepper",
	"resolution/service/limit":      "rates and stored bytes",
	"resolution/service/metrics":    "what a service counts",
	"pipeline/stats":                "what a run has done so far",
	"pipeline/report":               "what a run and its calls are reported as",

	"sinks/lines":  "how values are written as text",
	"sinks/schema": "what a column of a dataset is",
	"sinks/typed":  "how the values of a dataset are read",
}

// heads lists packages that put together what is in a folder, in the place of the folder
// itself: tests cannot import a main.
var heads = map[string]string{
	"cmd/leadetl/program": "cmd/leadetl",
	"cmd/leadetl/clitest": "cmd/leadetl",
}

// owners lists modules that one package alone may import, by the beginning of
// their paths, so that what they do can be replaced in one place.
var owners = map[string]string{
	"go.temporal.io/":             "pipeline/cluster",
	"go.opentelemetry.io/otel":    "cmd/leadetl/observe",
	"go.opentelemetry.io/contrib": "cmd/leadetl/observe",
}

// maxFiles is how many files of code a folder may have. What decides where a wall stands
// is the idea of a package, not their number: at 16, seven packages were cut at the number.
const maxFiles = 20

// inits lists the packages that may have a func init, with the reason.
var inits = map[string]string{}

// violations says what is wrong with a package, a sentence each.
func violations(p pkg) []string {
	var found []string
	fail := func(format string, args ...any) { found = append(found, p.path+" "+fmt.Sprintf(format, args...)) }
	if _, known := below[family(p.path)]; !known && p.path != "." {
		fail("is in no family that has its place")
	}
	for _, i := range p.imports {
		if reason := refuse(p.path, i.path); reason != "" {
			fail("imports %s: %s", i.path, reason)
		}
		if i.blank {
			fail("imports %s for its effects: wire it in cmd", i.path)
		}
	}
	for _, to := range p.outside {
		for module, owner := range owners {
			if strings.HasPrefix(to, module) && p.path != owner {
				fail("imports %s: only %s does", to, owner)
			}
		}
	}
	if p.files > maxFiles {
		fail("has %d files of code, and may have %d: it holds more than one idea", p.files, maxFiles)
	}
	if _, allowed := inits[p.path]; p.inits > 0 && !allowed {
		fail("has a func init: wire it in cmd")
	}
	if kind := p.commentWord() + " "; !strings.HasPrefix(p.doc, kind) {
		fail("has no package comment that begins with %q", strings.TrimSpace(kind))
	}
	return found
}

// refuse says why the package at from must not import the one at to; "" means
// it may. Both paths are relative to the module.
func refuse(from, to string) string {
	above, under := family(from), family(to)
	switch {
	case forTests(to) && !forTests(from):
		return "it is for tests"
	case above == under:
		return refuseRelative(from, to)
	case from == "resolution":
		return "the types of resolution import nothing of ours"
	case siblings[[2]string{from, to}] != "":
		return ""
	case !slices.Contains(below[above], under):
		return fmt.Sprintf("%s is not below %s", under, above)
	case above != "cmd" && isInside(to, under) && under != "internal" && under != "transforms" && leaves[to] == "":
		return fmt.Sprintf("%s knows %s by its head alone", above, under)
	}
	return ""
}

// forTests reports whether only tests, and what is for them, may import a package.
func forTests(p string) bool {
	return strings.HasSuffix(p, "test") || strings.HasPrefix(p, "internal/testkit/")
}

// refuseRelative is refuse inside one family.
func refuseRelative(from, to string) string {
	switch {
	case family(from) == "internal":
		return ""
	case from == "resolution":
		return "the types of resolution import nothing of ours"
	case isInside(to, from), isInside(to, heads[from]):
		return ""
	case leaves[to] != "":
		return ""
	case slices.Contains(rooms, to) && slices.Index(rooms, from) > slices.Index(rooms, to):
		return ""
	case to == "resolution" || siblings[[2]string{from, to}] != "":
		return ""
	case isInside(from, to):
		return "a folder does not import the one it lies in"
	}
	return "siblings do not import each other"
}

// family is the first folder of a path.
func family(p string) string {
	first, _, _ := strings.Cut(p, "/")
	return first
}

func isInside(p, folder string) bool { return strings.HasPrefix(p, folder+"/") }

// commentWord is how a package comment begins: godoc's two forms.
func (p pkg) commentWord() string {
	if p.name == "main" {
		return "Command " + path.Base(p.path)
	}
	return "Package " + p.name
}
