package sources

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
)

// BenchmarkReader reads files from disk, as a run does; ns/row is what
// matters.
func BenchmarkReader(b *testing.B) {
	const n = 1_000_000
	var text strings.Builder
	text.WriteString("id,email\n")
	for i := range n {
		fmt.Fprintf(&text, "%d,jane.example.%d@mail.example.com\n", 1_000_000+i, i)
	}
	b.Chdir(b.TempDir())
	files := map[string]string{"a.csv": text.String(), "a.csv.gz": gz(text.String()), "a.csv.zst": zst(text.String())}
	for name, stored := range files {
		write(b, name, stored)
	}
	for _, name := range []string{"a.csv", "a.csv.gz", "a.csv.zst"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l, err := Open(b.Context(), []string{name}, Options{})
				if err != nil {
					b.Fatal(err)
				}
				r, err := l.Reader([]string{"id", "email"})
				if err != nil {
					b.Fatal(err)
				}
				rows := 0
				for {
					batch, err := r.Next(context.Background(), 0)
					if err == io.EOF {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					rows += batch.Len()
					batch.Release()
				}
				r.Close()
				if rows != n {
					b.Fatalf("%d rows, want %d", rows, n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}
