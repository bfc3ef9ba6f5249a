package main

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// wheelTags are the systems that a wheel is for. The program needs no C library.
var wheelTags = map[platform]string{
	{"linux", "amd64"}:  "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
	{"linux", "arm64"}:  "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
	{"darwin", "amd64"}: "macosx_12_0_x86_64",
	{"darwin", "arm64"}: "macosx_12_0_arm64",
}

// writeWheel writes a wheel with the program as its script.
func (r *release) writeWheel(p platform, files []file) (err error) {
	name := "leadetl-" + r.version.forWheel()
	out, err := r.create(name + "-py3-none-" + wheelTags[p] + ".whl")
	if err != nil {
		return err
	}
	defer func() { err = closed(out, err) }()
	z := zip.NewWriter(out)
	var record strings.Builder
	add := func(f file) error {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.path, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
		return r.zip(z, f)
	}
	for _, f := range append(files, r.wheelInfo(name, wheelTags[p])...) {
		switch {
		case f.path == "bin/leadetl":
			f.path = name + ".data/scripts/leadetl"
		case !strings.HasPrefix(f.path, name):
			f.path = name + ".data/data/" + f.path
		}
		if err := add(f); err != nil {
			return err
		}
	}
	list := name + ".dist-info/RECORD"
	if err := r.zip(z, file{list, 0o644, []byte(record.String() + list + ",,\n")}); err != nil {
		return err
	}
	return z.Close()
}

// wheelInfo returns what pip reads about the wheel.
func (r *release) wheelInfo(name, tags string) []file {
	about := fmt.Sprintf("Metadata-Version: 2.1\nName: leadetl\nVersion: %s\nSummary: %s\nHome-page: %s\nAuthor: %s\nLicense: %s\n",
		r.version.forWheel(), summary, homepage, authors, license)
	wheel := "Wheel-Version: 1.0\nGenerator: leadetl\nRoot-Is-Purelib: false\n"
	for tag := range strings.SplitSeq(tags, ".") {
		wheel += "Tag: py3-none-" + tag + "\n"
	}
	return []file{
		{name + ".dist-info/METADATA", 0o644, []byte(about)},
		{name + ".dist-info/WHEEL", 0o644, []byte(wheel)},
	}
}

func (r *release) zip(z *zip.Writer, f file) error {
	h := &zip.FileHeader{Name: f.path, Method: zip.Deflate, Modified: r.time}
	h.SetMode(f.mode)
	w, err := z.CreateHeader(h)
	if err != nil {
		return err
	}
	_, err = w.Write(f.data)
	return err
}
