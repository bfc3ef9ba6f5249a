//go:build unix

package clitest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/sinks"
)

// S3Bucket is the bucket of every server.
const S3Bucket = "leads"

// S3Job is a user whose lists or datasets are on S3.
type S3Job struct {
	testing.TB
	Server *s3test.Server
	Proxy  *s3test.Proxy
	folder string
}

// NewS3Job starts a server of its own.
func NewS3Job(t *testing.T) *S3Job {
	t.Helper()
	return NewS3JobOn(t, s3test.Start(t, S3Bucket))
}

// NewS3JobOn is NewS3Job on a server with the bucket S3Bucket.
func NewS3JobOn(t *testing.T, server *s3test.Server) *S3Job {
	t.Helper()
	return &S3Job{t, server, s3test.NewProxy(t, server), t.TempDir()}
}

// Path is a path in a folder of the job.
func (j *S3Job) Path(name string) string { return filepath.Join(j.folder, name) }

// Object is where the server keeps an object.
func (j *S3Job) Object(key string) string { return filepath.Join(j.Server.Dir, S3Bucket, key) }

// Put puts an object of the sample data, or of text, where the server keeps it.
func (j *S3Job) Put(key, text string) {
	j.Helper()
	if err := os.MkdirAll(filepath.Dir(j.Object(key)), 0o755); err != nil {
		j.Fatal(err)
	}
	if err := os.WriteFile(j.Object(key), []byte(text), 0o644); err != nil {
		j.Fatal(err)
	}
}

// Args are the arguments of a run of email_to_hem.
func (j *S3Job) Args(in, out string, flags ...string) []string {
	args := OnStore(j.Proxy.URL, "run", "email_to_hem", "--in", in, "--out", out, "--state", j.Path("state"))
	return LastOfEach(slices.Concat(args, flags))
}

// jobCommands have a job, so that the address of a store is a key for them.
var jobCommands = []string{"run", "plan", "doctor", "survey", "part", "finish"}

// OnStore adds the address of an S3 store to a command, as the command takes it: a flag, or a key of the job. It adds nothing without an address.
func OnStore(url string, command ...string) []string {
	switch {
	case url == "":
		return command
	case slices.Contains(jobCommands, command[0]):
		return append(slices.Clone(command), "--set", "s3_endpoint="+url, "--set", "s3_path_style=true")
	}
	return append(slices.Clone(command), "--s3-endpoint", url, "--s3-path-style")
}

// Run runs a job to its end, which has to be with that code, and returns what
// it said.
func (j *S3Job) Run(want int, in, out string, flags ...string) string {
	j.Helper()
	p := StartProgram(j, j.Args(in, out, flags...)...)
	if got := p.Code(); got != want {
		j.Fatalf("%s → %s ended with exit code %d, want %d:\n%s", in, out, got, want, Tail(p.Said.String()))
	}
	return p.Said.String()
}

// Rows is how many rows a dataset has.
func (j *S3Job) Rows(key string) int64 {
	j.Helper()
	var m sinks.Manifest
	data, err := os.ReadFile(j.Object(key + "/_manifest.json"))
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		j.Fatal(err)
	}
	return m.Totals.Rows
}

// Files are the files of a folder by name, without what tells of a run.
func Files(t testing.TB, folder string) map[string]string {
	t.Helper()
	found := allFiles(t, folder)
	maps.DeleteFunc(found, func(name, _ string) bool { return strings.HasPrefix(name, "_report") || name == "_manifest.json" })
	if _, finished := found["_SUCCESS"]; finished {
		found["_SUCCESS"] = "" // the checksum of the manifest
	}
	return found
}

// allFiles are the files of a folder and of those in it, by name.
func allFiles(t testing.TB, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(folder, path)
		data, err := os.ReadFile(path)
		found[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// RequireNowhere looks for a text in the bytes of all files of a folder.
func RequireNowhere(t testing.TB, folder, text string) {
	t.Helper()
	files := allFiles(t, folder)
	for name, content := range files {
		if strings.Contains(content, text) {
			t.Errorf("%q is in %s", text, name)
		}
	}
	if len(files) == 0 {
		t.Errorf("%s has no files", folder)
	}
}

// RequireFiles compares the files of two folders.
func RequireFiles(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s: %q, want %q, or their contents differ", what, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// S3KillSeed makes the moments and the faults repeatable as far as other
// processes can be.
const S3KillSeed = 20_261_121

// EmailList is a list of that many rows, some of them rejected, and a line that
// is none.
func EmailList(rows int) string {
	var b strings.Builder
	b.WriteString("id,email\n")
	for i := range rows {
		if i%5_003 == 17 {
			b.WriteString("no row\n")
		}
		if i%1_009 == 1 {
			fmt.Fprintf(&b, "%d,invalid\n", i)
			continue
		}
		fmt.Fprintf(&b, "%d,person%d@mail.example\n", i, i)
	}
	return b.String()
}

// Landed is a list with a column of few values more.
func Landed(list string) string {
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSpace(list), "\n") {
		land := []string{"US", "", "a/b %", "🍕"}[i%4]
		switch {
		case i == 0:
			land = "land"
		case !strings.Contains(line, ","): // no row
			land = "of,any,kind"
		}
		b.WriteString(line + "," + land + "\n")
	}
	return b.String()
}

// Packed is a text as gzip has it.
func Packed(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
