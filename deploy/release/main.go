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
	programs := flag.String("programs", "", "programs, separated by commas; by default all")
	flag.Parse()
	if err := makeRelease(*root, *dist, *tag, *platforms, *programs); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

// makeRelease makes the files of the platforms, and signs them if MINISIGN_KEY names a key.
func makeRelease(root, dist, tag, platformNames, programNames string) error {
	platforms, err := parsePlatforms(platformNames)
	if err != nil {
		return err
	}
	programs, err := parsePrograms(programNames)
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
		for _, of := range programs {
			if err := r.makeProgram(of, p, shared, work); err != nil {
				return fmt.Errorf("%s for %s: %w", of.name, p, err)
			}
		}
	}
	return r.writeSums()
}

// makeProgram makes all files of a program for a platform. All but leadetl have an archive
// alone.
func (r *release) makeProgram(of program, p platform, shared []file, work string) error {
	path := filepath.Join(work, p.os+"_"+p.arch, of.name)
	if err := r.build(of, p, path); err != nil {
		return err
	}
	if err := r.writeComponents(of, p, path); err != nil {
		return err
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	texts, err := r.licenses(p, of)
	if err != nil {
		return err
	}
	files := []file{{"bin/" + of.name, 0o755, binary}, {"share/doc/" + of.name + "/" + licensesName, 0o644, texts}}
	if of.name == "leadetl" {
		return r.makePackages(p, append(files, shared...), binary, texts)
	}
	own, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	return r.writeArchive(of, p, append(files, file{"share/doc/" + of.name + "/LICENSE", 0o644, own}))
}

// makePackages makes the files of leadetl for a platform.
func (r *release) makePackages(p platform, files []file, binary, licenses []byte) error {
	if err := r.writeWheel(p, files); err != nil {
		return err
	}
	if p.os != "linux" {
		return r.writeArchive(allPrograms[0], p, files)
	}
	units, err := r.units()
	if err != nil {
		return err
	}
	files = append(files, units...)
	if err := r.writeArchive(allPrograms[0], p, files); err != nil {
		return err
	}
	if err := r.writePackages(p, files); err != nil {
		return err
	}
	return r.writeImage(p, binary, licenses)
}

// name is the name of a file of a program for a platform.
func (r *release) name(of program, p platform, extension string) string {
	return fmt.Sprintf("%s_%s_%s_%s%s", of.name, r.version, p.os, p.arch, extension)
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
