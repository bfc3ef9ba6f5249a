package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	makeCommand = regexp.MustCompile(`make"?,? "?([a-z][a-z-]+)`)
	makeSetting = regexp.MustCompile(`\b([A-Z]+)="?[a-z#$]`)
	madeFile    = regexp.MustCompile(`dist/[^\s"')]+`)
)

// TestDeploy: the targets, settings and files that the texts of deploy name exist.
func TestDeploy(t *testing.T) {
	folder, makefile := dist(t), read(t, "Makefile")
	// The values of this machine are what shells and Ruby put there.
	values := strings.NewReplacer("#{version}", "0.9.0", "#{os}", here.os, "#{arch}", here.arch, "$arch", here.arch)
	for _, name := range []string{"Dockerfile", "github-release.yml", "leadetl.rb"} {
		text := read(t, "deploy/"+name)
		released := false
		for _, m := range makeCommand.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s: there is no target %s", name, m[1])
			}
			released = released || m[1] == "release"
		}
		files := madeFile.FindAllString(text, -1)
		if !released || len(files) == 0 {
			t.Errorf("%s does not make a release, or uses no file of it", name)
		}
		for _, file := range files {
			if found, err := filepath.Glob(filepath.Join(folder, values.Replace(strings.TrimPrefix(file, "dist/")))); err != nil || len(found) == 0 {
				t.Errorf("%s: there is no %s, %v", name, file, err)
			}
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, "make") {
				for _, m := range makeSetting.FindAllStringSubmatch(line, -1) {
					if !strings.Contains(makefile, "$("+m[1]+")") {
						t.Errorf("%s: make release takes no %s", name, m[1])
					}
				}
			}
		}
	}
}

// TestFormula runs the test of the Homebrew formula with the program.
func TestFormula(t *testing.T) {
	folder, root := dist(t), t.TempDir()
	needs(t, "tar")
	installArchive(t, only(t, folder, "*.tar.gz"), root)
	text := read(t, "deploy/leadetl.rb")
	m := regexp.MustCompile(`\(testpath/"(.*)"\)\.write "(.*)"\n +system bin/"leadetl", (.*)\n +assert_path_exists testpath/"(.*)"`).FindStringSubmatch(text)
	if m == nil {
		t.Fatal("the formula has another test")
	}
	if err := os.WriteFile(filepath.Join(root, m[1]), []byte(strings.ReplaceAll(m[2], `\n`, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, root, filepath.Join(root, "bin/leadetl"), strings.Split(strings.Trim(m[3], `"`), `", "`)...)
	if _, err := os.Stat(filepath.Join(root, m[4])); err != nil {
		t.Error(err)
	}
}

// TestInstallPage: docs/install.md names every file of a release, and its commands verify one.
func TestInstallPage(t *testing.T) {
	page, folder := read(t, "docs/install.md"), dist(t)
	names := strings.NewReplacer("VERSION", "0.9.0", "…", "*", "linux_amd64", here.os+"_"+here.arch)
	named := 0
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\S+)`").FindAllStringSubmatch(page, -1) {
		named++
		if linux := regexp.MustCompile(`deb|rpm|oci`).MatchString(m[1]); here.os == "linux" || !linux {
			only(t, folder, names.Replace(m[1]))
		}
	}
	if entries, err := filepath.Glob(filepath.Join(folder, "leadetl*")); err != nil || here.os == "linux" && len(entries) != named {
		t.Errorf("docs/install.md names %d files, the release has %v, %v", named, entries, err)
	}
	needs(t, "sha256sum")
	_, verify, _ := strings.Cut(page, "\n## Verify\n")
	_, commands, _ := strings.Cut(verify, "```sh\n")
	commands, _, _ = strings.Cut(commands, "```")
	if strings.Count(commands, "\n") != 2 {
		t.Fatalf("commands: %s", commands)
	}
	// What a user has: one downloaded file, the lists, the key, and minisign.
	download := t.TempDir()
	for _, path := range []string{only(t, folder, "*.tar.gz"), filepath.Join(folder, sumsName), filepath.Join(folder, sumsName+".minisig"), "testdata/minisign.pub"} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(download, strings.Replace(filepath.Base(path), "minisign.pub", "leadetl.pub", 1)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	minisign := strings.TrimSpace(run(t, ".", "go", "tool", "-n", "minisign"))
	c := exec.Command("sh", "-ec", `minisign() { "$MINISIGN" "$@"; }`+"\n"+commands)
	c.Dir, c.Env = download, append(os.Environ(), "MINISIGN="+minisign)
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "leadetl 0.9.0") || !strings.Contains(string(out), ".tar.gz: OK") {
		t.Errorf("%s%v\n%s", commands, err, out)
	}
}
