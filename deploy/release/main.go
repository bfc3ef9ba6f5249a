// Command release makes the files of a release: archives, packages, wheels and images,
// and the list of their checksums. Every file depends on nothing but the source, the
// version and the time of the commit: whoever makes them again gets the same bytes.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	summary  = "Turn lists of identifiers into lead data"
	homepage = "https://github.com/leadetl/leadetl"
	authors  = "The leadetl authors"
	license  = "Apache-2.0"
)

// release is what is made, and where.
type release struct {
	root    string // of the repository
	dist    string
	version version
	time    time.Time // of all that is made
	made    []string  // names of files in dist
}

func main() {
	root := flag.String("root", "../..", "root of the repository")
	dist := flag.String("dist", "../../dist", "folder of the files")
	tag := flag.String("version", "", "version, such as v0.9.0; by default that of git")
	platforms := flag.String("platforms", "", "platforms, separated by commas; by default all")
	flag.Parse()
	if err := makeRelease(*root, *dist, *tag, *platforms); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

// makeRelease makes the files of the platforms, and signs them if MINISIGN_KEY names a key.
func makeRelease(root, dist, tag, names string) error {
	platforms, err := parsePlatforms(names)
	if err != nil {
		return err
	}
	r := &release{root: root, dist: dist}
	if r.version, err = findVersion(root, tag); err != nil {
		return err
	}
	if r.time, err = findTime(root); err != nil {
		return err
	}
	if err := emptyDist(dist); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "leadetl-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	shared, err := r.documents(work)
	if err != nil {
		return err
	}
	for _, p := range platforms {
		if err := r.makePlatform(p, shared, work); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return r.writeSums()
}

// makePlatform makes all files of a platform.
func (r *release) makePlatform(p platform, shared []file, work string) error {
	program := filepath.Join(work, p.os+"_"+p.arch, "leadetl")
	if err := r.build(p, program); err != nil {
		return err
	}
	binary, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	files := append([]file{{"bin/leadetl", 0o755, binary}}, shared...)
	if err := r.writeWheel(p, files); err != nil {
		return err
	}
	if err := r.writeComponents(p, program); err != nil {
		return err
	}
	if p.os != "linux" {
		return r.writeArchive(p, files)
	}
	units, err := r.units()
	if err != nil {
		return err
	}
	files = append(files, units...)
	if err := r.writeArchive(p, files); err != nil {
		return err
	}
	if err := r.writePackages(p, files); err != nil {
		return err
	}
	return r.writeImage(p, binary)
}

// name is the name of a file for a platform.
func (r *release) name(p platform, extension string) string {
	return fmt.Sprintf("leadetl_%s_%s_%s%s", r.version, p.os, p.arch, extension)
}

// create opens a file of the release.
func (r *release) create(name string) (*os.File, error) {
	r.made = append(r.made, name)
	fmt.Println(name)
	return os.Create(filepath.Join(r.dist, name))
}

// emptyDist makes the folder, and removes what a release before left there.
func emptyDist(dist string) error {
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dist)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "leadetl") || strings.HasPrefix(e.Name(), sumsName) {
			if err := os.Remove(filepath.Join(dist, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
