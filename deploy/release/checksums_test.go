package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
)

// TestChecksums: all files of the release are in the list, the list is right, and
// minisign accepts its signature, and that of no other list.
func TestChecksums(t *testing.T) {
	folder := dist(t)
	sums, err := os.ReadFile(filepath.Join(folder, sumsName))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if listed := strings.Contains(string(sums), "  "+e.Name()+"\n"); listed == strings.HasPrefix(e.Name(), sumsName) {
			t.Errorf("%s is listed: %v", e.Name(), listed)
		}
	}
	needs(t, "sha256sum")
	run(t, folder, "sha256sum", "--quiet", "--strict", "-c", sumsName)
	key, err := filepath.Abs("testdata/minisign.pub")
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, ".", "go", "tool", "minisign", "-Vm", filepath.Join(folder, sumsName), "-p", key); !strings.Contains(got, "Trusted comment: leadetl 0.9.0\n") {
		t.Errorf("minisign: %s", got)
	}
	other := filepath.Join(t.TempDir(), sumsName)
	if err := os.WriteFile(other, bytes.ToUpper(sums), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "tool", "minisign", "-Vm", other, "-x", filepath.Join(folder, sumsName+".minisig"), "-p", key).CombinedOutput(); err == nil {
		t.Errorf("minisign accepts another list: %s", out)
	}
}

// TestComponents: the list of components has the modules of the program, with their versions.
func TestComponents(t *testing.T) {
	needs(t, "tar")
	folder, root := dist(t), t.TempDir()
	installArchive(t, only(t, folder, "*.tar.gz"), root)
	info, err := buildinfo.ReadFile(filepath.Join(root, "bin/leadetl"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(only(t, folder, "*.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bom cyclonedx.BOM
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	if c := bom.Metadata.Component; c.Name != "github.com/leadetl/leadetl" || c.Version != "v0.9.0" {
		t.Errorf("it is about %s %s", c.Name, c.Version)
	}
	for _, module := range info.Deps {
		if !slices.ContainsFunc(*bom.Components, func(c cyclonedx.Component) bool { return c.Name == module.Path && c.Version == module.Version }) {
			t.Errorf("no %s %s", module.Path, module.Version)
		}
	}
	if len(*bom.Components) != len(info.Deps)+1 {
		t.Errorf("%d components, want the %d modules and Go", len(*bom.Components), len(info.Deps))
	}
}
