package sources

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/leadetl/leadetl/internal/readahead"
	"github.com/leadetl/leadetl/internal/rows"
	"github.com/leadetl/leadetl/internal/unpack"
	"github.com/leadetl/leadetl/sources/csvfile"
	"github.com/leadetl/leadetl/sources/jsonfile"
	"github.com/leadetl/leadetl/sources/parquetfile"
)

// rowFile is one input that is being read. Fill adds up to maxRows rows to b
// and returns io.EOF at the end, when b may hold rows too. finish takes the
// error that ended Fill and returns what was wrong with the file, or nil if it
// was read completely. close frees it. A Reader calls them in one goroutine: Fill until
// it fails, then finish and close once each.
type rowFile interface {
	Fill(ctx context.Context, b *rows.Builder, maxRows int) error
	finish(err error) error
	close()
}

var (
	_ rowFile = (*textInput)(nil)
	_ rowFile = (*parquetInput)(nil)
)

// textReader reads the text of a file.
type textReader interface {
	Fill(ctx context.Context, b *rows.Builder, maxRows int) error
	Offset() int64
	Mark() csvfile.Mark
	StartAt(m csvfile.Mark)
}

// jsonReader is a jsonfile.Reader with marks like those of CSV.
type jsonReader struct{ *jsonfile.Reader }

func (r jsonReader) Mark() csvfile.Mark {
	offset, line, row := r.Reader.Mark()
	return csvfile.Mark{Offset: offset, Line: line, Row: row}
}

func (r jsonReader) StartAt(m csvfile.Mark) { r.Reader.StartAt(m.Offset, m.Line, m.Row) }

// textInput reads a CSV or JSON Lines file or stream.
type textInput struct {
	textReader
	in        *input
	beingRead // empty for streams
	unpacked  *unpack.Reader
	ahead     *readahead.Reader
	ended     bool // read to its end, so no read is waiting

	progress func(bytesRead int64)
	sizes    sizes
}

func openText(ctx context.Context, in *input, fields []int, progress func(int64)) (rowFile, error) {
	c := &textInput{in: in, progress: progress}
	var text io.Reader
	if in.whole != nil && in.from.Offset == 0 {
		c.sizes.stored.Store(in.Size)
		c.sizes.ofText, c.sizes.ofFile = int64(len(in.whole)), in.Size
		c.readText(readahead.Of(in.whole), fields)
		in.whole = nil
		return c, nil
	}
	if in.stream != nil {
		c.sizes.stored.Store(in.stream.count(&c.sizes.stored))
		text = io.MultiReader(bytes.NewReader(in.stream.sample), in.stream.text)
	} else {
		b, err := in.beginReading(ctx)
		if err != nil {
			return nil, err
		}
		c.beingRead = b
		text = counter{b.text, &c.sizes.stored}
		c.sizes.stored.Store(in.from.Offset)
		c.sizes.ofText = in.from.Offset
		if in.packing != unpack.None || in.from.Offset == 0 { // what is in the middle of a text is text, whatever it looks like
			if c.unpacked, err = unpack.NewReader(text, in.Size); err != nil {
				return nil, errors.Join(in.blame(b.file, err), b.close())
			}
			text = in.encoding.Decode(c.unpacked)
		}
	}
	c.sizes.text = text
	c.readText(readahead.New(&c.sizes, readahead.BlockSize, readahead.Headroom), fields)
	if in.from.Offset > 0 {
		c.StartAt(in.from.Text)
	}
	return c, nil
}

// readText begins to read the rows.
func (c *textInput) readText(text *readahead.Reader, fields []int) {
	c.ahead = text
	if c.in.Format == formatJSON {
		c.textReader = jsonReader{jsonfile.NewReader(c.in.URI, text, c.in.keys, fields)}
	} else {
		c.textReader = csvfile.NewReader(c.in.URI, text, c.in.header, fields)
	}
}

// Fill estimates how many stored bytes the rows take, from their share of the
// text that is read ahead.
func (c *textInput) Fill(ctx context.Context, b *rows.Builder, maxRows int) error {
	err := c.textReader.Fill(ctx, b, maxRows)
	c.progress(c.sizes.storedUpTo(c.Offset()))
	return err
}

func (c *textInput) finish(err error) error {
	c.ended = err == io.EOF
	return c.in.verdict(c.file, err)
}

func (c *textInput) close() {
	if c.in.stream != nil {
		c.ahead.Stop()
		if !c.ended && !c.in.stream.interrupt() {
			return // see Reader.Close
		}
		c.ahead.Close()
		c.in.stream.Close()
		return
	}
	if c.file == nil {
		return // it was read before
	}
	c.interrupt()
	c.ahead.Close()
	if c.unpacked != nil {
		c.unpacked.Close()
	}
	c.beingRead.close()
}

// parquetInput reads a Parquet file.
type parquetInput struct {
	*parquetfile.Reader
	in       *input
	file     stored
	progress func(bytesRead int64)
}

func openParquet(ctx context.Context, in *input, fields []int, progress func(int64)) (rowFile, error) {
	f, err := in.openStored(ctx)
	if err != nil {
		return nil, err
	}
	r, err := parquetfile.Open(in.URI, f)
	if err == nil {
		err = r.Select(ctx, fields)
	}
	if err == nil {
		err = r.StartAt(in.from.Group)
	}
	if err != nil {
		err = in.blame(f, err)
		f.Close()
		return nil, err
	}
	return &parquetInput{r, in, f, progress}, nil
}

// Fill counts each row as an equal share of the file. Counting the bytes that
// were read would not give a useful progress.
func (p *parquetInput) Fill(ctx context.Context, b *rows.Builder, maxRows int) error {
	err := p.Reader.Fill(ctx, b, maxRows)
	if n := p.Rows(); n > 0 {
		p.progress(int64(float64(p.in.Size) * float64(p.Row()) / float64(n)))
	}
	return err
}

func (p *parquetInput) finish(err error) error { return p.in.verdict(p.file, err) }

func (p *parquetInput) close() {
	p.Reader.Close()
	p.file.Close()
}

// verdict decides what the error that ended the reading of f means.
func (in *input) verdict(f stored, err error) error {
	if err != io.EOF {
		return in.blame(f, err)
	}
	if f == nil {
		return in.keepsName()
	}
	return f.unchanged()
}

// sizes reads unpacked text, and knows how many stored bytes it takes.
type sizes struct {
	text   io.Reader
	stored atomic.Int64 // read so far

	mu             sync.Mutex
	ofText, ofFile int64 // measured at the same moment
}

func (s *sizes) Read(p []byte) (int, error) {
	n, err := s.text.Read(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ofText += int64(n)
	s.ofFile = s.stored.Load()
	return n, err
}

// storedUpTo estimates how many stored bytes the text takes up to an offset.
func (s *sizes) storedUpTo(offset int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ofText == 0 {
		return 0
	}
	return int64(float64(s.ofFile) * min(float64(offset)/float64(s.ofText), 1))
}

// counter adds what is read of a file to a count.
type counter struct {
	r    io.Reader
	read *atomic.Int64
}

func (c counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.read.Add(int64(n))
	return n, err
}
