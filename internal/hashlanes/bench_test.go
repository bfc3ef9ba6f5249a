package hashlanes

import (
	"bytes"
	"fmt"
	"io"
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

// BenchmarkStreams is the table of SHA256Streams. The streams are 64 MiB each,
// and share their memory, but not at the same time: no cache holds it all.
func BenchmarkStreams(b *testing.B) {
	const size = 64 << 20
	data := noise(size)
	defer func(k kernel, has bool) { use, hasSHA = k, has }(use, hasSHA)
	hasSHA = false
	for k, name := range []string{none: "crypto", avx2: "AVX2", avx512: "AVX-512"} {
		for _, n := range []int{1, 2, 3, 8} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				if use = kernel(k); use > best() {
					b.Skip("not on this CPU")
				}
				b.SetBytes(int64(n * size))
				for b.Loop() {
					readers := make([]io.Reader, n)
					for i := range readers {
						at := i * size / n
						readers[i] = io.MultiReader(bytes.NewReader(data[at:]), bytes.NewReader(data[:at]))
					}
					if _, err := SHA256Streams(b.Context(), readers); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
