package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/objects"
)

// stored is an input that can be read again and from any position: a file or an
// object.
type stored interface {
	io.ReaderAt
	io.Seeker // to its end, to determine its size
	// stream reads it from an offset on.
	stream(from int64) (io.ReadCloser, error)
	// unchanged returns an error if the input has changed since Open.
	unchanged() error
	// Close frees it, and interrupts reads.
	Close() error
}

var (
	_ stored = (*localFile)(nil)
	_ stored = (*object)(nil)
	_ stored = (*entry)(nil)
)

// localFile is a file of this machine.
type localFile struct {
	*os.File
	in *input
}

func (f *localFile) stream(from int64) (io.ReadCloser, error) {
	_, err := f.Seek(from, io.SeekStart)
	return io.NopCloser(f.File), err
}

// Close does not interrupt a read, because a disk answers.
func (f *localFile) Close() error { return f.File.Close() }

// unchanged compares the open file, and the file that has its name now, with
// the file that Open found.
func (f *localFile) unchanged() error {
	now, err := f.Stat()
	if err != nil {
		return readError(f.in.URI, err)
	}
	if !f.in.isAsFound(now) {
		return f.in.changed()
	}
	return f.in.keepsName()
}

// isAsFound compares a local file with the one that Open found.
func (in *input) isAsFound(now os.FileInfo) bool {
	return os.SameFile(in.info, now) && now.Size() == in.info.Size() && now.ModTime().Equal(in.info.ModTime())
}

// keepsName returns an error if the file that has the name of a local one now is not the
// file that Open found.
func (in *input) keepsName() error {
	if in.archive != nil {
		return in.archive.keepsName()
	}
	if in.info == nil {
		return nil
	}
	if now, err := os.Stat(in.URI); err != nil || !in.isAsFound(now) {
		return in.changed()
	}
	return nil
}

// object is a version of an object on S3. Every read returns this version or an
// error, so there is nothing to compare.
type object struct {
	*objects.Object
	*io.SectionReader // for Seek; reads use Object
}

func newObject(o *objects.Object) *object { return &object{o, io.NewSectionReader(o, 0, o.Size)} }

func (o *object) ReadAt(p []byte, off int64) (int, error) { return o.Object.ReadAt(p, off) }
func (o *object) unchanged() error                        { return nil }

func (o *object) stream(from int64) (io.ReadCloser, error) { return o.StreamFrom(from), nil }

// openStored opens an input again and checks that it has not changed since
// Open.
func (in *input) openStored(ctx context.Context) (stored, error) {
	if in.archive != nil {
		return in.openEntry(ctx)
	}
	if in.store != nil {
		o, err := in.store.Open(ctx, in.object)
		if err != nil {
			return nil, in.blame(nil, err)
		}
		return newObject(o), nil
	}
	f, _, err := openFile(in.URI)
	if err != nil {
		return nil, err
	}
	file := &localFile{f, in}
	if err := file.unchanged(); err != nil {
		f.Close()
		return nil, err
	}
	return file, nil
}

// beingRead is an input that is read from the start, or from a mark.
type beingRead struct {
	file stored
	text io.ReadCloser // as it is stored
}

// beginReading opens an input and starts reading it at its mark, unless that was
// done before its turn.
func (in *input) beginReading(ctx context.Context) (beingRead, error) {
	if b := in.early; b != nil {
		in.early = nil
		return *b, nil
	}
	f, err := in.openStored(ctx)
	if err != nil {
		return beingRead{}, err
	}
	text, err := f.stream(in.from.Offset)
	if err != nil {
		return beingRead{}, errors.Join(in.blame(f, err), f.Close())
	}
	return beingRead{f, text}, nil
}

// interrupt ends a read that waits for a store that does not answer. It does
// not interrupt a disk, whose file is in use until the read has ended.
func (b beingRead) interrupt() {
	file := b.file
	if e, is := file.(*entry); is {
		file = e.stored
	}
	if _, remote := file.(*object); remote {
		file.Close()
	}
}

func (b beingRead) close() error { return errors.Join(b.text.Close(), b.file.Close()) }

const (
	// earlyObjects and earlyBytes bound what is read of objects before their
	// turn. For many small objects, one round trip each would take longer than
	// reading their rows.
	earlyObjects = 16
	earlyBytes   = 16 << 20
)

// beginNext starts reading the next inputs if they are small objects.
func beginNext(ctx context.Context, inputs []*input) error {
	bytes := int64(0)
	for _, in := range inputs[:min(len(inputs), earlyObjects)] {
		if in.whole != nil {
			continue
		}
		if bytes += in.Size; in.store == nil || in.Format == formatParquet || bytes > earlyBytes {
			return nil
		}
		if in.early != nil {
			continue
		}
		b, err := in.beginReading(ctx)
		if err != nil {
			return err
		}
		in.early = &b
	}
	return nil
}

func (in *input) changed() error {
	return fmt.Errorf("%s: %w; run again when no other program writes to it", in.URI, ErrChanged)
}

// inspectObject looks at an object.
func (in *input) inspectObject(ctx context.Context, info objects.Info, o Options) error {
	object, err := o.Objects.Open(ctx, info)
	if errors.Is(err, fs.ErrNotExist) {
		return in.missingObject(o, err)
	}
	if err != nil {
		return in.blame(nil, err)
	}
	defer object.Close()
	in.store, in.object = o.Objects, object.Info
	in.Size, in.ModTime, in.ETag = object.Size, object.ModTime, strings.Trim(object.ETag, `"`)
	err = in.inspectStored(newObject(object), o)
	if isListed := !info.ModTime.IsZero(); isListed && in.Size == 0 {
		return in.inspectEmpty(info, err)
	}
	return err
}

func (in *input) missingObject(o Options, err error) error {
	return &FormatError{File: in.URI, Problem: "does not exist", Advice: "Check the names of object and bucket" + from(o.Objects) + "; a prefix ends in a slash", Err: err}
}

// from names a store's endpoint if it comes from the environment.
func from(store *objects.Store) string {
	if endpoint := store.EnvironmentEndpoint(); endpoint != "" {
		return ", and the endpoint " + endpoint
	}
	return ""
}

// inspectEmpty inspects an object that was listed and has no bytes. err is what is
// wrong with it if it is the only input; nil if nothing is.
func (in *input) inspectEmpty(listed objects.Info, err error) error {
	switch {
	case listed.IsFolder:
		in.marksFolder = true
		return nil
	case listed.Size > 0:
		return &FormatError{File: in.URI, Problem: fmt.Sprintf("is empty, but the store lists it with %d bytes", listed.Size), Advice: "Copy it to the store again, or leave it out"}
	}
	in.empty, in.emptyErr = true, err
	return nil
}

// leaveOutEmpty leaves out objects that only mark a folder, and names the other empty
// ones and files: lists without rows, which may be a mistake. If there is no list with rows, the
// first empty one is an error, unless such lists are allowed.
func (l *List) leaveOutEmpty() error {
	first := ""
	l.inputs = slices.DeleteFunc(l.inputs, func(in *input) bool {
		first = cmp.Or(first, in.URI)
		return in.marksFolder
	})
	if len(l.inputs) == 0 {
		return &FormatError{File: first, Problem: "only marks a folder, and no list was found", Advice: "Check the prefix or the pattern"}
	}
	others := slices.ContainsFunc(l.inputs, func(in *input) bool { return !in.empty })
	for _, in := range l.inputs {
		if in.empty && !others && in.emptyErr != nil {
			return in.emptyErr
		}
		if in.empty && in.store == nil {
			l.empty = append(l.empty, in.URI)
		} else if in.empty {
			l.options.Objects.Log().Warn("the list is empty: no row is read from it", "list", in.URI)
		}
	}
	if others {
		l.inputs = slices.DeleteFunc(l.inputs, func(in *input) bool { return in.empty })
	}
	return nil
}
