package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/sassoftware/go-rpmutils"
)

const repository = "../.."

// shared is the folder that made fills, for all tests.
var shared string

func TestMain(m *testing.M) {
	var err error
	if shared, err = os.MkdirTemp("", "leadetl-dist-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(shared)
	os.Exit(code)
}

// made makes the release of this machine, once.
var made = sync.OnceValue(func() error { return makeInto(shared, here.String()) })

var here = platform{runtime.GOOS, runtime.GOARCH}

// makeInto calls make release, with the test key. leadetl-iceberg takes minutes to compile;
// make release-twice makes it.
func makeInto(folder, platforms string) error {
	key, err := filepath.Abs("testdata/minisign.key")
	if err != nil {
		return err
	}
	c := exec.Command("make", "--no-print-directory", "release", "VERSION=v0.9.0", "PLATFORMS="+platforms, "PROGRAMS=leadetl", "DIST="+folder)
	c.Dir, c.Stdout, c.Stderr = repository, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), "MINISIGN_KEY="+key)
	return c.Run()
}

// dist returns the release, and skips a test on a machine that cannot make it.
func dist(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("NOT RUN: builds the program")
	}
	needs(t, "make", "go")
	if err := made(); err != nil {
		t.Fatal(err)
	}
	return shared
}

func needs(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("NOT RUN: %s is not installed", tool)
		}
	}
}

// run runs a command and returns what it printed.
func run(t *testing.T, folder, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = folder
	c.Env = append(os.Environ(), "PIP_NO_INDEX=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "XDG_STATE_HOME="+filepath.Join(folder, "state"))
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestInstall installs each kind of file in an empty folder, without a network, and runs
// the examples of leadetl sample with the program.
func TestInstall(t *testing.T) {
	folder := dist(t)
	for _, c := range []struct {
		extension string
		install   func(t *testing.T, file, root string)
		prefix    string // of all files, below the root
		program   string // where units call it
		without   string // what is not in it
	}{
		{".tar.gz", installArchive, "", "/usr/local/bin/leadetl", ""},
		{".deb", installDeb, "usr", "/usr/bin/leadetl", ""},
		{".rpm", installRPM, "usr", "/usr/bin/leadetl", ""},
		{".whl", installWheel, "", "", "lib/systemd"},
	} {
		t.Run(c.extension, func(t *testing.T) {
			if here.os != "linux" && (c.extension == ".deb" || c.extension == ".rpm") {
				t.Skip("NOT RUN: it is for linux")
			}
			began, root := time.Now(), t.TempDir()
			c.install(t, only(t, folder, "*"+c.extension), root)
			prefix := filepath.Join(root, c.prefix)
			runExample(t, filepath.Join(prefix, "bin/leadetl"))
			t.Logf("from the file to the first dataset: %v", time.Since(began).Round(time.Millisecond))
			requireDocuments(t, prefix)
			if c.program != "" && here.os == "linux" {
				requireUnits(t, root, prefix, c.program)
			}
		})
	}
}

// runExample runs the examples of leadetl sample with the installed program.
func runExample(t *testing.T, program string) {
	t.Helper()
	folder := t.TempDir()
	if got := run(t, folder, program, "version"); !strings.HasPrefix(got, "leadetl 0.9.0\n") {
		t.Errorf("version: %s", got)
	}
	t.Setenv("PATH", filepath.Dir(program)+":"+os.Getenv("PATH"))
	_, examples, _ := strings.Cut(run(t, folder, program, "sample", "--help"), "\nExamples:\n")
	examples, _, _ = strings.Cut(examples, "\n\n")
	run(t, folder, "sh", "-ec", examples)
	if _, err := os.Stat(filepath.Join(folder, "hems/_SUCCESS")); err != nil {
		t.Error(err)
	}
}

// only returns the one file that a pattern finds.
func only(t *testing.T, folder, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found[0]
}

func installArchive(t *testing.T, file, root string) {
	needs(t, "tar")
	run(t, root, "tar", "-xzf", file, "--strip-components", "1")
}

// installDeb installs as root does; others unpack.
func installDeb(t *testing.T, file, root string) {
	needs(t, "dpkg", "dpkg-deb")
	if os.Getuid() != 0 {
		run(t, root, "dpkg-deb", "-x", file, root)
		return
	}
	for _, folder := range []string{"var/lib/dpkg/updates", "var/lib/dpkg/info", "var/log"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, root, "dpkg", "--root", root, "-i", file)
	if got := run(t, root, "dpkg-query", "--admindir", filepath.Join(root, "var/lib/dpkg"), "-W", "-f", "${Status} ${Version}", "leadetl"); got != "install ok installed 0.9.0-1" {
		t.Errorf("installed: %s", got)
	}
}

func installWheel(t *testing.T, file, root string) {
	needs(t, "python3")
	run(t, root, "python3", "-m", "venv", root)
	run(t, root, filepath.Join(root, "bin/pip"), "install", "--no-index", file)
}

// installRPM unpacks the package: rpm is not on every machine.
func installRPM(t *testing.T, file, root string) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pkg, err := rpmutils.ReadRpm(f)
	if err != nil {
		t.Fatal(err)
	}
	name, err := pkg.Header.GetNEVRA()
	if err != nil || name.Name != "leadetl" || name.Version != "0.9.0" || name.Release != "1" {
		t.Errorf("%v, %v", name, err)
	}
	for _, script := range []int{rpmutils.PREIN, rpmutils.POSTIN} {
		if pkg.Header.HasTag(script) {
			t.Errorf("a script is run at the installation")
		}
	}
	if err := pkg.ExpandPayload(root); err != nil {
		t.Fatal(err)
	}
	files, err := pkg.Header.GetFiles()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files { // it unpacks without the modes
		if err := os.Chmod(filepath.Join(root, f.Name()), os.FileMode(f.Mode()).Perm()); err != nil || f.UserName() != "root" {
			t.Errorf("%s is of %s, %v", f.Name(), f.UserName(), err)
		}
	}
}

// TestLicenses: the license of each module that the list of components names is in the
// packages, and no text is empty.
func TestLicenses(t *testing.T) {
	var components struct {
		Components []struct{ Name, Version string }
	}
	data, err := os.ReadFile(only(t, dist(t), "*.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &components); err != nil || len(components.Components) < 50 {
		t.Fatalf("%d components, %v", len(components.Components), err)
	}
	root := t.TempDir()
	run(t, root, "tar", "-xzf", only(t, dist(t), "*.tar.gz"), "--strip-components", "1")
	licenses, err := os.ReadFile(filepath.Join(root, "share/doc/leadetl", licensesName))
	if err != nil {
		t.Fatal(err)
	}
	rule := strings.Repeat("=", 80)
	texts := strings.Split(string(licenses), "\n"+rule+"\n") // each name is followed by its texts
	of := map[string]string{}
	for i := 1; i+1 < len(texts); i += 2 {
		of[texts[i]] = strings.TrimSpace(texts[i+1])
	}
	for _, c := range components.Components {
		name := c.Name + " " + c.Version
		if c.Name == "std" {
			name = "Go, its standard library"
		}
		if text := of[name]; len(text) < 90 {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// requireDocuments: completions and man page are there, and shells and troff read them.
func requireDocuments(t *testing.T, prefix string) {
	t.Helper()
	for _, pattern := range []string{
		"share/bash-completion/completions/leadetl", "share/fish/vendor_completions.d/leadetl.fish", "share/zsh/*/_leadetl",
		"share/doc/leadetl/LICENSE", "share/doc/leadetl/LICENSES.txt", "share/doc/leadetl/CHANGELOG.md", "share/man/man1/leadetl.1",
	} {
		if info, err := os.Stat(only(t, prefix, pattern)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v", pattern, info, err)
		}
	}
	if _, err := exec.LookPath("bash"); err == nil {
		run(t, prefix, "bash", "-n", filepath.Join(prefix, "share/bash-completion/completions/leadetl"))
	}
	if _, err := exec.LookPath("groff"); err == nil {
		page := run(t, prefix, "groff", "-man", "-Tutf8", "-P-c", "-ww", filepath.Join(prefix, "share/man/man1/leadetl.1"))
		for _, want := range []string{"leadetl run", "--max-credits", "leadetl admin org create"} {
			if !strings.Contains(page, want) {
				t.Errorf("the man page has no %q", want)
			}
		}
		if strings.Contains(page, "leadetl.1:") {
			t.Errorf("groff warns: %.300s", page)
		}
	}
}

// requireUnits: the units of deploy are there, call the program where it is, and are
// not enabled.
func requireUnits(t *testing.T, root, prefix, program string) {
	t.Helper()
	var ours []string
	for _, pattern := range []string{"*.service", "*.timer"} {
		found, err := filepath.Glob(repository + "/deploy/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		ours = append(ours, found...)
	}
	installed, err := filepath.Glob(filepath.Join(prefix, "lib/systemd/system/*"))
	if err != nil || len(installed) != len(ours) || len(ours) == 0 {
		t.Errorf("units: %v of %v, %v", installed, ours, err)
	}
	for _, path := range append(installed, filepath.Join(prefix, "share/doc/leadetl/nightly.sh")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		if named := strings.Count(string(text), "/bin/leadetl"); named != strings.Count(string(text), program) {
			t.Errorf("%s calls another program than %s", path, program)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "etc")); err == nil {
		t.Error("something is enabled: etc is not empty")
	}
}

// TestImage: docker and podman find the image in its tar, it holds the program, and it is
// that of deploy/Dockerfile.
func TestImage(t *testing.T) {
	if here.os != "linux" {
		t.Skip("NOT RUN: images are for linux")
	}
	path := only(t, dist(t), "*.oci.tar")
	image, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	root := t.TempDir()
	requireLayout(t, path, root)
	runExample(t, filepath.Join(root, "leadetl"))
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	dockerfile, err := os.ReadFile(repository + "/deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(dockerfile), "\nFROM scratch\n")
	entry, err := json.Marshal(config.Config.Entrypoint)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"USER " + config.Config.User, "ENV " + config.Config.Env[0], "ENTRYPOINT " + string(entry), "VOLUME /state"} {
		if !strings.Contains(last, want+"\n") {
			t.Errorf("deploy/Dockerfile has no %s", want)
		}
	}
	if _, found := config.Config.Volumes["/state"]; !found || len(config.Config.Env) != 1 {
		t.Errorf("config: %+v", config.Config)
	}
}

// requireLayout follows index.json to the layer, as podman does, and unpacks it.
func requireLayout(t *testing.T, path, root string) {
	t.Helper()
	blobs := map[string][]byte{}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			blobs[h.Name], err = io.ReadAll(r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	get := func(d v1.Descriptor) []byte {
		t.Helper()
		data := blobs[blob(d.Digest)]
		if sum, size, err := v1.SHA256(bytes.NewReader(data)); err != nil || sum != d.Digest || size != d.Size {
			t.Fatalf("%s is %s, %d bytes, %v", d.Digest, sum, size, err)
		}
		return data
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(blobs["index.json"]))
	if err != nil || len(index.Manifests) != 1 || index.Manifests[0].Platform.Architecture != here.arch {
		t.Fatalf("index: %+v, %v", index, err)
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(get(index.Manifests[0])))
	if err != nil {
		t.Fatal(err)
	}
	get(manifest.Config)
	z, err := gzip.NewReader(bytes.NewReader(get(manifest.Layers[0])))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		switch h.Name {
		case "leadetl":
			if err := os.WriteFile(filepath.Join(root, h.Name), data, 0o755); err != nil {
				t.Fatal(err)
			}
		case "etc/ssl/certs/ca-certificates.crt":
			if n := bytes.Count(data, []byte("BEGIN CERTIFICATE")); n < 50 {
				t.Errorf("%d certificates", n)
			}
		case "state/":
			if h.Uid != user || h.Gid != user {
				t.Errorf("the state belongs to %d", h.Uid)
			}
		}
	}
	for _, want := range []string{"leadetl", licensesName, "state/", "tmp/", "etc/ssl/certs/ca-certificates.crt"} {
		if !slices.Contains(names, want) {
			t.Errorf("the image has no %s: %v", want, names)
		}
	}
}
