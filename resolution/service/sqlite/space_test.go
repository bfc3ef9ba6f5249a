package sqlite

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// Whatever is stored comes back as it was, and is small on disk if it repeats itself.
func TestPack(t *testing.T) {
	list := []byte(strings.Repeat(`{"first_name":"Ada","last_name":"Example"},`, 1000))
	for _, c := range []struct {
		name   string
		body   []byte
		atMost int
	}{
		{"nothing", nil, 0},
		{"one record", list[:packedFrom-1], packedFrom - 1},
		{"a list", list, len(list) / 20},
		{"a list that is packed", pack(list), len(list) / 20},
	} {
		stored := pack(c.body)
		got, err := unpack(stored)
		if want, _ := unpack(c.body); err != nil || !bytes.Equal(got, want) || len(stored) > c.atMost {
			t.Errorf("%s: %d bytes are stored, at most %d wanted, and read as %d: %v", c.name, len(stored), c.atMost, len(got), err)
		}
	}
	if _, err := unpack(pack(list)[:100]); err == nil {
		t.Error("a damaged frame is read")
	}
}

// TestSpaceIsGivenBack: what is no longer kept takes no disk.
func TestSpaceIsGivenBack(t *testing.T) {
	dir := t.TempDir()
	opened := func(do func(*Store)) (size int64) {
		t.Helper()
		s, err := Serve(dir)
		if err != nil {
			t.Fatal(err)
		}
		do(s)
		if err := s.Close(); err != nil { // which moves the log into the database
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, DatabaseName))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	full := opened(func(s *Store) {
		_, err := s.db.writer.Conn().ExecContext(t.Context(), `INSERT INTO replies(at, key, fingerprint, status, body)
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) SELECT 1, randomblob(32), x'00', 200, randomblob(100000) FROM n`)
		if err != nil {
			t.Fatal(err)
		}
	})
	after := opened(func(s *Store) {
		if p, err := s.Purge(t.Context(), noon, state.DefaultRetention()); err != nil || p.Replies != 200 {
			t.Fatalf("%+v, %v", p, err)
		}
	})
	if after > keptPages*4096+full/10 {
		t.Errorf("the database has %d bytes of %d", after, full)
	}
}
