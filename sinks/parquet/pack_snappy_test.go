package parquet

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/golang/snappy"
)

// Packed in pieces, a page has the bytes that snappy.Encode makes of it, in the memory it is given or in more.
func TestPackSnappy(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	page := make([]byte, 5*snappyPiece+100)
	for i := range page {
		page[i] = byte(random.IntN(1 + i>>18)) // from equal bytes to ones that do not repeat
	}
	var dst []byte
	for _, size := range []int{0, 1, 100, snappyPiece - 1, snappyPiece, snappyPiece + 1, 3 * snappyPiece, len(page), 2*snappyPiece + 7} {
		dst = packSnappy(dst[:cap(dst)], page[len(page)-size:])
		if want := snappy.Encode(nil, page[len(page)-size:]); !bytes.Equal(dst, want) {
			t.Errorf("%d bytes are packed in %d, want %d, or other ones", size, len(dst), len(want))
		}
	}
}
