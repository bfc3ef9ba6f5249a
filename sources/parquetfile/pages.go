package parquetfile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

const (
	// pageBuffer is how much of a column is read from disk at a time, and the
	// maximum length of a page header.
	pageBuffer = 256 << 10
	// maxPage bounds a page, compressed or not. DuckDB writes pages of 100 MB.
	maxPage = 256 << 20
	// maxMemory bounds the pages of all columns that are read at the same time.
	maxMemory = 1 << 30
	// maxValue bounds a value as text or JSON. CSV fields have the same limit.
	maxValue = 64 << 20
)

var (
	errMemory   = fmt.Errorf("its pages take more than %d MiB of memory", maxMemory>>20)
	errPageSize = fmt.Errorf("%w: a page of more than %d MiB", errMemory, maxPage>>20)
	errTooLarge = fmt.Errorf("a value is longer than %d MiB", maxValue>>20)
	errHeader   = errors.New("the header of a page is damaged")
)

// unsupportedError names a feature of the file that is not supported.
type unsupportedError struct{ what string }

func (e *unsupportedError) Error() string { return e.what + " is not supported" }

// budget counts the memory of pages.
type budget struct{ taken int }

// resize returns b with n bytes. If b grows, its content is lost.
func (m *budget) resize(b []byte, n int) ([]byte, error) {
	if n <= cap(b) {
		return b[:n], nil
	}
	if err := m.take(n - cap(b)); err != nil {
		return nil, err
	}
	return make([]byte, n), nil
}

func (m *budget) take(n int) error {
	if n > maxMemory-m.taken {
		return errMemory
	}
	m.taken += n
	return nil
}

// page is a data page: its number of values and nulls, and the decoders for
// them. Level decoders are nil if levels are always 0.
type page struct {
	values                 int
	definition, repetition *hybrid
	decoder                decoder
}

// chunk reads the pages of a column in a row group.
type chunk struct {
	leaf   *element
	codec  format.CompressionCodec
	in     *bufio.Reader
	left   int64 // bytes of the file after the last page read
	memory *budget

	packed, data, dictionary []byte
	entries                  []value
	unpacker                 *zstd.Decoder
}

// open starts reading the pages that meta describes.
func (c *chunk) open(in io.ReaderAt, size int64, meta *format.ColumnMetaData) error {
	start := meta.DataPageOffset
	if d := meta.DictionaryPageOffset; d > 0 && d < start {
		start = d
	}
	if start < int64(len(magic)) || start >= size {
		return errHeader
	}
	if meta.Type != c.leaf.Type.V {
		return errors.New("its values are of another type than its schema says")
	}
	if meta.Codec < 0 || meta.Codec > format.Lz4Raw || meta.Codec == format.LZO || meta.Codec == format.Lz4 {
		return &unsupportedError{"compression " + meta.Codec.String()}
	}
	c.codec, c.left, c.entries = meta.Codec, size-start, nil
	section := io.NewSectionReader(in, start, c.left)
	if c.in == nil {
		c.in = bufio.NewReaderSize(section, pageBuffer)
	} else {
		c.in.Reset(section)
	}
	return nil
}

// next reads the next data page.
func (c *chunk) next() (*page, error) {
	for {
		header, err := c.header()
		if err != nil {
			return nil, err
		}
		if c.packed, err = c.memory.resize(c.packed, int(header.CompressedPageSize)); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(c.in, c.packed); err != nil {
			return nil, err
		}
		c.left -= int64(len(c.packed))
		if header.CRC != 0 && crc32.ChecksumIEEE(c.packed) != uint32(header.CRC) {
			return nil, errors.New("the checksum of a page differs")
		}
		size := int(header.UncompressedPageSize)
		switch header.Type {
		case format.DictionaryPage:
			err = c.readDictionary(&header.DictionaryPageHeader.V, size)
		case format.DataPage:
			return c.dataPage(&header.DataPageHeader.V, size)
		case format.DataPageV2:
			return c.dataPageV2(&header.DataPageHeaderV2.V, size)
		}
		if err != nil {
			return nil, err
		}
	}
}

// header reads the header of a page and checks the sizes in it.
func (c *chunk) header() (*format.PageHeader, error) {
	for n := 4 << 10; ; n *= 8 {
		data, err := c.in.Peek(min(n, pageBuffer))
		if err != nil && err != io.EOF {
			return nil, err
		}
		h := new(format.PageHeader)
		length, problem := decodeThrift(data, h)
		if problem != nil {
			if err == io.EOF || n >= pageBuffer {
				return nil, fmt.Errorf("%w: %w", errHeader, problem)
			}
			continue
		}
		c.in.Discard(length)
		c.left -= int64(length)
		switch packed, size := int64(h.CompressedPageSize), int64(h.UncompressedPageSize); {
		case packed < 0 || size < 0 || packed > c.left:
			return nil, errHeader
		case packed > maxPage || size > maxPage:
			return nil, errPageSize
		}
		return h, nil
	}
}

func (c *chunk) readDictionary(h *format.DictionaryPageHeader, size int) (err error) {
	if c.dictionary, err = c.unpack(c.dictionary, c.packed, size); err != nil {
		return err
	}
	p := &plain{data: c.dictionary, kind: c.leaf.Type.V, length: int(c.leaf.TypeLength.V)}
	// Every value except a BOOLEAN takes at least one byte, unless it has no
	// length.
	const entrySize = 32
	n := int(h.NumValues)
	if n < 0 || n > 8*len(c.dictionary) {
		return errHeader
	}
	if grown := n - cap(c.entries); grown > 0 {
		if err := c.memory.take(grown * entrySize); err != nil {
			return err
		}
		c.entries = make([]value, 0, n)
	}
	c.entries = c.entries[:0]
	for range n {
		v, err := p.next()
		if err != nil {
			return err
		}
		c.entries = append(c.entries, v)
	}
	return nil
}

func (c *chunk) dataPage(h *format.DataPageHeader, size int) (p *page, err error) {
	if c.data, err = c.unpack(c.data, c.packed, size); err != nil {
		return nil, err
	}
	p, data := &page{values: int(h.NumValues)}, c.data
	levels := func(maximum int, encoding format.Encoding) (*hybrid, error) {
		if maximum == 0 {
			return nil, nil
		}
		if encoding == format.BitPacked {
			l, size, err := bitPacked(data, p.values, levelWidth(maximum))
			data = data[size:]
			return l, err
		}
		if encoding != format.RLE {
			return nil, &unsupportedError{"encoding " + encoding.String() + " of levels"}
		}
		if len(data) < 4 || int64(binary.LittleEndian.Uint32(data)) > int64(len(data)-4) {
			return nil, errPage
		}
		end := 4 + int(binary.LittleEndian.Uint32(data))
		l := &hybrid{data: data[4:end], width: levelWidth(maximum)}
		data = data[end:]
		return l, nil
	}
	if p.repetition, err = levels(c.leaf.repeated, h.RepetitionLevelEncoding); err != nil {
		return nil, err
	}
	if p.definition, err = levels(c.leaf.defined, h.DefinitionLevelEncoding); err != nil {
		return nil, err
	}
	p.decoder, err = c.decoder(h.Encoding, data, p.values)
	return p, err
}

func (c *chunk) dataPageV2(h *format.DataPageHeaderV2, size int) (p *page, err error) {
	r, d := int(h.RepetitionLevelsByteLength), int(h.DefinitionLevelsByteLength)
	if r < 0 || d < 0 || r+d > len(c.packed) || r+d > size {
		return nil, errHeader
	}
	p = &page{values: int(h.NumValues)}
	if c.leaf.repeated > 0 {
		p.repetition = &hybrid{data: c.packed[:r], width: levelWidth(c.leaf.repeated)}
	}
	if c.leaf.defined > 0 {
		p.definition = &hybrid{data: c.packed[r : r+d], width: levelWidth(c.leaf.defined)}
	}
	data := c.packed[r+d:]
	if !h.IsCompressed.Valid || h.IsCompressed.V {
		if c.data, err = c.unpack(c.data, data, size-r-d); err != nil {
			return nil, err
		}
		data = c.data
	}
	p.decoder, err = c.decoder(h.Encoding, data, p.values)
	return p, err
}

// decoder decodes the values of a page.
func (c *chunk) decoder(e format.Encoding, data []byte, values int) (decoder, error) {
	kind, length := c.leaf.Type.V, int(c.leaf.TypeLength.V)
	if values < 0 {
		return nil, errHeader
	}
	if len(data) == 0 && e != format.Plain {
		return &plain{}, nil // a page of nulls
	}
	switch {
	case e == format.Plain:
		return &plain{data: data, kind: kind, length: length}, nil
	//lint:ignore SA1019 old files have it
	case e == format.PlainDictionary || e == format.RLEDictionary:
		if data[0] > 32 {
			return nil, errPage
		}
		return &indexed{hybrid{data: data[1:], width: int(data[0])}, c.entries}, nil
	case e == format.RLE && kind == format.Boolean:
		if len(data) < 4 {
			return nil, errPage
		}
		return &booleans{hybrid{data: data[4:], width: 1}}, nil
	case e == format.DeltaBinaryPacked && (kind == format.Int32 || kind == format.Int64):
		return newDelta(data, values)
	case e == format.DeltaLengthByteArray && kind == format.ByteArray:
		return newDeltaLengths(data, values)
	case e == format.DeltaByteArray && (kind == format.ByteArray || kind == format.FixedLenByteArray):
		return newDeltaBytes(data, values)
	case e == format.ByteStreamSplit && kind != format.Boolean && kind != format.ByteArray:
		return newSplit(data, kind, length)
	}
	return nil, &unsupportedError{fmt.Sprintf("encoding %s of %s", e, kind)}
}

var errUnpacked = errors.New("a page cannot be unpacked to the size in its header")

// unpack unpacks a page of a known size into dst.
func (c *chunk) unpack(dst, packed []byte, size int) ([]byte, error) {
	dst, err := c.memory.resize(dst, size)
	if err != nil {
		return nil, err
	}
	n := 0
	switch c.codec {
	case format.Uncompressed:
		n = copy(dst, packed)
	case format.Snappy:
		if length, err := s2.DecodedLen(packed); err != nil || length != size {
			return nil, errUnpacked
		}
		var out []byte
		out, err = s2.Decode(dst, packed)
		n = len(out)
	case format.Zstd:
		if c.unpacker == nil {
			if c.unpacker, err = zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPage)); err != nil {
				return nil, err
			}
		}
		var out []byte
		out, err = c.unpacker.DecodeAll(packed, dst[:0:size])
		n = len(out)
	case format.Lz4Raw:
		n, err = lz4.UncompressBlock(packed, dst)
	case format.Gzip:
		var r *gzip.Reader
		if r, err = gzip.NewReader(bytes.NewReader(packed)); err == nil {
			n, err = io.ReadFull(r, dst)
		}
	case format.Brotli:
		n, err = io.ReadFull(brotli.NewReader(bytes.NewReader(packed)), dst)
	}
	if err != nil || n != size {
		return nil, errors.Join(errUnpacked, err)
	}
	return dst, nil
}

func (c *chunk) close() {
	if c.unpacker != nil {
		c.unpacker.Close()
		c.unpacker = nil
	}
}
