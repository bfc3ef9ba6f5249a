package checksum

import "testing"

// Source: RFC 3720, B.4, and the check value of CRC-32C.
func TestChecksum(t *testing.T) {
	for _, f := range []struct {
		parts []string
		want  uint32
	}{
		{nil, 0},
		{[]string{""}, 0},
		{[]string{"123456789"}, 0xe3069283},
		{[]string{"1234", "", "56789"}, 0xe3069283},
		{[]string{string(make([]byte, 32))}, 0x8a9136aa},
	} {
		var parts [][]byte
		h := New()
		for _, part := range f.parts {
			parts = append(parts, []byte(part))
			h.Write([]byte(part))
		}
		if got := Of(parts...); got != f.want || h.Sum32() != f.want {
			t.Errorf("%q: %#x, written %#x; want %#x", f.parts, got, h.Sum32(), f.want)
		}
	}
}
