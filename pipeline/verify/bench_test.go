package verify

import "testing"

// BenchmarkCheck reads a part of 50,000 rows back; rows/s is what docs/verify.md
// speaks of.
func BenchmarkCheck(b *testing.B) {
	var rows []map[string]any
	for i := range 50_000 {
		rows = append(rows, row(i+1))
	}
	dir, options := write(b, rows), testRules(false)
	for b.Loop() {
		r, err := Check(b.Context(), open(b, dir), options)
		if err != nil || !r.Whole() {
			b.Fatal(err, r.Failures)
		}
	}
	b.ReportMetric(float64(len(rows)*b.N)/b.Elapsed().Seconds(), "rows/s")
}
