package fields

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// FuzzReader compares what is read with what was written, and cuts the data
// anywhere: then the reader is broken, and returns zeros.
func FuzzReader(f *testing.F) {
	f.Add(uint64(0), int64(-1), "text", []byte{1, 2}, 3)
	f.Add(uint64(1<<63), int64(1<<62), "", []byte(nil), 0)
	f.Fuzz(func(t *testing.T, u uint64, i int64, text string, p []byte, cut int) {
		data := binary.AppendVarint(binary.AppendUvarint(nil, u), i)
		data = append(Append(Append(data, text), p), 7)
		r := Reader{Rest: data}
		if a, b, c, d, e := r.Uint(), r.Int(), r.Text(), r.Bytes(), r.Byte(); a != u || b != i || c != text || !bytes.Equal(d, p) || e != 7 || r.Broken || len(r.Rest) != 0 {
			t.Errorf("got %d %d %q %x %d %+v, want %d %d %q %x 7", a, b, c, d, e, r, u, i, text, p)
		}
		short := Reader{Rest: data[:max(cut, -cut, 0)%len(data)]}
		_, _, _, _ = short.Uint(), short.Int(), short.Text(), short.Bytes()
		if b := short.Byte(); b != 0 || !short.Broken || short.Rest != nil {
			t.Errorf("%d of %d bytes: %d %+v", max(cut, -cut, 0)%len(data), len(data), b, short)
		}
	})
}

func TestBroken(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		read func(*Reader)
	}{
		{"no number", nil, func(r *Reader) { r.Uint() }},
		{"number of 11 bytes", bytes.Repeat([]byte{0x80}, 11), func(r *Reader) { r.Int() }},
		{"more items than bytes", []byte{3, 0, 0}, func(r *Reader) { r.Count() }},
		{"negative length", []byte{1}, func(r *Reader) { r.Take(-1) }},
		{"text that is cut", []byte{2, 'a'}, func(r *Reader) { r.Text() }},
	} {
		r := Reader{Rest: c.data}
		c.read(&r)
		if !r.Broken || r.Rest != nil {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}
