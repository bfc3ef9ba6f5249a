package storetest_test

import (
	"testing"

	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/internal/store/memory"
	"github.com/leadetl/leadetl/internal/store/storetest"
)

// kinds are the kinds of storage. Each function makes an empty store, and returns what opens it.
var kinds = []struct {
	name string
	make func(t *testing.T) (open func() store.Store)
}{
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
