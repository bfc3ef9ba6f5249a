package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/sourcegraph/conc/stream"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/internal/store/folder"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/lines"
	"github.com/leadetl/leadetl/sinks/place"
	"github.com/leadetl/leadetl/sinks/typed"
)

// exportTarget is where an export writes.
type exportTarget struct {
	format  string
	pipe    io.Writer   // nil if it is in a store
	store   store.Store // with files
	one     string      // name of the only file; empty for several
	perFile int64
	remove  []string // files of an earlier export
}

// target opens what an export writes to, and refuses one that has something already. It changes nothing.
func (f *exportFlags) target(ctx context.Context, std cli.Streams, log *slog.Logger) (*exportTarget, error) {
	t := &exportTarget{format: f.format}
	if f.platform == "" {
		t.perFile = f.rowsPerFile
	}
	if f.out == "-" {
		t.pipe = std.Out
		return t, nil
	}
	uri := f.out
	if strings.HasSuffix(uri, "."+f.format) {
		uri, t.one = wire.InFolder(uri)
	}
	options, err := wire.ReadOptions(ctx, f.out, &f.s3, log)
	if err != nil {
		return nil, cli.UsageError(err)
	}
	t.store, err = wire.Files("out", uri, options.Objects, func(in disk.Folder) *folder.Folder {
		to := folder.Public(in)
		to.SumLater = true // no one reads the checksum of an exported file
		return to
	})
	if err != nil {
		return nil, err
	}
	above, err := datasetAbove(ctx, f.out, options)
	if err == nil && above != "" {
		err = fmt.Errorf("--out %s is in the dataset %s; name a place outside", f.out, above)
	}
	if err != nil {
		return nil, wire.UnlessUnavailable(err)
	}
	if err := t.refuse(ctx, f.overwrite); err != nil {
		return nil, wire.UnlessUnavailable(fmt.Errorf("--out %s: %w", f.out, err))
	}
	return t, nil
}

// datasetAbove is the dataset that a file or folder lies in; "" without one.
func datasetAbove(ctx context.Context, uri string, options sinks.Options) (string, error) {
	if objects.Is(uri) {
		at, err := place.OpenToRead(ctx, strings.TrimSuffix(uri, "/")+"/", options)
		if err != nil {
			return "", err
		}
		return at.Enclosing()
	}
	dir, err := filepath.Abs(uri)
	if err != nil {
		return "", err
	}
	dir = wire.Existing(filepath.Dir(dir))
	at, err := place.OpenToRead(ctx, dir, options)
	if err != nil {
		return "", err
	}
	if _, err := at.Read(place.ManifestName); err == nil {
		return dir, nil
	}
	return at.Enclosing()
}

// refuse refuses a place that has something, unless it is an unfinished export, or one to replace.
func (t *exportTarget) refuse(ctx context.Context, overwrite bool) error {
	if t.one != "" {
		o, err := t.store.Open(ctx, t.one)
		if store.IsMissing(err) {
			return nil
		}
		if err == nil {
			if err = o.Close(); err == nil && !overwrite {
				err = errors.New("it is there already; name another file, or replace it with --overwrite")
			}
		}
		return err
	}
	entries, err := t.store.Entries(ctx, "")
	if err != nil && !store.IsMissing(err) {
		return err
	}
	finished := false
	for _, e := range entries {
		switch {
		case e.Name == place.SuccessName:
			finished = true
			t.remove = append([]string{e.Name}, t.remove...) // first: it says that all others are there
		case isExported(e.Name):
			t.remove = append(t.remove, e.Name)
		default:
			return fmt.Errorf("it has other files than those of an export, such as %s; name an empty or new folder", e.Name)
		}
	}
	if finished && !overwrite {
		return errors.New("an export is there already; name another folder, or replace it with --overwrite")
	}
	return nil
}

var exportedName = regexp.MustCompile(`^export-\d{5,}\.(csv|jsonl)(\.gz|\.zst)?$`)

// isExported reports whether a file of a folder is of an export, also of one that was killed.
func isExported(name string) bool {
	if store.IsUnfinished(name) {
		name = atomicfile.FinalName(name)
		return name == place.SuccessName || exportedName.MatchString(name)
	}
	return exportedName.MatchString(name)
}

// exporting is an export while it writes. One goroutine uses it.
type exporting struct {
	*exportTarget
	ctx    context.Context
	header []byte
	files  int
	open   *exportedFile
	err    error
	failed atomic.Bool
}

// exportedRows are read and written at a time. Their text stays in the caches of a processor.
const exportedRows = 2048

// content is what an export writes of rows.
type content interface {
	// header is what each file begins with.
	header() []byte
	// encode makes text of rows, which it releases, in any goroutine. What it returns writes that, in the order
	// of the rows.
	encode(rows []arrow.Array, n int) func(*exporting)
}

// table is the rows as they are.
type table struct {
	*lines.Encoder
	used sync.Pool
}

func newTable(columns []string, format string) *table {
	encoder := lines.NewCSV(columns)
	if strings.HasPrefix(format, "jsonl") {
		encoder = lines.NewJSON(columns)
	}
	return &table{Encoder: encoder, used: sync.Pool{New: func() any { return new([]byte) }}}
}

func (t *table) header() []byte { return t.Header }

func (t *table) encode(rows []arrow.Array, n int) func(*exporting) {
	text := t.used.Get().(*[]byte)
	*text = t.Append((*text)[:0], rows, n)
	typed.Release(rows)
	return func(e *exporting) {
		e.write(*text)
		t.used.Put(text)
	}
}

// write writes the rows of a scan, and returns how many. Rows become text in several goroutines, and
// are written in their order. A file has perFile rows at most; 0 leaves it to the content to begin files.
func (t *exportTarget) write(ctx context.Context, dataset *sinks.Reader, m *sinks.Manifest, s *sinks.Scan, of content) (rows int64, err error) {
	for _, name := range t.remove {
		if err := t.store.Remove(ctx, name); err != nil {
			return 0, err
		}
	}
	e := &exporting{exportTarget: t, ctx: ctx, header: of.header()}
	if e.next(); e.err != nil { // also of no rows
		return 0, e.end(nil)
	}
	work := stream.New().WithMaxGoroutines(runtime.GOMAXPROCS(0) + 1)
	encode := func(arrays []arrow.Array, n int, begins bool) {
		work.Go(func() stream.Callback {
			write := of.encode(arrays, n)
			return func() {
				if begins {
					e.begin()
				}
				write(e)
			}
		})
	}
	inFile := int64(0)
	err = m.Rows(ctx, dataset, s, exportedRows, func(arrays []arrow.Array, n int) bool {
		rows += int64(n)
		defer typed.Release(arrays)
		for from := 0; from < n; {
			cuts := t.several() && t.perFile > 0
			begins, to := cuts && inFile == t.perFile, n
			if begins {
				inFile = 0
			}
			if cuts {
				to = int(min(int64(n), int64(from)+t.perFile-inFile))
			}
			encode(slice(arrays, from, to), to-from, begins)
			inFile, from = inFile+int64(to-from), to
		}
		return !e.failed.Load()
	})
	work.Wait()
	return rows, e.end(err)
}

func (t *exportTarget) several() bool { return t.pipe == nil && t.one == "" }

func slice(arrays []arrow.Array, from, to int) []arrow.Array {
	some := make([]arrow.Array, len(arrays))
	for i, a := range arrays {
		some[i] = array.NewSlice(a, int64(from), int64(to))
	}
	return some
}

// begin ends the open file, and begins the next one.
func (e *exporting) begin() {
	if e.err == nil {
		e.finish()
		e.next()
	}
	e.fail(nil)
}

// write writes lines.
func (e *exporting) write(text []byte) {
	if e.err == nil && bytes.IndexByte(text, 0) >= 0 { // JSON has it escaped
		e.err = cli.UsageError(errors.New("a text has a NUL byte, which readers of CSV take for its end; use --format jsonl, or leave its column out with --select"))
	}
	if e.err == nil {
		_, e.err = e.open.packed.Write(text)
	}
	e.fail(nil)
}

// fail ends the export if there is an error, or was one before.
func (e *exporting) fail(err error) {
	e.err = errors.Join(e.err, err)
	e.failed.Store(e.err != nil)
}

// next begins a file.
func (e *exporting) next() {
	if e.err != nil {
		return
	}
	name := e.one
	if name == "" {
		name = fmt.Sprintf("export-%05d.%s", e.files, e.format)
	}
	e.files++
	f := &exportedFile{}
	if e.pipe != nil {
		f.packed = plain{e.pipe}
	} else {
		if f.file, e.err = e.store.Begin(e.ctx, name); e.err != nil {
			return
		}
		f.packed = plain{f.file}
	}
	switch plain := f.packed; {
	case strings.HasSuffix(e.format, ".gz"):
		f.packed = gzip.NewWriter(plain)
	case strings.HasSuffix(e.format, ".zst"):
		f.packed, e.err = zstd.NewWriter(plain)
	}
	if e.open = f; e.err == nil {
		_, e.err = f.packed.Write(e.header)
	}
}

// finish publishes the open file.
func (e *exporting) finish() {
	f := e.open
	if e.err = f.packed.Close(); e.err != nil || f.file == nil {
		return
	}
	if e.err = f.file.Flush(); e.err == nil {
		_, e.err = f.file.Commit()
	}
	if e.err == nil {
		e.open = nil
	}
}

// end publishes the last file and _SUCCESS, unless err or another error ended the export.
func (e *exporting) end(err error) error {
	if e.err = errors.Join(err, e.err); e.err == nil {
		e.finish()
	}
	if e.err == nil && e.several() {
		e.err = e.store.Put(e.ctx, place.SuccessName, nil)
	}
	if e.err != nil && e.open != nil && e.open.file != nil {
		return errors.Join(e.err, e.open.file.Abort())
	}
	return e.err
}

// exportedFile is a file that is being written.
type exportedFile struct {
	packed io.WriteCloser
	file   store.Unfinished // nil for a pipe
}

// plain is a writer that is not closed with what is packed into it.
type plain struct{ io.Writer }

func (plain) Close() error { return nil }
