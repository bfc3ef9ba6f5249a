package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// platform is a system and a processor, as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

var allPlatforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// parsePlatforms reads names separated by commas; "" is all.
func parsePlatforms(names string) (chosen []platform, err error) {
	if names == "" {
		return allPlatforms, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(allPlatforms, func(p platform) bool { return p.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("PLATFORMS has %q; there are %v", name, allPlatforms)
		}
		chosen = append(chosen, allPlatforms[i])
	}
	return chosen, nil
}

// program is what a release is made of: a folder that is a module, and the package in it.
type program struct{ name, module, source string }

var allPrograms = []program{{"leadetl", ".", "./cmd/leadetl"}, {"leadetl-iceberg", "cmd/leadetl-iceberg", "."}}

// parsePrograms reads names separated by commas; "" is all.
func parsePrograms(names string) (chosen []program, err error) {
	if names == "" {
		return allPrograms, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(allPrograms, func(p program) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("PROGRAMS has %q; there are leadetl and leadetl-iceberg", name)
		}
		chosen = append(chosen, allPrograms[i])
	}
	return chosen, nil
}

// build compiles a program. What git says of the checkout is not in it: that
// depends on the tags that a clone has.
func (r *release) build(of program, p platform, to string) error {
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X github.com/leadetl/leadetl/cmd/leadetl/cli.version="+r.version.String(), "-o", to, of.source)
	c.Dir, c.Stderr, c.Env = filepath.Join(r.root, of.module), os.Stderr, buildEnvironment(p)
	if err := c.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	return nil
}

// buildEnvironment is the environment in which Go compiles for a platform.
func buildEnvironment(p platform) []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "PWD=")
}

// file is a file of the archives and packages, by its path below a prefix such as /usr/local.
type file struct {
	path string
	mode os.FileMode
	data []byte
}

// documents makes the files that are the same for all platforms. It builds the program
// for this machine, which prints its completions and its help.
func (r *release) documents(work string) (files []file, err error) {
	for path, from := range map[string]string{"LICENSE": "LICENSE", "CHANGELOG.md": "CHANGELOG.md", "nightly.sh": "testdata/nightly.sh"} {
		data, err := os.ReadFile(filepath.Join(r.root, from))
		if err != nil {
			return nil, err
		}
		files = append(files, file{"share/doc/leadetl/" + path, 0o644, data})
	}
	program := filepath.Join(work, "host", "leadetl")
	if err := r.build(allPrograms[0], platform{runtime.GOOS, runtime.GOARCH}, program); err != nil {
		return nil, err
	}
	for shell, path := range map[string]string{
		"bash": "share/bash-completion/completions/leadetl",
		"zsh":  "share/zsh/site-functions/_leadetl",
		"fish": "share/fish/vendor_completions.d/leadetl.fish",
	} {
		text, err := output(program, "completion", shell)
		if err != nil {
			return nil, err
		}
		files = append(files, file{path, 0o644, []byte(text)})
	}
	page, err := r.manPage(func(args ...string) (string, error) { return output(program, args...) })
	if err != nil {
		return nil, err
	}
	files = append(files, file{"share/man/man1/leadetl.1", 0o644, []byte(page)})
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return files, nil
}

// output runs the program. The defaults that its help shows are those of a machine
// with eight cores.
func output(program string, args ...string) (string, error) {
	c := exec.Command(program, args...)
	c.Env = []string{"GOMAXPROCS=8", "HOME=/root"}
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("leadetl %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// units reads the units of systemd. They lie where systemd finds them and are not enabled.
func (r *release) units() (files []file, err error) {
	for _, pattern := range []string{"*.service", "*.timer"} {
		paths, err := filepath.Glob(filepath.Join(r.root, "deploy", pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			files = append(files, file{"lib/systemd/system/" + filepath.Base(path), 0o644, data})
		}
	}
	return files, nil
}
