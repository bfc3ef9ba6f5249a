package parquet

import (
	"flag"
	"fmt"
	"testing"
)

// fewerChecks is how often rapid tries from here on, unless -rapid.checks
// says otherwise.
func fewerChecks(n int) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		flag.Lookup("rapid.checks").Value.Set(fmt.Sprint(n))
	}
}

func TestParseCompression(t *testing.T) {
	for name, ok := range map[string]bool{"snappy": true, "zstd": true, "none": true, "gzip": false, "": false, "SNAPPY": false} {
		if _, err := ParseCompression(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
