package cli

import (
	"runtime/debug"
	"strings"
)

// version is set by the build (-ldflags
// "-X github.com/leadetl/leadetl/cmd/leadetl/cli.version=1.2.3").
var version = ""

// ProgramVersion returns the name and version that manifests contain.
func ProgramVersion() string {
	if version != "" {
		return "leadetl " + version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return "leadetl " + strings.TrimPrefix(info.Main.Version, "v")
	}
	return "leadetl (devel)"
}
