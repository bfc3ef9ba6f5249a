package objects_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

const bucket = "lists"

// stores starts a server with a bucket, a proxy in front of it, and a store
// that goes through the proxy.
func stores(t *testing.T) (*s3test.Server, *s3test.Proxy, *objects.Store) {
	t.Helper()
	server := s3test.Start(t, bucket)
	proxy := s3test.NewProxy(t, server)
	s3test.Setenv(t)
	return server, proxy, through(t, proxy)
}

func through(t *testing.T, proxy *s3test.Proxy) *objects.Store {
	t.Helper()
	return objects.New(t.Context(), objects.Options{Endpoint: proxy.URL, PathStyle: true})
}

func at(key string) objects.Location { return objects.Location{Bucket: bucket, Key: key} }

// onDisk is what the server holds under a key.
func onDisk(t *testing.T, s *s3test.Server, key string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.Dir, bucket, key))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
