package runcmd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// TestOldSettings: a submission removes what earlier ones of this output have left,
// but not what a client has just written, and nothing of other outputs.
func TestOldSettings(t *testing.T) {
	server := s3test.Start(t, "leads")
	s3test.Setenv(t)
	store := objects.New(t.Context(), objects.Options{Endpoint: server.URL, PathStyle: true, GiveUpAfter: 20 * time.Second})
	folder, err := ClusterFolder("s3://leads/state/", "ab")
	if err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(server.Dir, "leads", "state", "cluster")
	old := time.Now().Add(-2 * keepSettings)
	for name, aged := range map[string]bool{
		"ab/settings-1-mine.json": true, "ab/settings-1-detached.json": true, "ab/settings-2-failed.json": true, "ab/failure-3.txt": true,
		"ab/settings-1-next.json": false, "abc/settings-1-other.json": true,
	} {
		at, err := objects.ParseFolder("s3://leads/state/cluster/")
		if err == nil {
			_, err = store.Put(t.Context(), at.Below(name), objects.ContentOf([]byte("{}"), "application/json"))
		}
		if err == nil && aged {
			err = os.Chtimes(filepath.Join(disk, name), old, old)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	left := func() (names []string) {
		t.Helper()
		err := filepath.WalkDir(disk, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				name, relErr := filepath.Rel(disk, path)
				names, err = append(names, name), relErr
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return names
	}
	s := &submitted{folder: folder, settings: "settings-1-mine.json", store: store}
	s.removeOld(t.Context())
	if got, want := left(), []string{"ab/settings-1-mine.json", "ab/settings-1-next.json", "abc/settings-1-other.json"}; !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
	s.removeSettings(t.Context())
	if got, want := left(), []string{"ab/settings-1-next.json", "abc/settings-1-other.json"}; !slices.Equal(got, want) {
		t.Errorf("left %q at the end, want %q", got, want)
	}
}
