package sources

import (
	"archive/zip"
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/unpack"
	"github.com/leadetl/leadetl/sources/csvfile"
	"github.com/leadetl/leadetl/sources/jsonfile"
	"github.com/leadetl/leadetl/sources/parquetfile"
)

// The formats of a File.
const (
	formatCSV     = "csv"
	formatJSON    = "json" // JSON Lines
	formatParquet = "parquet"
)

// input is a File and what is needed to read it.
type input struct {
	File
	info   os.FileInfo    // of local files
	store  *objects.Store // of objects
	object objects.Info   // as Open found it
	// marksFolder is set for an object that is no list; empty for another one, or a file,
	// without text that was listed, and emptyErr if that is wrong where it is the only input.
	marksFolder, empty bool
	emptyErr           error
	early              *beingRead // set if an object is read before its turn
	whole              []byte     // the text of a small input, as Open read it
	from               Mark       // where to begin; not for streams
	packing            unpack.Packing
	header             csvfile.Header
	encoding           csvfile.Encoding
	keys               jsonfile.Header // of JSON Lines
	stream             *stream         // an input that can be read only once, open since Open
	archive            *input          // that the input is an entry of
	folder             string          // that was named instead of the file; empty without one
	once               bool            // is a stream, even after it was taken
	mayBeBinary        []bool          // of Parquet: by column, whether the schema does not say that it is text
}

// inspect inspects one input without reading rows.
func inspect(ctx context.Context, name named, o Options) (*input, error) {
	in := &input{File: File{URI: name.uri, Size: -1}, folder: name.folder, archive: name.archive}
	if in.archive != nil {
		return in.verdictOfEmpty(name, in.inspectEntry(ctx, o))
	}
	if objects.Is(name.uri) {
		return in, in.inspectObject(ctx, name.object, o)
	}
	return in.verdictOfEmpty(name, in.inspectLocal(name.uri, o))
}

// verdictOfEmpty returns an input and the error of its inspection, unless that says that a list in
// a folder or an archive is empty.
func (in *input) verdictOfEmpty(name named, err error) (*input, error) {
	isEmpty := errors.Is(err, csvfile.ErrEmpty) || errors.Is(err, jsonfile.ErrEmpty) || err == nil && len(in.Columns) == 0
	if name.listed && isEmpty {
		in.empty, in.emptyErr, err = true, err, nil
	}
	return in, err
}

// inspectLocal inspects standard input or a local file.
func (in *input) inspectLocal(name string, o Options) error {
	if name == standardInput {
		in.once = true
		in.URI = cmp.Or(o.StdinName, standardInput)
		return in.inspectStream(&stream{r: o.Stdin}, o)
	}
	f, info, err := openFile(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // a pipe: <(…) in a shell
		in.once = true
		return in.inspectStream(&stream{r: f, file: f}, o)
	}
	defer f.Close()
	in.info, in.Size, in.ModTime = info, info.Size(), info.ModTime()
	return in.inspectStored(&localFile{f, in}, o)
}

// inspectStored inspects the start of an input that can be read again, and the
// end of a Parquet file.
func (in *input) inspectStored(f stored, o Options) error {
	if parquet, err := isParquet(f, in.Size); err != nil {
		return in.blame(f, err)
	} else if parquet {
		in.Format = formatParquet
		if !csvfile.Encoding(o.Encoding).IsUTF8() || o.SkipLines > 0 {
			return onlyForCSV(in.URI, "Parquet")
		}
		r, err := parquetfile.Open(in.URI, f)
		if err != nil {
			return in.blame(f, err)
		}
		in.Columns = r.Columns()
		in.mayBeBinary = make([]bool, len(in.Columns))
		for i := range in.Columns {
			in.mayBeBinary[i] = r.MayBeBinary(i)
		}
		return r.Close()
	}
	return in.inspectPacked(f, io.NewSectionReader(f, 0, in.Size), o)
}

// inspectPacked inspects the start of the text of f.
func (in *input) inspectPacked(f stored, text io.Reader, o Options) error {
	u, err := unpack.NewReader(text, in.Size)
	if err != nil {
		return in.blame(f, err)
	}
	defer u.Close()
	sample, whole, _, err := in.inspectText(u, o)
	if err != nil {
		return in.blame(f, err)
	}
	if whole && o.whole.take(len(sample)) {
		in.whole = bytes.Clone(sample)
		return f.unchanged()
	}
	return nil
}

// wholeBytes bounds the texts of small inputs that Open keeps, so that each is read once;
// wholeText is the longest.
const (
	wholeBytes = 16 << 20
	wholeText  = 64 << 10
)

// wholeTexts counts the bytes of small inputs that are kept. It is safe from any goroutine.
type wholeTexts struct{ bytes atomic.Int64 }

// take reports whether a text of n bytes may be kept, and counts it.
func (w *wholeTexts) take(n int) bool {
	return n <= wholeText && w.bytes.Add(int64(n)) <= wholeBytes
}

// onlyForCSV is the error for a file of another format, if flags say how CSV is read.
func onlyForCSV(name, format string) error {
	return &FormatError{File: name, Problem: "is " + format + ", and encoding and skip_lines are for CSV", Advice: "Leave them out, or leave out the file"}
}

// checkText is List.CheckText for one Parquet file.
func (in *input) checkText(ctx context.Context, columns []string, resolved string) error {
	places, err := in.pick(columns)
	if err != nil {
		return err
	}
	var f stored
	for i, place := range places {
		if !in.mayBeBinary[place] {
			continue
		}
		if f == nil {
			if f, err = in.openStored(ctx); err != nil {
				return err
			}
			defer f.Close()
		}
		r, err := parquetfile.Open(in.URI, f)
		if err != nil {
			return in.blame(f, err)
		}
		share, err := r.TextShare(ctx, place)
		if err = errors.Join(err, r.Close()); err != nil {
			return in.blame(f, err)
		}
		e := &FormatError{File: in.URI, Problem: fmt.Sprintf("has binary data, not text, in column %q", in.Columns[place])}
		switch isResolved := columns[i] == resolved; {
		case isResolved && share < 0.5:
			e.Advice = "Name another column with --id-column, or write it as text"
			return e
		case !isResolved && share < 1:
			e.Advice = "Leave it out: name the columns that you want with --select; or write it as text"
			return e
		}
	}
	return nil
}

// openFile opens a file and refuses folders.
func openFile(name string) (*os.File, os.FileInfo, error) {
	f, err := os.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, &FormatError{File: name, Problem: "does not exist", Advice: "Check its name and the folder you are in", Err: err}
	case errors.Is(err, fs.ErrPermission):
		return nil, nil, &FormatError{File: name, Problem: "cannot be read: permission denied", Advice: "Check its permissions", Err: err}
	case err != nil:
		return nil, nil, readError(name, err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &FormatError{File: name, Problem: "is a folder now", Advice: "Run again when no other program writes to it"}
	}
	if err != nil {
		f.Close()
		return nil, nil, readError(name, err)
	}
	return f, info, nil
}

// inspectStream inspects the start of a stream and keeps it for later.
func (in *input) inspectStream(s *stream, o Options) error {
	u, err := unpack.NewReader(s, -1)
	if err != nil {
		s.Close()
		return in.blame(nil, err)
	}
	sample, _, text, err := in.inspectText(u, o)
	s.unpacked, s.text = u, text
	if err != nil {
		s.Close()
		return in.blame(nil, err)
	}
	s.sample, in.stream = sample, s
	return nil
}

// inspectText reads a sample of the unpacked input and finds the header.
func (in *input) inspectText(u *unpack.Reader, o Options) (sample []byte, whole bool, rest io.Reader, err error) {
	in.Format, in.packing, in.encoding = formatCSV, u.Packing(), csvfile.Encoding(o.Encoding)
	var text bytes.Buffer
	rest = in.encoding.Decode(u)
	if whole, err = copyMore(&text, rest, csvfile.SampleSize); err != nil {
		return nil, false, nil, err
	}
	sample = text.Bytes()
	if in.isJSON(sample, whole) {
		err = in.inspectJSON(sample, whole, o)
		for errors.Is(err, jsonfile.ErrShort) && text.Len() <= jsonfile.LineLimit { // its first line is long
			if whole, err = copyMore(&text, rest, int64(min(text.Len(), jsonfile.LineLimit+1-text.Len()))); err != nil {
				return nil, false, nil, err
			}
			err = in.inspectJSON(text.Bytes(), whole, o)
		}
		return text.Bytes(), whole, rest, err
	}
	if err := in.checkKind(sample); err != nil {
		return nil, false, nil, err
	}
	in.header, err = csvfile.Inspect(csvfile.Sample{
		Name: in.URI, Packing: string(in.packing), Bytes: sample, Whole: whole, Encoding: in.encoding, SkipLines: o.SkipLines, Wanted: o.Wanted,
	}, o.Delimiter)
	if o.AllowEmpty && errors.Is(err, csvfile.ErrEmpty) {
		err = nil
	}
	in.Columns = in.header.Columns
	return sample, whole, rest, err
}

// copyMore copies n bytes to a sample. whole says that nothing follows.
func copyMore(sample *bytes.Buffer, from io.Reader, n int64) (whole bool, err error) {
	_, err = io.CopyN(sample, from, n)
	if err == io.EOF {
		return true, nil
	}
	return false, err
}

// isJSON reports whether text is JSON Lines: by the name of the file, or of a stream by what it
// begins with. An object alone in a file may be anything.
func (in *input) isJSON(sample []byte, whole bool) bool {
	name := strings.ToLower(in.URI)
	for _, packed := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, packed)
	}
	return strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".ndjson") || in.once && jsonKind(sample, whole) == jsonLines
}

// inspectJSON finds the columns of JSON Lines.
func (in *input) inspectJSON(sample []byte, whole bool, o Options) (err error) {
	if in.Format = formatJSON; !in.encoding.IsUTF8() || o.SkipLines > 0 {
		return onlyForCSV(in.URI, jsonLines)
	}
	in.keys, err = jsonfile.Inspect(in.URI, sample, whole)
	if o.AllowEmpty && errors.Is(err, jsonfile.ErrEmpty) {
		err = nil
	}
	in.Columns = in.keys.Columns
	return err
}

// parquetMagic detects Parquet by its first bytes. After the four letters,
// Parquet is binary. In a CSV file whose first column is named PAR1 it is not.
func parquetMagic(head []byte) bool {
	return len(head) > 4 && string(head[:4]) == "PAR1" && head[4] < ' ' && !bytes.ContainsRune([]byte("\t\r\n"), rune(head[4]))
}

func isParquet(f io.ReaderAt, size int64) (bool, error) {
	var head, tail [5]byte
	if size < int64(len(head)) {
		return false, nil
	}
	if _, err := f.ReadAt(head[:], 0); err != nil || string(head[:4]) != "PAR1" {
		return false, err
	}
	if _, err := f.ReadAt(tail[:4], size-4); err != nil {
		return false, err
	}
	return string(tail[:4]) == "PAR1" || parquetMagic(head[:]), nil
}

// blame finds the cause of a failed read. If the file has changed, that is the
// cause.
func (in *input) blame(f stored, err error) error {
	if f != nil {
		if changed := f.unchanged(); changed != nil {
			return changed
		}
	}
	var refused *objects.RefusedError
	switch {
	case in.archive != nil && (errors.Is(err, zip.ErrChecksum) || errors.Is(err, zip.ErrFormat) || errors.As(err, new(flate.CorruptInputError)) || errors.Is(err, io.ErrUnexpectedEOF)):
		return &FormatError{File: in.URI, Problem: "is damaged in its ZIP archive", Advice: "Download or copy the archive again", Err: err}
	case errors.Is(err, objects.ErrChanged):
		return in.changed()
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, objects.ErrUnavailable):
		return err // the error names the object
	}
	how := string(in.packing)
	switch {
	case errors.Is(err, unpack.ErrCut):
		return &FormatError{File: in.URI, Problem: "is truncated: its compressed data ends too early", Advice: "Copy or compress it again", Err: err}
	case errors.Is(err, unpack.ErrDictionary):
		return &FormatError{File: in.URI, Problem: "was compressed with a zstd dictionary, which is not read", Advice: "Decompress it first: zstd -d -D DICTIONARY FILE", Err: err}
	case errors.Is(err, unpack.ErrWindow):
		return &FormatError{File: in.URI, Problem: "was compressed with a zstd window of more than 128 MiB", Advice: "Decompress it first: zstd -d --long=31 FILE", Err: err}
	case errors.Is(err, unpack.ErrTrailing):
		return &FormatError{File: in.URI, Problem: "has extra data after its " + how + "-compressed data", Advice: "Copy or compress it again", Err: err}
	case errors.Is(err, unpack.ErrDamaged) && in.packing == unpack.Zstd: // a raw dictionary has no number in the header
		return &FormatError{File: in.URI, Problem: "holds damaged zstd data, or was compressed with a zstd dictionary, which is not read", Advice: "Copy or compress it again, or decompress it first: zstd -d -D DICTIONARY FILE", Err: err}
	case errors.Is(err, unpack.ErrDamaged):
		return &FormatError{File: in.URI, Problem: strings.TrimSpace("holds damaged " + how + " data"), Advice: "Copy or compress it again", Err: err}
	}
	return readError(in.URI, err)
}

// readError names the file in an error that does not name it.
func readError(name string, err error) error {
	var format *FormatError
	var path *fs.PathError
	switch {
	case errors.As(err, &format):
		return err
	case errors.As(err, &path):
		err = path.Err // the path is added below, in the user's spelling
	}
	return fmt.Errorf("read %s: %w", name, err)
}
