//go:build unix

package main

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

	"github.com/leadetl/leadetl/internal/s3test"
	"github.com/leadetl/leadetl/sinks"
)

const s3Bucket = "leads"

// s3Job is a user whose lists or datasets are on S3.
type s3Job struct {
	testing.TB
	server *s3test.Server
	proxy  *s3test.Proxy
	folder string
}

func newS3Job(t *testing.T) *s3Job {
	t.Helper()
	server := s3test.Start(t, s3Bucket)
	return &s3Job{t, server, s3test.NewProxy(t, server), t.TempDir()}
}

func (j *s3Job) path(name string) string { return filepath.Join(j.folder, name) }

// object is where the server keeps an object.
func (j *s3Job) object(key string) string { return filepath.Join(j.server.Dir, s3Bucket, key) }

// put puts an object of the sample data, or of text, where the server keeps it.
func (j *s3Job) put(key, text string) {
	j.Helper()
	if err := os.MkdirAll(filepath.Dir(j.object(key)), 0o755); err != nil {
		j.Fatal(err)
	}
	if err := os.WriteFile(j.object(key), []byte(text), 0o644); err != nil {
		j.Fatal(err)
	}
}

func (j *s3Job) args(in, out string, flags ...string) []string {
	args := []string{"run", "email_to_hem", "--in", in, "--out", out, "--state", j.path("state"), "--s3-endpoint", j.proxy.URL, "--s3-path-style"}
	return slices.Concat(args, flags)
}

// run runs a job to its end, which has to be with that code, and returns what
// it said.
func (j *s3Job) run(want int, in, out string, flags ...string) string {
	j.Helper()
	p := startProgram(j, j.args(in, out, flags...)...)
	if got := p.code(); got != want {
		j.Fatalf("%s → %s ended with exit code %d, want %d:\n%s", in, out, got, want, tail(p.said.String()))
	}
	return p.said.String()
}

// rows is how many rows a dataset has.
func (j *s3Job) rows(key string) int64 {
	j.Helper()
	var m sinks.Manifest
	data, err := os.ReadFile(j.object(key + "/_manifest.json"))
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		j.Fatal(err)
	}
	return m.Totals.Rows
}

// files are the files of a folder by name, without what tells of a run.
func files(t testing.TB, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(folder, path)
		data, err := os.ReadFile(path)
		if !strings.HasPrefix(name, "_report") && name != "_manifest.json" {
			found[name] = string(data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func requireFiles(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s: %q, want %q, or their contents differ", what, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// s3KillSeed makes the moments and the faults repeatable as far as other
// processes can be.
const s3KillSeed = 20_261_121

// emailList is a list of that many rows, some of them rejected, and a line that
// is none.
func emailList(rows int) string {
	var b strings.Builder
	b.WriteString("id,email\n")
	for i := range rows {
		if i%5_003 == 17 {
			b.WriteString("no row\n")
		}
		if i%1_009 == 1 {
			fmt.Fprintf(&b, "%d,nobody\n", i)
			continue
		}
		fmt.Fprintf(&b, "%d,person%d@mail.example\n", i, i)
	}
	return b.String()
}

// landed is a list with a column of few values more.
func landed(list string) string {
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

// packed is a text as gzip has it.
func packed(t testing.TB, text string) string {
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
