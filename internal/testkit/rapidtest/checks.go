// Package rapidtest sets how often a test tries a property.
package rapidtest

import (
	"flag"
	"strconv"
	"testing"
)

// Checks makes n checks of each property in a test, whose checks take long, instead of
// rapid's 100. The flag -rapid.checks takes precedence. Tests that call it are not parallel:
// the number is the process's.
func Checks(t testing.TB, n int) {
	t.Helper()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if given {
		return
	}
	checks := flag.Lookup("rapid.checks").Value // setting the value itself does not make the flag a given one
	before := checks.String()
	t.Cleanup(func() { set(t, checks, before) })
	set(t, checks, strconv.Itoa(n))
}

func set(t testing.TB, v flag.Value, to string) {
	t.Helper()
	if err := v.Set(to); err != nil {
		t.Fatal(err)
	}
}
