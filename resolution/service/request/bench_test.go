package request

import (
	"encoding/json"
	"testing"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/profile"
)

func BenchmarkParse(b *testing.B) {
	body := []byte(`{"network_url":"https://www.network.example/in/ada-example"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(body); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkValid is what encoding/json takes to look at the same body.
func BenchmarkValid(b *testing.B) {
	body := []byte(`{"network_url":"https://www.network.example/in/ada-example"}`)
	for b.Loop() {
		if !json.Valid(body) {
			b.Fatal("not JSON")
		}
	}
}

// BenchmarkEnrichment is all that is done here for one request of the busiest
// kind.
func BenchmarkEnrichment(b *testing.B) {
	body := []byte(`{"network_url":"https://www.network.example/in/ada-example"}`)
	rules, limits := profile.DefaultRules(), DefaultLimits()
	b.ReportAllocs()
	for b.Loop() {
		o, err := Parse(body)
		if err != nil {
			b.Fatal(err)
		}
		if _, problems := limits.Single(resolution.Enrichment, o, rules); problems != nil {
			b.Fatal(problems)
		}
	}
}

func BenchmarkCanonical(b *testing.B) {
	o := parse(b, `{"network_url":"https://www.network.example/in/ada-example","callback_url":"https://a.example/b","metadata":{"client_ref":"17"}}`)
	b.ReportAllocs()
	for b.Loop() {
		o.Canonical()
	}
}

// BenchmarkParseLarge is a body of the largest size, of names that all have to
// be compared.
func BenchmarkParseLarge(b *testing.B) {
	body := []byte(`{` + numbered(90_000) + `"a":0}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(body); err != nil {
			b.Fatal(err)
		}
	}
}
