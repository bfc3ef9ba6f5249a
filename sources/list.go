package sources

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/sources/csvfile"
)

// List holds the inputs of a run, checked and in order.
type List struct {
	options Options
	inputs  []*input
	leftOut []string
	empty   []string
}

// Empty lists the local files in folders and of patterns that have no text. They are
// lists without rows.
func (l *List) Empty() []string { return l.empty }

// LeftOut lists the datasets of leadetl that were left out: those below a folder,
// a prefix or a ** that Open was given.
func (l *List) LeftOut() []string { return l.leftOut }

// Open expands the URIs (paths, folders, globs, s3://, "-"), sorts the files by
// name and checks that each exists, is given once, and has a valid encoding and
// header. Errors that the user can correct are *FormatError.
//
// Close the List if no Reader is made from it.
func Open(ctx context.Context, uris []string, o Options) (*List, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Encoding != "" {
		if _, err := csvfile.ParseEncoding(o.Encoding); err != nil {
			return nil, err
		}
	}
	if o.BatchRows <= 0 {
		o.BatchRows = DefaultBatchRows
	}
	o.whole = new(wholeTexts)
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	names, leftOut, err := expand(ctx, uris, o.Objects)
	if err != nil {
		return nil, err
	}
	if o.Archives {
		if names, err = unzip(ctx, names, o); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		return nil, &FormatError{File: "the list of inputs", Problem: "is empty", Advice: "Name a file, a glob or - for standard input"}
	}
	l := &List{options: o, leftOut: leftOut}
	seen := map[identity][]*input{}
	if l.inputs, err = inspectAll(ctx, names, o); err != nil {
		l.Close()
		return nil, err
	}
	if err := l.leaveOutEmpty(); err != nil {
		l.Close()
		return nil, err
	}
	for _, in := range l.inputs {
		if in.info == nil {
			continue
		}
		id := identity{in.Size, in.ModTime}
		for _, other := range seen[id] {
			if os.SameFile(other.info, in.info) {
				l.Close()
				return nil, givenTwice(in.URI)
			}
		}
		seen[id] = append(seen[id], in)
	}
	return l, nil
}

// inspectedAtOnce is how many objects are inspected concurrently: each takes a
// round trip to the store.
const inspectedAtOnce = 16

// inspectAll inspects every input. It returns the error of the first input that
// has one.
func inspectAll(ctx context.Context, names []named, o Options) ([]*input, error) {
	inputs, errs := make([]*input, len(names)), make([]error, len(names))
	p := pool.New().WithContext(ctx).WithMaxGoroutines(inspectedAtOnce).WithCancelOnError().WithFirstError()
	for i, name := range names {
		look := func(ctx context.Context) error {
			inputs[i], errs[i] = inspect(ctx, name, o)
			return errs[i]
		}
		if objects.Is(name.uri) {
			p.Go(look)
		} else if look(ctx) != nil {
			break
		}
	}
	first := p.Wait()
	inputs = slices.DeleteFunc(inputs, func(in *input) bool { return in == nil })
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return inputs, err
		}
	}
	return inputs, first
}

// identity is the same for two names of one file. It speeds up the search for
// such names in long lists of files.
type identity struct {
	size    int64
	modTime time.Time
}

func (o Options) validate() error {
	switch o.Delimiter {
	case '"', '\n', '\r', ' ':
	default:
		if o.Delimiter < 0x80 {
			return nil
		}
	}
	return &FormatError{File: "the delimiter", Problem: "must be one ASCII character, not a quote, space or line end",
		Advice: "Leave it out to have it detected"}
}

// Reading is how the text of CSV files is read, if it is not as usual: their encoding, and the lines
// before the header.
func (l *List) Reading() (encoding string, skipLines int) {
	if e := csvfile.Encoding(l.options.Encoding); !e.IsUTF8() {
		encoding = l.options.Encoding
	}
	return encoding, l.options.SkipLines
}

// Files returns the files in the order of their rows.
func (l *List) Files() []File {
	files := make([]File, len(l.inputs))
	for i, in := range l.inputs {
		files[i] = in.File
	}
	return files
}

// ByFile divides a List into Lists of a file each. The original List must not be used afterwards.
func (l *List) ByFile() (lists []*List) {
	for _, in := range l.inputs {
		lists = append(lists, &List{options: l.options, inputs: []*input{in}})
	}
	l.inputs = nil
	return lists
}

// ByColumns divides a List into Lists of consecutive files with the same
// columns. The original List must not be used afterwards.
func (l *List) ByColumns() (alike []*List) {
	for i, in := range l.inputs {
		if i == 0 || !slices.Equal(in.Columns, l.inputs[i-1].Columns) {
			alike = append(alike, &List{options: l.options})
		}
		last := alike[len(alike)-1]
		last.inputs = append(last.inputs, in)
	}
	l.inputs = nil
	return alike
}

// Check returns a *FormatError for the first file that lacks one of the
// columns, or has it more than once.
func (l *List) Check(columns []string) error {
	for _, in := range l.inputs {
		if _, err := in.pick(columns); err != nil {
			return err
		}
	}
	return nil
}

// CheckText returns a *FormatError for the first Parquet file in which one of the
// columns has binary data instead of text: rows with it would be rejected. It looks
// at the first rows of columns of which the schema does not say that they are text.
// Of the column that rows are resolved by, most values must be binary: others are
// rejected one by one.
func (l *List) CheckText(ctx context.Context, columns []string, resolved string) error {
	p := pool.New().WithContext(ctx).WithMaxGoroutines(inspectedAtOnce).WithCancelOnError().WithFirstError()
	for _, in := range l.inputs {
		if in.Format == formatParquet {
			p.Go(func(ctx context.Context) error { return in.checkText(ctx, columns, resolved) })
		}
	}
	return p.Wait()
}

// Close closes the streams that Open has opened and no Reader took over.
func (l *List) Close() error {
	for _, in := range l.inputs {
		if in.stream != nil {
			in.stream.Close()
			in.stream = nil
		}
	}
	return nil
}

// ReadOnce reports whether an input can be read only once: it is standard input, or
// a pipe.
func (l *List) ReadOnce() bool {
	return slices.ContainsFunc(l.inputs, func(in *input) bool { return in.once })
}

// total returns the stored size of all files, -1 if one size is unknown.
func (l *List) total() (n int64) {
	for _, in := range l.inputs {
		if in.Size < 0 {
			return -1
		}
		n += in.Size
	}
	return n
}

var _ io.Closer = (*List)(nil)
