package unpack

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

func pack(t *testing.T, p Packing, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	if p == Zstd {
		w, _ = zstd.NewWriter(&b)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReader(t *testing.T) {
	text := strings.Repeat("some text\n", 100_000)
	gz, zst := pack(t, Gzip, text), pack(t, Zstd, text)
	skippable := "\x50\x2a\x4d\x18\x04\x00\x00\x00meta"
	zeros := strings.Repeat("\x00", 1000)
	errDisk := errors.New("disk")
	tests := []struct {
		name    string
		in      io.Reader
		packing Packing
		want    string
		err     error
	}{
		{"plain", strings.NewReader(text), None, text, nil},
		{"empty", strings.NewReader(""), None, "", nil},
		{"short", strings.NewReader("a"), None, "a", nil},
		{"gzip", strings.NewReader(gz), Gzip, text, nil},
		{"gzip members", strings.NewReader(gz + gz), Gzip, text + text, nil},
		{"zstd", strings.NewReader(zst), Zstd, text, nil},
		{"zstd frames", strings.NewReader(zst + zst), Zstd, text + text, nil},
		{"zstd after a skippable frame", strings.NewReader(skippable + zst), Zstd, text, nil},
		{"gzip, cut", strings.NewReader(gz[:len(gz)-1]), Gzip, text, ErrCut},
		{"gzip, only its beginning", strings.NewReader(gz[:4]), Gzip, "", ErrCut},
		{"zstd, cut", strings.NewReader(zst[:len(zst)-5]), Zstd, "", ErrCut},
		{"gzip, zero bytes behind", strings.NewReader(gz + zeros), Gzip, text, nil},
		{"gzip, one zero byte behind", strings.NewReader(gz + "\x00"), Gzip, text, nil},
		{"gzip members, zero bytes behind", strings.NewReader(gz + gz + zeros), Gzip, text + text, nil},
		{"gzip of nothing, and something", strings.NewReader(pack(t, Gzip, "") + gz), Gzip, text, nil},
		{"gzip, other data behind", strings.NewReader(gz + "other data"), Gzip, text, ErrTrailing},
		{"gzip, other data behind are damage too", strings.NewReader(gz + "other data"), Gzip, text, ErrDamaged},
		{"gzip, other data behind zero bytes", strings.NewReader(gz + zeros + "x"), Gzip, text, ErrTrailing},
		{"gzip, a member behind zero bytes", strings.NewReader(gz + zeros + gz), Gzip, text, ErrTrailing},
		{"gzip, a member cut in its first byte", strings.NewReader(gz + gz[:1]), Gzip, text, ErrCut},
		{"gzip, a member cut in its beginning", strings.NewReader(gz + gz[:5]), Gzip, text, ErrCut},
		{"gzip, a second member cut", strings.NewReader(gz + gz[:len(gz)-1]), Gzip, text, ErrCut},
		{"gzip on a disk bad behind it", io.MultiReader(strings.NewReader(gz), iotest.ErrReader(errDisk)), Gzip, "", errDisk},
		{"gzip, wrong checksum", strings.NewReader(gz[:len(gz)-8] + "xxxx" + gz[len(gz)-4:]), Gzip, text, ErrDamaged},
		{"gzip on a bad disk", io.MultiReader(strings.NewReader(gz[:100]), iotest.ErrReader(errDisk)), Gzip, "", errDisk},
		{"plain on a bad disk", io.MultiReader(strings.NewReader(text), iotest.ErrReader(errDisk)), None, text, errDisk},
	}
	for _, test := range tests {
		var got []byte
		packing := test.packing
		r, err := NewReader(test.in)
		if err == nil {
			packing = r.Packing()
			got, err = io.ReadAll(r)
			r.Close()
		}
		if !errors.Is(err, test.err) || packing != test.packing || err == nil && string(got) != test.want {
			t.Errorf("%s: %q, %d bytes, %v; want %q, %d bytes, %v", test.name, packing, len(got), err, test.packing, len(test.want), test.err)
		}
		if errors.Is(err, errDisk) && (errors.Is(err, ErrCut) || errors.Is(err, ErrDamaged)) {
			t.Errorf("%s: the packing is blamed: %v", test.name, err)
		}
	}
}
