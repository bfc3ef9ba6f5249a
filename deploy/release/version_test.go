package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestVersions: the forms of a version, by what git describe says.
func TestVersions(t *testing.T) {
	for _, c := range []struct{ described, text, pkg, wheel string }{
		{"v0.9.0-0-gb541a61", "0.9.0", "0.9.0", "0.9.0"},
		{"v0.9.0-5-gb541a61", "0.9.1-dev5", "0.9.1~dev5", "0.9.1.dev5"},
		{"v1.10.9-12-gb541a61-dirty", "1.10.10-dev12", "1.10.10~dev12", "1.10.10.dev12"},
		{"v0.9.0-0-gb541a61-dirty", "0.9.1-dev0", "0.9.1~dev0", "0.9.1.dev0"},
		{"v1.0.0-rc2-0-gb541a61", "1.0.0-rc2", "1.0.0~rc2", "1.0.0rc2"},
	} {
		v, err := describedVersion(c.described)
		if got := []string{v.String(), v.forPackage(), v.forWheel()}; err != nil || strings.Join(got, " ") != strings.Join([]string{c.text, c.pkg, c.wheel}, " ") {
			t.Errorf("%s: %q, %v", c.described, got, err)
		}
	}
	for _, tag := range []string{"0.9.0", "v0.9", "v0.9.0-beta", "latest"} {
		if v, err := findVersion(".", tag); err == nil || !strings.Contains(err.Error(), "VERSION is") {
			t.Errorf("%s: %v, %v", tag, v, err)
		}
	}
}

// TestVersionOfCheckout: a checkout has a version, with a tag and without one, and the time of its commit.
func TestVersionOfCheckout(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT RUN: git is not installed")
	}
	t.Setenv("SOURCE_DATE_EPOCH", "")
	folder := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", folder, "-c", "user.name=a", "-c", "user.email=a@b.example"}, args...)...)
		c.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-11-20T02:00:00+03:00")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	want := func(version string) {
		t.Helper()
		if v, err := findVersion(folder, ""); err != nil || v.String() != version {
			t.Errorf("got %s, %v, want %s", v, err, version)
		}
	}
	run("init", "--quiet")
	run("commit", "--allow-empty", "-qm", "one")
	want("0.0.1-dev1")
	if at, err := findTime(folder); err != nil || at.Format(time.RFC3339) != "2026-11-19T23:00:00Z" {
		t.Errorf("time %v, %v", at, err)
	}
	run("tag", "v0.9.0")
	want("0.9.0")
	run("commit", "--allow-empty", "-qm", "two")
	want("0.9.1-dev1")
	if v, err := findVersion(filepath.Join(folder, "none"), ""); err == nil || !strings.Contains(err.Error(), "VERSION=v0.9.0") {
		t.Errorf("outside of a checkout: %v, %v", v, err)
	}
}

// TestPlatforms: each platform has a wheel, and PLATFORMS chooses among them.
func TestPlatforms(t *testing.T) {
	for _, p := range allPlatforms {
		if wheelTags[p] == "" {
			t.Errorf("no tags for the wheel of %s", p)
		}
		if chosen, err := parsePlatforms(p.String()); err != nil || len(chosen) != 1 || chosen[0] != p {
			t.Errorf("%s: %v, %v", p, chosen, err)
		}
	}
	if all, err := parsePlatforms(""); err != nil || len(all) != 4 {
		t.Errorf("all: %v, %v", all, err)
	}
	for _, names := range []string{"windows/amd64", "linux", "linux/amd64,"} {
		if chosen, err := parsePlatforms(names); err == nil {
			t.Errorf("%q: %v", names, chosen)
		}
	}
}
