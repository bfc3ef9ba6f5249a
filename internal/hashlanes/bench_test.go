package hashlanes

import (
	"fmt"
	"testing"
)

// BenchmarkHex is the table of the package comment.
func BenchmarkHex(b *testing.B) {
	const n = 8192
	var messages []string
	for i := range n {
		messages = append(messages, fmt.Sprintf("jane.doe-%05d@example.com.", i)[:26])
	}
	data, offsets := column("", messages...)
	toMD5, toSHA1, toSHA256 := make([]byte, 32*n), make([]byte, 40*n), make([]byte, 64*n)
	defer func(k kernel) { use = k }(use)
	for k, name := range []string{none: "crypto", avx2: "AVX2", avx512: "AVX-512"} {
		for _, c := range []struct {
			name              string
			md5, sha1, sha256 []byte
		}{
			{"md5", toMD5, nil, nil},
			{"sha1", nil, toSHA1, nil},
			{"sha256", nil, nil, toSHA256},
			{"all", toMD5, toSHA1, toSHA256},
		} {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				if use = kernel(k); use > best() {
					b.Skip("not on this CPU")
				}
				for b.Loop() {
					Hex(c.md5, c.sha1, c.sha256, data, offsets)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/message")
			})
		}
	}
}
