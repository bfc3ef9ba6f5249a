package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// writePackages writes the deb and the rpm.
func (r *release) writePackages(p platform, all []file) error {
	folder, err := os.MkdirTemp("", "leadetl-package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	for _, format := range []string{"deb", "rpm"} {
		contents, err := r.contents(format, filepath.Join(folder, format), all)
		if err != nil {
			return err
		}
		if err := r.writePackage(p, format, contents); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) writePackage(p platform, format string, contents files.Contents) (err error) {
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "leadetl", Arch: p.arch, Platform: p.os, Version: r.version.forPackage(), VersionSchema: "none", Release: "1",
		Section: "utils", Priority: "optional", Maintainer: authors, Vendor: authors, Description: summary, Homepage: homepage,
		License: license, MTime: r.time,
		Overridables: nfpm.Overridables{
			Contents: contents,
			RPM:      nfpm.RPM{BuildHost: "localhost", Group: "Applications/Databases"},
		},
	})
	out, err := r.create(r.name(allPrograms[0], p, "."+format))
	if err != nil {
		return err
	}
	defer func() { err = closed(out, err) }()
	return packager.Package(info, out)
}

// contents puts the files below /usr, where packages have them. nfpm reads them from a folder.
func (r *release) contents(format, folder string, all []file) (contents files.Contents, err error) {
	for _, f := range all {
		if f.path != "bin/leadetl" { // units and scripts name the path of the program
			f.data = bytes.ReplaceAll(f.data, []byte("/usr/local/bin/leadetl"), []byte("/usr/bin/leadetl"))
		}
		if format == "deb" {
			f.path = strings.Replace(f.path, "zsh/site-functions", "zsh/vendor-completions", 1)
		}
		source := filepath.Join(folder, f.path)
		if err := os.MkdirAll(filepath.Dir(source), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(source, f.data, 0o600); err != nil {
			return nil, err
		}
		contents = append(contents, &files.Content{
			Source: source, Destination: "/usr/" + f.path,
			FileInfo: &files.ContentFileInfo{Mode: f.mode, MTime: r.time, Owner: "root", Group: "root"},
		})
	}
	return contents, nil
}
