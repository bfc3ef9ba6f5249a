package objectstate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/checksum"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// TestInspect: whatever is damaged of a state that a killed process left is found, and named.
func TestInspect(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct {
		object string // a pattern
		damage func(path string) error
		says   string
	}{
		"whole":                    {},
		"a segment is missing":     {"answers/*/log/000000000001.seg", os.Remove, "000000000001.seg is missing"},
		"a segment is cut":         {"answers/*/log/000000000001.seg", func(path string) error { return os.Truncate(path, 60) }, "000000000001.seg"},
		"a segment is there twice": {"answers/*/log/000000000001.seg", double("000000000002.seg"), "000000000002.seg"},
	} {
		t.Run(name, func(t *testing.T) {
			s := b.state(t, strings.ReplaceAll(name, " ", "-"))
			x, err := s.Write(t.Context(), people, filepath.Join(t.TempDir(), "copy"))
			must(t, err)
			for _, key := range []string{"a", "b", "c"} {
				_, err := x.Answers.Intent(t.Context(), question(key), answers.Send{Run: "run", At: noon})
				must(t, err)
			}
			x.halfMade = true // as a kill leaves it
			must(t, x.Close(t.Context()))
			if c.object != "" {
				found, err := filepath.Glob(filepath.Join(b.server.Dir, bucket, s.at.Key, c.object))
				if must(t, err); len(found) != 1 {
					t.Fatalf("%s: %q", c.object, found)
				}
				must(t, c.damage(found[0]))
			}
			found, err := s.Inspect(t.Context())
			if err != nil || (len(found.Damages) > 0) != (c.object != "") || len(found.Damages) > 0 && !strings.Contains(found.Damages[0].Error(), c.says) {
				t.Errorf("inspected: %+v, %v; want %q", found, err, c.says)
			}
		})
	}
}

// double puts the content of an object under another name, too.
func double(name string) func(path string) error {
	return func(path string) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(filepath.Dir(path), name), text, 0o644)
	}
}

// TestOtherForms: a segment with the right checksum and a form that is not known is refused by its name. It is no
// damage, so nothing is set aside.
func TestOtherForms(t *testing.T) {
	b := newBench(t)
	for name, change := range map[string]func(record []byte) []byte{
		"the next form of a record": func(record []byte) []byte { record[3]++; return record },
		"an unknown change":         func(record []byte) []byte { record[len(record)-1], record = 0, append(record, '?'); return record },
		"an unknown head":           func(record []byte) []byte { record[42] = '!'; return record },
	} {
		t.Run(name, func(t *testing.T) {
			s := b.state(t, strings.ReplaceAll(name, " ", "-"))
			leaveKilled(t, s)
			path := pick(t, filepath.Join(b.server.Dir, bucket, s.at.Key, "answers/*/log/*.seg"), -1)
			record, err := os.ReadFile(path)
			must(t, err)
			record = change(record)
			binary.LittleEndian.PutUint32(record[4:], uint32(len(record)-40))
			binary.LittleEndian.PutUint32(record[36:], checksum.Of(record[:36], record[40:]))
			_, err = s.store.Put(t.Context(), s.folder(people).Below("log/"+filepath.Base(path)), objects.ContentOf(record, ""))
			must(t, err)
			_, look := s.Look(t.Context(), people, filepath.Join(t.TempDir(), "copy"))
			_, inspect := s.Inspect(t.Context())
			_, repair := s.Repair(t.Context())
			for _, err := range []error{look, inspect, repair} {
				if _, other := errors.AsType[*format.Error](err); !other || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), filepath.Base(path)) {
					t.Errorf("got %v", err)
				}
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, record) {
				t.Errorf("it was changed: %v", err)
			}
		})
	}
}
