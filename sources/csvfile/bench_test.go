package csvfile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/leadetl/leadetl/internal/readahead"
	"github.com/leadetl/leadetl/internal/rows"
)

// BenchmarkReader measures rows of about 40 bytes; ns/row is what matters.
func BenchmarkReader(b *testing.B) {
	const n = 1_000_000
	for _, bench := range []struct{ name, row string }{
		{"plain", "%d,jane.example.%d@mail.example.com\n"},
		{"crlf", "%d,jane.example.%d@mail.example.com\r\n"},
		{"quoted", "\"%d\",\"jane.example.%d@mail.example.com\"\n"},
		{"beyond ascii", "%d,jané.éxample.%d@mail.example.com\n"},
		{"ten columns", "%d,jane.example.%d@mail.example.com,a,b,c,d,e,f,g,h\n"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var text bytes.Buffer
			for i := range n + 1 {
				fmt.Fprintf(&text, bench.row, 1_000_000+i, i)
			}
			h, err := Inspect(Sample{Name: "a.csv", Bytes: text.Bytes()[:SampleSize]}, 0)
			if err != nil {
				b.Fatal(err)
			}
			pick := make([]int, len(h.Columns))
			for i := range pick {
				pick[i] = i
			}
			b.SetBytes(int64(text.Len()))
			b.ReportAllocs()
			for b.Loop() {
				src := readahead.New(bytes.NewReader(text.Bytes()), readahead.BlockSize, readahead.Headroom)
				r := NewReader("a.csv", src, h, pick)
				total := 0
				for err = nil; err == nil; {
					batch := rows.NewBuilder(len(pick), 8192)
					err = r.Fill(context.Background(), batch, 8192)
					total += batch.Len()
					batch.Batch("a.csv", pick).Release()
				}
				src.Close()
				if err != io.EOF || total != n {
					b.Fatal(total, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}
