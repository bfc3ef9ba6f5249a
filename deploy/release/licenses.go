package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licensesName is the file with the licenses of all modules of a program. MIT, BSD and
// Apache ask for the texts beside every copy.
const licensesName = "LICENSES.txt"

// licenseFile matches the names of files with a license or the notices that go with it.
var licenseFile = regexp.MustCompile(`(?i)^((un)?licen[cs]e|copying|notice|patents)[^/]*$`)

// withoutFile says, for the modules that have no license file, what their repositories
// say instead.
var withoutFile = map[string]struct{ says, file string }{
	"github.com/JohnCGriffin/overflow":             {"The README has the license.", "README.md"},
	"github.com/nexus-rpc/nexus-proto-annotations": {"The repository has no license file, and its README names no license (v0.1.0, read 2026-11-28).", ""},
}

// compiled is a package of a program, as go list prints it.
type compiled struct {
	ImportPath, Dir string
	Standard        bool
	Module          *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Dir string }
	}
}

// licenses returns the texts of the licenses of all modules below a program.
func (r *release) licenses(p platform, of program) ([]byte, error) {
	packages, err := r.compiledIn(p, of)
	if err != nil {
		return nil, err
	}
	files := map[string][]string{} // module with its version to paths of files
	folders := map[string]string{}
	for _, c := range packages {
		if c.Module == nil || c.Module.Main || c.Module.Replace != nil {
			continue // of the standard library, or ours
		}
		name := c.Module.Path + " " + c.Module.Version
		folders[name] = c.Module.Dir
		found, err := licenseFiles(c.Dir, c.Module.Dir)
		if err != nil {
			return nil, err
		}
		files[name] = append(files[name], found...)
	}
	if files["Go, its standard library"], err = goLicense(); err != nil {
		return nil, err
	}
	var all bytes.Buffer
	fmt.Fprintf(&all, "%s is licensed under %s; see LICENSE. These modules are compiled into it:\n", of.name, license)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := writeLicense(&all, name, folders[name], files[name]); err != nil {
			return nil, err
		}
	}
	return all.Bytes(), nil
}

// compiledIn lists the packages of a program for a platform.
func (r *release) compiledIn(p platform, of program) (packages []compiled, err error) {
	c := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,Standard,Module", of.source)
	c.Dir, c.Stderr, c.Env = filepath.Join(r.root, of.module), os.Stderr, buildEnvironment(p)
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var one compiled
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, one)
	}
}

// licenseFiles finds the license files of a package: in its folder and those above it,
// up to that of its module.
func licenseFiles(folder, module string) (paths []string, err error) {
	for {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !e.IsDir() && licenseFile.MatchString(e.Name()) && filepath.Ext(e.Name()) != ".go" {
				paths = append(paths, filepath.Join(folder, e.Name()))
			}
		}
		if folder == module || !strings.HasPrefix(folder, module) {
			return paths, nil
		}
		folder = filepath.Dir(folder)
	}
}

// goLicense finds the license files of the Go that compiles.
func goLicense() ([]string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	folder := strings.TrimSpace(string(root))
	return licenseFiles(folder, folder)
}

// writeLicense writes the texts of a module.
func writeLicense(to io.Writer, name, folder string, paths []string) error {
	rule := strings.Repeat("=", 80)
	fmt.Fprintf(to, "\n%s\n%s\n%[1]s\n", rule, name)
	slices.Sort(paths)
	paths = slices.Compact(paths)
	if len(paths) == 0 {
		module, _, _ := strings.Cut(name, " ")
		known, listed := withoutFile[module]
		if !listed {
			return fmt.Errorf("%s has no license file; read what its repository says, and add that to withoutFile in deploy/release/licenses.go", name)
		}
		fmt.Fprintf(to, "\n%s\n", known.says)
		if known.file != "" {
			paths = []string{filepath.Join(folder, known.file)}
		}
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(to, "\n%s\n", bytes.TrimSpace(text))
	}
	return nil
}
