package journal_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/internal/store/folder"
	"github.com/leadetl/leadetl/internal/testkit/memorytest"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/objectstate"
)

// TestRepair: in every kind of store, each kind of damage to each file is found, the file stays under another
// name, and the rest can be read.
func TestRepair(t *testing.T) {
	kinds := map[string]func([]byte) []byte{
		"missing":        nil,
		"empty":          func([]byte) []byte { return []byte{} },
		"cut":            func(text []byte) []byte { return text[:len(text)*2/3] },
		"another bit":    func(text []byte) []byte { text[len(text)/2] ^= 1; return text },
		"a wrong length": func(text []byte) []byte { text[4] ^= 1; return text },
		"zeroed":         func(text []byte) []byte { clear(text); return text },
		"longer":         func(text []byte) []byte { return append(text, text...) },
	}
	late := s3test.NewLate(t)
	for where, make := range map[string]func(t *testing.T) (store.Store, *journal.State){
		"memory": func(*testing.T) (store.Store, *journal.State) {
			files := memorytest.New()
			return files, journal.In(files)
		},
		"folder": func(t *testing.T) (store.Store, *journal.State) {
			files := folder.Private(disk.Dir(t.TempDir()))
			return files, journal.In(files)
		},
		"S3": func(t *testing.T) (store.Store, *journal.State) {
			s, err := objectstate.Open(late.Client(t, 0, 0), "s3://leads/"+hex.EncodeToString([]byte(t.Name()))+"/")
			must(t, err)
			return s.AsFound().Files(), journal.OnS3(s.AsFound())
		},
	} {
		for _, c := range []struct {
			prefix string
			which  int // of those with the prefix
			unseen string
		}{
			{"journal/", 0, "missing"},
			{"journal/", 1, ""},
			{"journal/", 2, "missing"},
			{"beside/header", 0, "missing"},
			{"nights/", 0, "missing"},
		} {
			for kind, damage := range kinds {
				if kind == c.unseen {
					continue // as docs/guarantees.md says
				}
				t.Run(where+" "+strings.ReplaceAll(c.prefix, "/", " ")+fmt.Sprint(c.which)+" "+kind, func(t *testing.T) {
					files, s := make(t)
					p, err := s.Progress(t.Context(), "s3://leads/out/", false)
					must(t, err, p.Put("header", []byte("{}")), p.Begin([]byte("{}\n")), p.Append([]byte(`{"number":1}`+"\n")), p.Append([]byte(`{"number":2}`+"\n")), p.Release(), finish(t, s, "monday", 1))
					var names []string
					for info, err := range files.List(t.Context(), "") {
						if must(t, err); strings.Contains(info.Name, c.prefix) {
							names = append(names, info.Name)
						}
					}
					text, err := files.Read(t.Context(), names[c.which])
					must(t, err)
					if damage == nil {
						must(t, files.Remove(t.Context(), names[c.which]))
					} else {
						text = damage(text)
						must(t, files.Put(t.Context(), names[c.which], bytes.Clone(text)))
					}
					inspect := func() (damages int) {
						nights, err := s.InspectNights(t.Context())
						runs, other := s.Inspect(t.Context())
						if must(t, err, other); len(runs) != 1 {
							t.Fatalf("there are %+v", runs)
						}
						return len(nights.Damages) + len(runs[0].Damages)
					}
					if inspect() == 0 {
						t.Fatal("the damage is not found")
					}
					aside, err := s.Repair(t.Context())
					more, other := s.RepairNights(t.Context())
					must(t, err, other)
					if aside = append(aside, more...); damage != nil && !slices.Equal(aside, []string{files.Path(names[c.which] + ".damaged")}) {
						t.Errorf("set aside %q", aside)
					}
					if damage != nil {
						kept, err := files.Read(t.Context(), names[c.which]+".damaged")
						if must(t, err); !bytes.Equal(kept, text) {
							t.Errorf("it has %d bytes, not %d", len(kept), len(text))
						}
					}
					if inspect() > 0 {
						t.Fatal("there is damage after the repair")
					}
					checkParts(t, s, c.prefix, c.which)
				})
			}
		}
	}
}

// checkParts reads the journal: the part whose record was damaged is lost alone.
func checkParts(t *testing.T, s *journal.State, prefix string, which int) {
	t.Helper()
	p, err := s.Progress(t.Context(), "s3://leads/out/", true)
	must(t, err)
	_, parts, err := journal.New(p).Read()
	want := []int{1, 2}
	if prefix == "journal/" && which > 0 {
		want = []int{3 - which}
	}
	if got := slices.Sorted(maps.Keys(parts)); err != nil || !slices.Equal(got, want) {
		t.Errorf("read %v, %v; want %v", got, err, want)
	}
}
