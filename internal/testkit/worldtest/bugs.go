package worldtest

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// bugsVariable is set to plant the bugs whose names it begins, "all" for all: each is compiled
// and looked for.
const bugsVariable = "LEADETL_WORLD_BUGS"

// Bugs are changes of the product that break a promise. Each has a name, a file, a text that is
// in one place of it, and the text that takes its place.
type Bugs [][4]string

type bug struct{ name, file, old, new string }

// plant returns the file of a bug with the bug in it.
func (b bug) plant(t *testing.T, module string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(module, b.file))
	must(t, err)
	if n := strings.Count(string(text), b.old); n != 1 {
		t.Fatalf("%s: %s has its old text %d times: bring it up to date", b.name, b.file, n)
	}
	return strings.Replace(string(text), b.old, b.new, 1)
}

// PlantedBugs plants each bug in a copy of its file, and tries seeds until one finds it, or the tests
// that have to. Without the environment variable it only checks that each can be planted. It is called
// by TestPlantedBugs.
func (s Suite) PlantedBugs(t *testing.T) {
	chosen := os.Getenv(bugsVariable)
	try := func(one [4]string, find func(t *testing.T, b bug, file, text string)) {
		b := bug{one[0], one[1], one[2], one[3]}
		text := b.plant(t, s.Module)
		if chosen == "all" || chosen != "" && strings.HasPrefix(b.name, chosen) {
			t.Run(b.name, func(t *testing.T) { find(t, b, filepath.Join(s.Module, b.file), text) })
		}
	}
	for _, one := range s.Planted {
		try(one, func(t *testing.T, b bug, file, text string) { b.find(t, file, text) })
	}
	for _, folder := range slices.Sorted(maps.Keys(s.Tested)) {
		for _, one := range s.Tested[folder] {
			try(one, func(t *testing.T, b bug, file, text string) {
				b.findByTests(t, filepath.Join(s.Module, folder), file, text)
			})
		}
	}
}

// findByTests runs the tests of a folder, one of which has to find the bug.
func (b bug) findByTests(t *testing.T, folder, file, text string) {
	binary, out, err := compile(t, folder, file, text)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	said, err := tests(t, binary, folder, 10*time.Minute)
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("no test of %s finds it: %v", folder, err)
	}
	t.Logf("%s: %v: %s", b.name, err, said)
}

// mostSeeds is more seeds than 100,000 lives take.
const mostSeeds = 25_000

// foundBy is what a process says of the seed that failed.
var foundBy = regexp.MustCompile(`seed \d+: (.*)`)

func (b bug) find(t *testing.T, file, text string) {
	binary, out, err := compile(t, ".", file, text)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err = part{first: 1, step: 1, seeds: mostSeeds}.try(t, 30*time.Minute, binary, "TestWorld")
	if err == nil {
		t.Fatalf("no seed finds it: %s", out)
	}
	said := foundBy.FindStringSubmatch(out)
	if said == nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%s: %v: %s", b.name, err, said[1])
}

// compile compiles the tests of a folder with another text in the place of a file.
func compile(t *testing.T, folder, file, text string) (binary, out string, err error) {
	dir := t.TempDir()
	other, overlay := filepath.Join(dir, "other.go"), filepath.Join(dir, "overlay.json")
	file, err = filepath.Abs(file)
	must(t, err, os.WriteFile(other, []byte(text), 0o600))
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {file: other}})
	must(t, err, os.WriteFile(overlay, replace, 0o600))
	binary = filepath.Join(dir, "test")
	c := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, ".")
	c.Dir = folder
	said, err := c.CombinedOutput()
	return binary, string(said), err
}
