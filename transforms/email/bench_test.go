package email

import "testing"

var (
	sinkAddress Address
	sinkBytes   []byte
)

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, cell string }{
		{"30bytes", "christina.doe-3141@example.com"},
		{"upper", "Christina.Doe-3141@Example.com"},
		{"spaces", "  christina.doe-3141@example.com "},
		{"beyondASCII", "zoë.müller-lüdenscheidt@example.com"},
		{"sha256", "b4c9a289323b21a01c3e940f150eb9b8c542587f1abfd8f0e1cc1ffc5e475514"},
		{"refused", "christina.doe@example"},
	} {
		cell := []byte(c.cell)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sinkAddress, _ = Parse(cell)
			}
		})
	}
}

func BenchmarkAppendKey(b *testing.B) {
	for _, c := range []struct{ name, cell string }{
		{"30bytes", "christina.doe-3141@example.com"},
		{"upper", "Christina.Doe-3141@Example.com"},
	} {
		a, err := Parse([]byte(c.cell))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sinkBytes = a.AppendKey(sinkBytes[:0])
			}
		})
	}
}
