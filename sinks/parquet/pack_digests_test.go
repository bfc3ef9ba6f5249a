package parquet

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/golang/snappy"

	"github.com/leadetl/leadetl/sinks/schema"
)

// nestedPage is a page of a nested column, before compression.
func nestedPage(repetition, definition string, values ...string) (page []byte) {
	for _, text := range append([]string{repetition, definition}, values...) {
		page = appendCell(page, []byte(text), 0)
	}
	return page
}

// digestsOf are the three digests in hex of so many texts.
func digestsOf(n int) (digests []string) {
	for i := range n {
		text := binary.AppendUvarint(nil, uint64(i))
		md5, sha1, sha256 := md5.Sum(text), sha1.Sum(text), sha256.Sum256(text)
		digests = append(digests, hex.EncodeToString(md5[:]), hex.EncodeToString(sha1[:]), hex.EncodeToString(sha256[:]))
	}
	return digests
}

func TestPackDigests(t *testing.T) {
	for _, c := range []struct {
		name   string
		page   []byte
		atMost int // percent
	}{
		{"no values", nestedPage("", ""), 200},
		{"no levels", nestedPage("", "", "a", "b"), 150},
		{"shorter than a word", nestedPage("\x02\x00", "\x02\x04", "", "", ""), 150},
		{"one digest", nestedPage("\x02\x00", "\x02\x04", digestsOf(1)[:1]...), 110},
		{"some", nestedPage("\x02\x00", "\x02\x04", digestsOf(20)...), 99},
		{"a page", nestedPage(strings.Repeat("a", 1000), strings.Repeat("b", 1000), digestsOf(2000)...), 97},
		{"one kind", nestedPage("\x02\x00", "\x02\x04", strings.Fields(strings.Repeat(digestsOf(1)[0]+" ", 1000))...), 90},
		{"long ones", nestedPage("\x02\x00", "\x02\x04", strings.Repeat("ab", 40), strings.Repeat("cd", 200), strings.Repeat("ef", 40000), strings.Repeat("ab", 40)), 101},
	} {
		packed := packDigests(nil, c.page)
		if again := packDigests(packed, c.page); !bytes.Equal(again, packed) {
			t.Errorf("%s: other bytes in memory that was used", c.name)
		}
		if back, err := snappy.Decode(nil, packed); err != nil || !bytes.Equal(back, c.page) {
			t.Errorf("%s: %v, or another page", c.name, err)
		}
		if 100*len(packed) > c.atMost*len(c.page) {
			t.Errorf("%s: %d bytes of %d", c.name, len(packed), len(c.page))
		}
	}
}

// A column of digests comes back from both readers, in each compression.
func TestColumnOfDigests(t *testing.T) {
	var lists []any
	for digest := range slices.Chunk(digestsOf(3000), 3) {
		lists = append(lists, pairs{{digest[0], "md5"}, {digest[1], "sha1"}, {digest[2], "sha256"}}, nil, pairs{{nil, "md5"}}, pairs{})
	}
	for _, compression := range compressions {
		spec := Table{Columns: []schema.Column{random(schema.New("pairs", pairType, true))}, Compression: compression}
		rec := record(spec.Schema(), lists)
		data := encode(t, spec, realPages, new(PagePool), []arrow.Record{rec})
		requireReadable(t, data, tableOf(spec.Schema(), []arrow.Record{rec}))
	}
}

// FuzzPackDigests: any values come back, also those that are not digests.
func FuzzPackDigests(f *testing.F) {
	f.Add("\x02\x00", "\x02\x04", strings.Join(digestsOf(30), ";"))
	f.Add("", "", "a;;b;"+strings.Repeat("a;", 100))
	f.Add("", "", strings.Repeat("abcdabcd;", 300)+strings.Repeat("x", 70000)+";abcdabcd;abcdabcd")
	f.Fuzz(func(t *testing.T, repetition, definition, values string) {
		page := nestedPage(repetition, definition, strings.Split(values, ";")...)
		if back, err := snappy.Decode(nil, packDigests(nil, page)); err != nil || !bytes.Equal(back, page) {
			t.Errorf("%v, or another page", err)
		}
	})
}

func BenchmarkPackDigests(b *testing.B) {
	page := nestedPage(strings.Repeat("\xdb\xb6\x6d", 700), strings.Repeat("\x24\x49\x92", 1400), digestsOf(1770)...)
	for _, c := range []struct {
		name string
		pack func(dst, page []byte) []byte
	}{{"digests", packDigests}, {"snappy", snappy.Encode}} {
		b.Run(c.name, func(b *testing.B) {
			packed := make([]byte, 0, snappy.MaxEncodedLen(len(page)))
			b.SetBytes(int64(len(page)))
			for b.Loop() {
				packed = c.pack(packed[:cap(packed)], page)
			}
			b.ReportMetric(float64(len(packed))/float64(len(page)), "ratio")
		})
	}
}
