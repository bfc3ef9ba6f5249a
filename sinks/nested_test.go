package sinks

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// TestNestedDatasetsAreRefused: no dataset is written below or above another
// one, by whatever path, and the error names both.
func TestNestedDatasetsAreRefused(t *testing.T) {
	t.Run("folder", func(t *testing.T) {
		root := t.TempDir()
		if err := os.Symlink(filepath.Join(root, "lake"), filepath.Join(root, "link")); err != nil {
			t.Fatal(err)
		}
		testNested(t, root+"/", root, Options{})
		requireNested(t, root+"/link/hems/dt=3", root+"/lake/hems", Options{})
	})
	t.Run("bucket", func(t *testing.T) {
		server := s3test.Start(t, "leads")
		s3test.Setenv(t)
		proxy := s3test.NewProxy(t, server)
		o := Options{Objects: objects.New(t.Context(), objects.Options{Endpoint: proxy.URL, PathStyle: true}), State: disk.Dir(t.TempDir())}
		testNested(t, "s3://leads/", filepath.Join(server.Dir, "leads"), o)
	})
}

// testNested works on datasets whose files can be seen below root.
func testNested(t *testing.T, uri, root string, o Options) {
	write(t, root, "lake/hems/_manifest.json", "lake/hems/_SUCCESS", "lake/hems/part-00000.parquet")
	write(t, root, "lake/begun/part-00003.parquet")
	write(t, root, "lake/nights/dt=1/_manifest.json", "lake/nights/dt=1/part-00000.parquet")
	write(t, root, "spark/_SUCCESS", "spark/part-00000-4e6f.snappy.parquet")
	for out, other := range map[string]string{
		"lake/hems/dt=2":     "lake/hems",
		"lake/hems/a/b/c":    "lake/hems",
		"lake/hems/_rejects": "lake/hems",
		"lake/begun/dt=1":    "lake/begun",
		"lake/nights":        "lake/nights/dt=1",
		"lake":               "lake/hems",
	} {
		if out == "lake" { // any of the three
			other = "lake/"
		}
		requireNested(t, uri+out, uri+other, o)
		if _, err := os.Stat(filepath.Join(root, "lake/hems/a")); err == nil {
			t.Errorf("%s: a folder was left", out)
		}
	}
	for _, out := range []string{"lake/nights/dt=2", "lake/new", "lake/hems", "lake/hems2", "spark/leads"} {
		d, err := Open(t.Context(), uri+out, o)
		if err != nil {
			t.Errorf("%s: %v", out, err)
			continue
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// requireNested opens a dataset that is to be refused because of another one.
func requireNested(t *testing.T, out, other string, o Options) {
	t.Helper()
	d, err := Open(t.Context(), out, o)
	if err == nil {
		d.Close()
	}
	if !errors.Is(err, ErrNested) || !strings.HasPrefix(err.Error(), out) || !strings.Contains(err.Error(), other) {
		t.Errorf("%s: %v; want it refused because of %s", out, err, other)
	}
}
