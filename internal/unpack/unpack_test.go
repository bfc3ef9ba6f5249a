package unpack

import (
	"bytes"
	"errors"
	"hash/crc32"
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

// longName is a text of a header that package gzip refuses.
var longName = strings.Repeat("n", 5000) + "\x00"

// withHeader adds parts to the header of a member, with their flags.
func withHeader(member string, flags byte, parts string) string {
	head := member[:3] + string(flags) + member[4:10] + parts
	if flags&hasHeaderSum != 0 {
		sum := crc32.ChecksumIEEE([]byte(head))
		if parts == "x" {
			head, sum = head[:10], sum+1
		}
		head += string([]byte{byte(sum), byte(sum >> 8)})
	}
	return head + member[10:]
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
		{"gzip, a name of 5,000 bytes", strings.NewReader(withHeader(gz, hasName, longName)), Gzip, text, nil},
		{"gzip, a name longer than the buffer", strings.NewReader(withHeader(gz, hasName, strings.Repeat("n", 300<<10)+"\x00")), Gzip, text, nil},
		{"gzip, a long comment in a second member", strings.NewReader(gz + withHeader(gz, hasComment, longName)), Gzip, text + text, nil},
		{"gzip, all parts of a header", strings.NewReader(withHeader(gz, hasExtra|hasName|hasComment, "\x03\x00abc"+longName+longName)), Gzip, text, nil},
		{"gzip, a checksum of the header", strings.NewReader(withHeader(gz, hasName|hasHeaderSum, longName)), Gzip, text, nil},
		{"gzip, a wrong checksum of the header", strings.NewReader(withHeader(gz, hasHeaderSum, "x")), Gzip, "", ErrDamaged},
		{"gzip, cut in the name", strings.NewReader(withHeader(gz, hasName, longName)[:100]), Gzip, "", ErrCut},
		{"gzip, cut in the extra field", strings.NewReader(withHeader(gz, hasExtra, "\xff\xffabc")[:15]), Gzip, "", ErrCut},
		{"gzip, another method", strings.NewReader(gz[:2] + "\x07" + gz[3:]), Gzip, "", ErrDamaged},
		{"gzip, wrong size", strings.NewReader(gz[:len(gz)-4] + "xxxx"), Gzip, text, ErrDamaged},
		{"zstd with a dictionary", strings.NewReader("\x28\xb5\x2f\xfd\x21\x07\x01\x09\x00\x00a"), Zstd, "", ErrDictionary},
		{"zstd with a dictionary behind a frame", strings.NewReader(zst + "\x28\xb5\x2f\xfd\x21\x07\x01\x09\x00\x00a"), Zstd, text, ErrDictionary},
		{"zstd with a window of 256 MiB", strings.NewReader("\x28\xb5\x2f\xfd\x00\x90\x01\x00\x00"), Zstd, "", ErrWindow},
		{"zstd of a reserved block", strings.NewReader("\x28\xb5\x2f\xfd\x00\x00\x07\x00\x00"), Zstd, "", ErrDamaged},
		{"gzip, wrong checksum", strings.NewReader(gz[:len(gz)-8] + "xxxx" + gz[len(gz)-4:]), Gzip, text, ErrDamaged},
		{"gzip on a bad disk", io.MultiReader(strings.NewReader(gz[:100]), iotest.ErrReader(errDisk)), Gzip, "", errDisk},
		{"plain on a bad disk", io.MultiReader(strings.NewReader(text), iotest.ErrReader(errDisk)), None, text, errDisk},
	}
	for _, test := range tests {
		var got []byte
		packing := test.packing
		r, err := NewReader(test.in, -1)
		if err == nil {
			packing = r.Packing()
			got, err = io.ReadAll(r)
			if n, again := r.Read(make([]byte, 8)); err == nil && (n != 0 || again != io.EOF) {
				t.Errorf("%s: a read behind the end: %d, %v", test.name, n, again)
			}
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
