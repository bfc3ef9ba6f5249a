package changes

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
)

// rowHash tells the rows of a dataset apart. It follows from the dataset alone, so a table that
// has taken the changes of a night over knows its rows by it on the next night.
type rowHash struct {
	values digest
	nth    int32 // of the rows with these values, from 1
}

// String is 32 hex digits, and for the second of equal rows "-2" behind them.
func (h rowHash) String() string {
	var bytes [16]byte
	binary.BigEndian.PutUint64(bytes[:], h.values.Hi)
	binary.BigEndian.PutUint64(bytes[8:], h.values.Lo)
	text := hex.EncodeToString(bytes[:])
	if h.nth > 1 {
		text += "-" + strconv.Itoa(int(h.nth))
	}
	return text
}

// parseRowHash reads what String writes. ok is false for any other text.
func parseRowHash(text string) (h rowHash, ok bool) {
	digits, number, several := strings.Cut(text, "-")
	sum, err := hex.DecodeString(digits)
	if err != nil || len(sum) != 16 {
		return rowHash{}, false
	}
	h = rowHash{digestOf(sum), 1}
	if several {
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil {
			return rowHash{}, false
		}
		h.nth = int32(n)
	}
	return h, h.String() == text
}

// digestOf is a digest of its first 16 bytes.
func digestOf(sum []byte) digest {
	return digest{Hi: binary.BigEndian.Uint64(sum), Lo: binary.BigEndian.Uint64(sum[8:])}
}
