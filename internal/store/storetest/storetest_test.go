package storetest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/internal/store/bucket"
	"github.com/leadetl/leadetl/internal/store/folder"
	"github.com/leadetl/leadetl/internal/store/storetest"
	"github.com/leadetl/leadetl/internal/testkit/memorytest"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
)

// kinds are the kinds of storage. Each function makes an empty store, and returns what opens it.
var kinds = []struct {
	name string
	make func(t *testing.T) (open func() store.Store)
}{
	{"folder", func(t *testing.T) func() store.Store {
		in := disk.Dir(t.TempDir()).In("made/store")
		return func() store.Store { return folder.Public(in) }
	}},
	{"private folder", func(t *testing.T) func() store.Store {
		in := disk.Dir(t.TempDir())
		return func() store.Store { return folder.Private(in) }
	}},
	{"memory", func(*testing.T) func() store.Store {
		m := memorytest.New()
		return func() store.Store { return m }
	}},
	{"S3", func(t *testing.T) func() store.Store {
		server := s3test.Start(t, "leads")
		s3test.Setenv(t)
		proxy := s3test.NewProxy(t, server) // at its end no connection is left
		return buckets(t, objects.New(t.Context(), objects.Options{Endpoint: proxy.URL, PathStyle: true, LateFor: time.Nanosecond}))
	}},
}

// buckets opens the store in a bucket.
func buckets(t *testing.T, client *objects.Store) func() store.Store {
	state := disk.Dir(t.TempDir())
	return func() store.Store {
		b, err := bucket.Open(client, "s3://leads/a/store", bucket.Options{State: state})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}

func TestStores(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			open := k.make(t)
			for _, fact := range storetest.Facts {
				t.Run(fact.Name, func(t *testing.T) { fact.Test(t, open(), open) })
			}
		})
	}
}

// TestSimulatedStores: so do stores on the disk and in the bucket of a world, over a network that loses
// and delays.
func TestSimulatedStores(t *testing.T) {
	s3test.Setenv(t)
	t.Setenv("AWS_CA_BUNDLE", "")
	for name, simulated := range map[string]func(t *testing.T, w *worldtest.World) func() store.Store{
		"disk": func(t *testing.T, w *worldtest.World) func() store.Store {
			d := worldtest.NewDisk(w)
			d.Slow = time.Second
			return func() store.Store { return folder.Private(d.In("state")) }
		},
		"bucket":             func(t *testing.T, w *worldtest.World) func() store.Store { return simulatedBucket(t, w, 0) },
		"bucket with faults": func(t *testing.T, w *worldtest.World) func() store.Store { return simulatedBucket(t, w, 0.2) },
	} {
		for _, fact := range storetest.Facts {
			t.Run(name+"/"+fact.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := worldtest.New(1, nil)
					w.Begin(t.Context(), 0)
					open := simulated(t, w)
					fact.Test(t, open(), open)
				})
			})
		}
	}
}

func simulatedBucket(t *testing.T, w *worldtest.World, failing float64) func() store.Store {
	b := worldtest.NewBucket(w, s3test.NewMemory(nil))
	b.Failing = failing
	return buckets(t, objects.New(t.Context(), objects.Options{Endpoint: "http://store.example", PathStyle: true, Machine: &objects.Machine{
		Host: "host", HTTP: b.From(w), Random: func() float64 { return 0.5 },
	}}))
}
