package csvfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/leadetl/leadetl/internal/suggest"
)

// Encoding is that of the text of a file.
type Encoding string

// The encodings. The zero value is UTF8, for who cannot choose another.
const (
	UTF8        Encoding = "utf-8"
	UTF16       Encoding = "utf-16" // by its mark, else as its zero bytes say, else little-endian
	Windows1252 Encoding = "windows-1252"
	Latin1      Encoding = "latin-1"
)

// Encodings are the names of all.
var Encodings = []string{string(UTF8), string(UTF16), string(Windows1252), string(Latin1)}

// ParseEncoding checks the name of an encoding.
func ParseEncoding(name string) (Encoding, error) {
	if !slices.Contains(Encodings, name) {
		return "", fmt.Errorf("unknown encoding %q%s", name, suggest.OneOf(name, Encodings))
	}
	return Encoding(name), nil
}

// IsUTF8 reports whether text is read as it is.
func (e Encoding) IsUTF8() bool { return e == "" || e == UTF8 }

// invalid stands for bytes that are no text in their encoding: it is no UTF-8 either.
const invalid = 0xff

// Decode returns the text of r as UTF-8. What is no text becomes bytes that are not UTF-8.
func (e Encoding) Decode(r io.Reader) io.Reader {
	if e.IsUTF8() {
		return r
	}
	d := &decoder{from: bufio.NewReaderSize(r, 64<<10)}
	switch e {
	case UTF16:
		d.next = d.utf16
	case Windows1252:
		d.next = d.bytes(charmap.Windows1252)
	case Latin1:
		d.next = d.bytes(charmap.ISO8859_1)
	}
	return d
}

// decoder reads text of another encoding as UTF-8.
type decoder struct {
	from  *bufio.Reader
	next  func() error // appends the next characters to ready
	begun bool
	big   bool   // big-endian, of UTF-16
	block []byte // of from
	ready []byte
	left  []byte // of ready
	err   error
}

func (d *decoder) Read(p []byte) (n int, err error) {
	for len(d.left) == 0 && d.err == nil {
		d.ready = d.ready[:0]
		d.err = d.next()
		d.left = d.ready
	}
	n = copy(p, d.left)
	if d.left = d.left[n:]; len(d.left) > 0 {
		return n, nil
	}
	return n, d.err
}

// bytes decodes an encoding of one byte a character.
func (d *decoder) bytes(of *charmap.Charmap) func() error {
	d.block = make([]byte, 16<<10)
	return func() error {
		n, err := d.from.Read(d.block)
		for _, c := range d.block[:n] {
			switch r := of.DecodeByte(c); {
			case c < utf8.RuneSelf:
				d.ready = append(d.ready, c)
			case r == utf8.RuneError:
				d.ready = append(d.ready, invalid)
			default:
				d.ready = utf8.AppendRune(d.ready, r)
			}
		}
		return err
	}
}

// utf16 decodes UTF-16. The mark at its start is left out.
func (d *decoder) utf16() error {
	if !d.begun {
		head, err := d.from.Peek(64 << 10)
		if err != nil && err != io.EOF {
			return err
		}
		d.begun, d.big = true, utf16Pattern(head) == bigEndian
		if mark := bytes.HasPrefix(head, []byte{0xfe, 0xff}); mark || bytes.HasPrefix(head, []byte{0xff, 0xfe}) {
			d.big = mark
			d.from.Discard(2)
		}
	}
	for len(d.ready) < 16<<10 {
		r, err := d.unit()
		if err != nil {
			return err
		}
		if utf16.IsSurrogate(r) {
			if r, err = d.pair(r); err != nil {
				return err
			}
		}
		if r < 0 {
			d.ready = append(d.ready, invalid)
		} else {
			d.ready = utf8.AppendRune(d.ready, r)
		}
	}
	return nil
}

// unit reads 16 bits; -1 for a half of them at the end.
func (d *decoder) unit() (rune, error) {
	var two [2]byte
	switch n, err := io.ReadFull(d.from, two[:]); {
	case errors.Is(err, io.ErrUnexpectedEOF) && n == 1:
		return -1, nil
	case err != nil:
		return 0, err
	case d.big:
		return rune(two[0])<<8 | rune(two[1]), nil
	}
	return rune(two[1])<<8 | rune(two[0]), nil
}

// pair reads the second half of a surrogate pair; -1 if it is none.
func (d *decoder) pair(first rune) (rune, error) {
	next, err := d.from.Peek(2)
	if err != nil && err != io.EOF {
		return 0, err
	}
	if len(next) < 2 {
		return -1, nil
	}
	second := rune(next[1])<<8 | rune(next[0])
	if d.big {
		second = rune(next[0])<<8 | rune(next[1])
	}
	r := utf16.DecodeRune(first, second)
	if r == utf8.RuneError {
		return -1, nil
	}
	d.from.Discard(2)
	return r, nil
}
