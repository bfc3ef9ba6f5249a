package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// The inputs never change, so that results of different days and machines are
// about the same work.
func TestInputsAreTheSameEverywhere(t *testing.T) {
	d, err := newUserData(1000, 500, 3000)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		write func(file string) error
		want  string // first bytes of the SHA-256
	}{
		{"emails", func(file string) error { return writeEmails(file, 1000) }, "db109d7b"},
		{"companies", func(file string) error { return writeCompanies(file, 1000) }, "9a8e47f2"},
		{"ranges", func(file string) error { _, err := writeRanges(file, 1000, 100); return err }, "bb97fea9"},
		{"people", func(file string) error { return writePeople(file, 1000, 100) }, "7e78b038"},
		{"addresses", func(file string) error { return writeIPs(file, 1000, 200<<24) }, "2d52981a"},
		{"users' companies", d.writeCompanies, "e59bb028"},
		{"users' people", d.writePeople, "61fc7682"},
		{"users' ranges", d.writeRanges, "c427c592"},
		{"users' visits", d.writeVisits, "68232824"},
		{"users' addresses", func(file string) error { return d.writeIPs(file, 1000, false) }, "c55cf8ab"},
		{"users' addresses of visits", func(file string) error { return d.writeIPs(file, 1000, true) }, "5c3f6684"},
		{"users' profiles", func(file string) error { return d.writeProfiles(file, 1000) }, "b9675bef"},
		{"users' emails", func(file string) error { return d.writeEmails(file, 1000) }, "6283d7de"},
	} {
		file := filepath.Join(t.TempDir(), c.name)
		if err := c.write(file); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%.4x", sha256.Sum256(data)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestTooManyRanges(t *testing.T) {
	if _, err := writeRanges(filepath.Join(t.TempDir(), "ranges"), 3_000_000, 10); err == nil {
		t.Error("three million ranges: got no error, want one: they do not fit into IPv4")
	}
}
