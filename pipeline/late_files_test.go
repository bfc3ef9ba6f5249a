package pipeline_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// TestLateFiles: a run ends on a file of the dataset that the store does not show, to be repeated. The next run
// that ends on the same one says that it is lost. Once the store shows all, the same command finishes the dataset.
func TestLateFiles(t *testing.T) {
	for name, hides := range map[string]string{"a part": "/out/part-00001.parquet", "rejects": "/_rejects/part-00000.parquet"} {
		t.Run(name, func(t *testing.T) {
			store := s3test.NewLate(t)
			store.Hides = hides
			s := five(t, t.TempDir())
			s.out = "s3://leads/out"
			run := func() error {
				s.objects = store.Client(t, 0, time.Nanosecond)
				_, err := s.do(t.Context())
				return err
			}
			for range 2 {
				err := run()
				if !errors.Is(err, objects.ErrLate) || !strings.Contains(err.Error(), hides) || !strings.Contains(err.Error(), "doctor --state "+s.stateDir()) {
					t.Fatalf("the first run ended with %v", err)
				}
				for range 2 {
					if err := run(); err == nil || errors.Is(err, objects.ErrLate) || !strings.Contains(err.Error(), filepath.Base(hides)) {
						t.Errorf("the next run ended with %v", err)
					}
				}
				shown := store.Hides
				store.Hides = ""
				if err := run(); err != nil {
					t.Fatal(err)
				}
				s.overwrite, store.Hides = true, shown
			}
		})
	}
}
