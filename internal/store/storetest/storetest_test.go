package storetest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/internal/store/folder"
	"github.com/leadetl/leadetl/internal/store/memory"
	"github.com/leadetl/leadetl/internal/store/storetest"
	"github.com/leadetl/leadetl/internal/worldtest"
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
		m := memory.New()
		return func() store.Store { return m }
	}},
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

// TestSimulatedStores: so do stores on the disk of a world.
func TestSimulatedStores(t *testing.T) {
	for name, simulated := range map[string]func(t *testing.T, w *worldtest.World) func() store.Store{
		"disk": func(t *testing.T, w *worldtest.World) func() store.Store {
			d := worldtest.NewDisk(w)
			d.Slow = time.Second
			return func() store.Store { return folder.Private(d.In("state")) }
		},
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
