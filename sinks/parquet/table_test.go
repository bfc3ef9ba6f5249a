package parquet

import "testing"

func TestParseCompression(t *testing.T) {
	for name, ok := range map[string]bool{"snappy": true, "zstd": true, "none": true, "gzip": false, "": false, "SNAPPY": false} {
		if _, err := ParseCompression(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
