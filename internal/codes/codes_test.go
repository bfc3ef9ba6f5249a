package codes

import (
	"testing"

	"pgregory.net/rapid"
)

// A table gives the codes that a map would, also where hashes are the same, and after Reset.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hash := HashOf
		if bits := rapid.SampledFrom([]uint32{0, 3, 0xffffffff}).Draw(t, "bits of hashes"); bits < 0xffffffff {
			hash = func(text string) uint32 { return HashOf(text) & bits }
		}
		var table Table
		for range 2 {
			var texts []string
			want := map[string]uint32{}
			for range rapid.IntRange(0, 300).Draw(t, "look-ups") {
				text := rapid.StringMatching("[ab]{0,7}").Draw(t, "text")
				code, found := table.Find(hash(text), func(code uint32) bool { return texts[code] == text })
				if wanted, known := want[text]; found != known || code != wanted {
					t.Fatalf("%q has code %d, %t; want %d, %t", text, code, found, wanted, known)
				}
				if !found {
					want[text] = uint32(len(texts))
					texts = append(texts, text)
					if code := table.Add(hash(text)); code != want[text] {
						t.Fatalf("%q gets code %d, want %d", text, code, want[text])
					}
				}
				if table.Len() != len(texts) {
					t.Fatalf("%d values, want %d", table.Len(), len(texts))
				}
			}
			table.Reset()
		}
	})
}

// Hashes of bytes and of the same text are the same.
func TestHash(t *testing.T) {
	if Hash([]byte("text")) != HashOf("text") {
		t.Error("the hashes differ")
	}
}
