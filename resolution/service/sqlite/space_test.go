package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution"
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

// TestLogShrinks: a log that a long read let grow is cut when it can be used again.
func TestLogShrinks(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir)
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, DatabaseName+"-wal"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	reading, err := s.db.reads.BeginTx(t.Context(), nil)
	if err == nil {
		err = reading.QueryRowContext(t.Context(), "SELECT count(*) FROM organizations").Scan(new(int))
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 600 {
		if err := s.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	grown := size()
	if err := reading.Rollback(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if after := size(); grown < 32<<20 || after > 17<<20 {
		t.Errorf("the log had %d bytes, and has %d", grown, after)
	}
}

// TestCheckNeedsRoom: where calls would fail for want of disk, the check fails too.
func TestCheckNeedsRoom(t *testing.T) {
	s := serve(t, t.TempDir())
	var pages int
	err := s.db.writer.Conn().QueryRowContext(t.Context(), "PRAGMA page_count").Scan(&pages)
	if err == nil {
		err = s.db.writer.Conn().QueryRowContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages+4)).Scan(&pages)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); !errors.Is(err, resolution.ErrUnavailable) {
		t.Errorf("with 16 KiB of room: %v, want ErrUnavailable", err)
	}
}
