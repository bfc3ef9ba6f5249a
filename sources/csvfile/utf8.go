package csvfile

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// highBits has the top bit of each of eight bytes set.
const highBits = 0x8080808080808080

// firstInvalid returns the offset of the first byte that is not valid UTF-8, or
// len(p). Unlike utf8.Valid it returns the position, so that a block full of
// invalid lines is still scanned only once.
func firstInvalid(p []byte) int {
	i := 0
	for i < len(p) {
		for i+32 <= len(p) {
			w := p[i : i+32]
			or := binary.LittleEndian.Uint64(w) | binary.LittleEndian.Uint64(w[8:]) |
				binary.LittleEndian.Uint64(w[16:]) | binary.LittleEndian.Uint64(w[24:])
			if or&highBits != 0 {
				break
			}
			i += 32
		}
		// Not all ASCII: continue from one high byte to the next.
		for stop := min(i+32, len(p)); i < stop; {
			if i+8 <= len(p) {
				high := binary.LittleEndian.Uint64(p[i:]) & highBits
				if high == 0 {
					i += 8
					continue
				}
				i += bits.TrailingZeros64(high) / 8
			} else if p[i] < utf8.RuneSelf {
				i++
				continue
			}
			r, n := utf8.DecodeRune(p[i:])
			if r == utf8.RuneError && n <= 1 {
				return i
			}
			i += n
		}
	}
	return len(p)
}
