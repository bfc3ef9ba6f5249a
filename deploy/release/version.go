package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// version is what a release is called. Each kind of package writes the part
// after the number in its own way.
type version struct {
	number string // such as 0.9.0
	pre    string // such as dev5 or rc1, which come before the number; "" is the release itself
}

// String is the form of file names and of leadetl version.
func (v version) String() string { return v.join("-") }

// forPackage is the form of deb and rpm, where ~ sorts before the number.
func (v version) forPackage() string { return v.join("~") }

// forWheel is the form of PEP 440.
func (v version) forWheel() string {
	if strings.HasPrefix(v.pre, "dev") {
		return v.join(".")
	}
	return v.join("")
}

func (v version) join(sign string) string {
	if v.pre == "" {
		return v.number
	}
	return v.number + sign + v.pre
}

var (
	tagForm      = regexp.MustCompile(`^v(\d+\.\d+\.\d+)(?:-(rc\d+|dev\d+))?$`)
	describeForm = regexp.MustCompile(`^v(\d+\.\d+\.)(\d+)(-rc\d+)?-(\d+)-g[0-9a-f]+(-dirty)?$`)
)

// findVersion returns the version that is asked for, or that of the commit: its
// tag, or how many commits it is after one.
func findVersion(root, asked string) (version, error) {
	if asked != "" {
		m := tagForm.FindStringSubmatch(asked)
		if m == nil {
			return version{}, fmt.Errorf("VERSION is %q, and has the form v0.9.0 or v0.9.0-rc1", asked)
		}
		return version{m[1], m[2]}, nil
	}
	described, err := git(root, "describe", "--tags", "--long", "--dirty", "--match", "v[0-9]*")
	if err != nil {
		commits, err := git(root, "rev-list", "--count", "HEAD")
		if err != nil {
			return version{}, fmt.Errorf("no version: give VERSION=v0.9.0, or make it in a git checkout: %w", err)
		}
		return version{"0.0.1", "dev" + commits}, nil
	}
	return describedVersion(described)
}

// describedVersion reads what git describe --long says. A commit after a tag, or with
// changes, is on the way to the next version.
func describedVersion(described string) (version, error) {
	m := describeForm.FindStringSubmatch(described)
	if m == nil {
		return version{}, fmt.Errorf("the tag of %q has not the form v0.9.0", described)
	}
	patch, err := strconv.Atoi(m[2])
	if err != nil {
		return version{}, err
	}
	if m[4] == "0" && m[5] == "" {
		return version{m[1] + m[2], strings.TrimPrefix(m[3], "-")}, nil
	}
	return version{m[1] + strconv.Itoa(patch+1), "dev" + m[4]}, nil
}

// findTime returns SOURCE_DATE_EPOCH, or the time of the commit.
func findTime(root string) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		var err error
		if text, err = git(root, "log", "-1", "--format=%ct"); err != nil {
			return time.Time{}, fmt.Errorf("no time: set SOURCE_DATE_EPOCH, or make it in a git checkout: %w", err)
		}
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, and has to be seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

func git(root string, args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output()
	return strings.TrimSpace(string(out)), err
}
