package parquet

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/internal/testkit/rapidtest"
)

// Levels packed eight at a time have the bytes of numbers.
func TestLevelsAsNumbers(t *testing.T) {
	rapidtest.Checks(t, 2000)
	rapid.Check(t, func(t *rapid.T) {
		shift := rapid.IntRange(0, 7).Draw(t, "shift")
		width := rapid.IntRange(1, min(4, 8-shift)).Draw(t, "width")
		var levels []byte
		for range rapid.IntRange(0, 8).Draw(t, "runs") {
			run := bytes.Repeat([]byte{rapid.Byte().Draw(t, "level")}, rapid.IntRange(1, 30).Draw(t, "rows"))
			levels = append(append(levels, run...), rapid.SliceOfN(rapid.Byte(), 0, 10).Draw(t, "mixed")...)
		}
		numbers := make([]uint32, len(levels))
		for i, level := range levels {
			numbers[i] = uint32(level) >> shift & (1<<width - 1)
		}
		packed := appendNumbers(nil, numbers, width)
		want := append(binary.LittleEndian.AppendUint32([]byte("before"), uint32(len(packed))), packed...)
		if got := appendLevels([]byte("before"), levels, shift, width); !bytes.Equal(got, want) {
			t.Fatalf("levels %v, %d bits from %d: got %x, want %x", levels, width, shift, got, want)
		}
	})
}
