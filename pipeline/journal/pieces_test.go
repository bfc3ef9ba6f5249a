package journal

import (
	"bytes"
	"io"
	"io/fs"
	"testing"
)

func TestPieces(t *testing.T) {
	for _, c := range []struct{ bytes, pieces int }{
		{0, 1}, {1, 1}, {pieceBytes - 1, 1}, {pieceBytes, 1}, {pieceBytes + 1, 2}, {2*pieceBytes + 7, 3},
	} {
		kept := map[int][]byte{}
		w := pieceWriter{put: func(piece int, data []byte) error {
			kept[piece] = bytes.Clone(data)
			return nil
		}}
		want := make([]byte, c.bytes)
		for i := range want {
			want[i] = byte(i ^ i>>8 ^ i>>16)
		}
		for rest := want; len(rest) > 0; { // in writes of many lengths
			n := min(len(rest), 1+len(rest)%100_003)
			if _, err := w.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.flush(); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(&pieceReader{get: func(piece int) ([]byte, error) {
			if data, ok := kept[piece]; ok {
				return data, nil
			}
			return nil, fs.ErrNotExist
		}})
		if err != nil || !bytes.Equal(got, want) || len(kept) != c.pieces {
			t.Errorf("%d bytes: read %d in %d pieces, %v, want %d pieces", c.bytes, len(got), len(kept), err, c.pieces)
		}
	}
}
