package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// checksumKey is the metadata key of an object's SHA-256 (hex).
const checksumKey = "leadetl-sha256"

// Stat reads an object's Info.
func (s *Store) Stat(ctx context.Context, at Location) (info Info, err error) {
	out, err := send(ctx, s.connection, request{"look at", "s3:GetObject", at, 0}, &s3.HeadObjectInput{Bucket: &at.Bucket, Key: &at.Key}, (*s3.Client).HeadObject)
	if err != nil {
		return info, err
	}
	info = infoOf(at.Bucket, &at.Key, out.ContentLength, out.ETag, out.LastModified)
	info.answered, info.SHA256 = true, out.Metadata[checksumKey]
	info.SeenAt, _ = awsmiddleware.GetServerTime(out.ResultMetadata)
	return info, nil
}

// blockSize is how much ReadAt reads of an object at a time. blocks is how many
// blocks an Object keeps: enough for one per column of a Parquet file.
const (
	blockSize = 1 << 20
	blocks    = 32
)

// Object is one version of an object, open for reading. If the object is
// replaced, reads return ErrChanged. Its methods are safe for concurrent use.
type Object struct {
	Info
	store  *Store
	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex
	kept  map[int64][]byte // by number
	order []int64          // of kept, the most recently used last
}

// Open opens an object. For an Info from Stat or from an Object, it reads nothing
// yet. For an Info with only a location, or from a listing, it reads the first
// block, whose answer has the rest: stores that compress or encrypt list another
// size. When ctx ends, reads fail.
func (s *Store) Open(ctx context.Context, info Info) (*Object, error) {
	ctx, cancel := context.WithCancel(ctx)
	o := &Object{Info: info, store: s, ctx: ctx, cancel: cancel, kept: map[int64][]byte{}}
	if info.answered {
		return o, nil
	}
	if err := o.discover(); err != nil {
		cancel()
		return nil, err
	}
	if info.ETag != "" && info.ETag == o.ETag {
		o.ModTime = info.ModTime // of this version, with fractions of a second
	}
	return o, nil
}

// Close interrupts reads in progress.
func (o *Object) Close() error {
	o.cancel()
	return nil
}

// discover reads the first block, and takes the object's Info from the answer.
// It does not use a HEAD request, because a refusal of that has no reason.
func (o *Object) discover() error {
	var block []byte
	err := o.store.do(o.ctx, o.request(blockSize), func(ctx context.Context, c *s3.Client, region func(*s3.Options)) error {
		a, err := o.ask(ctx, c, region, 0, blockSize)
		if isNoRange(err) { // as of an object without bytes
			a, err = o.ask(ctx, c, region, 0, 0)
		}
		if err != nil {
			return err
		}
		defer a.Body.Close()
		block = make([]byte, min(a.total, blockSize))
		if _, err := a.read(block, 0); err != nil {
			return err
		}
		isFolder := o.IsFolder
		o.Info = infoOf(o.Bucket, &o.Key, &a.total, a.ETag, a.LastModified)
		o.answered, o.IsFolder, o.SHA256 = true, isFolder, a.Metadata[checksumKey]
		o.SeenAt, _ = awsmiddleware.GetServerTime(a.ResultMetadata)
		return nil
	})
	switch {
	case err == nil && len(block) > 0:
		o.keep(0, block)
	case err == nil && !o.IsFolder:
		return o.confirmEmpty()
	}
	return err
}

// confirmEmpty asks again whether an object is empty. An answer without bytes may have
// lost them, and a list without rows would go unnoticed.
func (o *Object) confirmEmpty() error {
	info, err := o.store.Stat(o.ctx, o.Location)
	if err == nil && info.Size > 0 {
		err = o.store.judge(o.request(0), "", wrongAnswer("the store sent no bytes of it, but says that it has %d", info.Size))
	}
	return err
}

// isNoRange reports whether an error says that the object has no byte of the range.
func isNoRange(err error) bool {
	code, status := codeOf(err)
	return code == "InvalidRange" || status == http.StatusRequestedRangeNotSatisfiable
}

func (o *Object) request(size int64) request {
	return request{"read", "s3:GetObject", o.Location, size}
}

// fill reads p from an offset. It resumes where a broken connection stopped.
func (o *Object) fill(p []byte, off int64) error {
	n := 0
	err := o.store.progress(o.ctx, o.request(int64(len(p))), func(ctx context.Context, c *s3.Client, region func(*s3.Options)) (read int, err error) {
		a, err := o.ask(ctx, c, region, off+int64(n), off+int64(len(p)))
		if err != nil {
			return 0, err
		}
		defer a.Body.Close()
		read, err = a.read(p[n:], off+int64(n))
		n += read
		return read, err
	})
	if errors.Is(err, ErrChanged) || isNoRange(err) || isGone(err) {
		return fmt.Errorf("read %s: %w", o.Location, ErrChanged)
	}
	return err
}

// ReadAt reads through blocks, some of which are kept. It is for files that are
// read at random. To read an object from beginning to end, use Stream.
func (o *Object) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errors.New("negative offset")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for n < len(p) && off < o.Size {
		block, err := o.block(off / blockSize)
		if err != nil {
			return n, err
		}
		m := copy(p[n:], block[off%blockSize:])
		n, off = n+m, off+int64(m)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Ranges returns a reader that asks for exactly the bytes that are read, and keeps
// none. It is for a few large reads.
func (o *Object) Ranges() io.ReaderAt { return ranges{o} }

type ranges struct{ o *Object }

func (r ranges) ReadAt(p []byte, off int64) (int, error) {
	some := p[:max(min(int64(len(p)), r.o.Size-off), 0)]
	if len(some) > 0 {
		if err := r.o.fill(some, off); err != nil {
			return 0, err
		}
	}
	if len(some) < len(p) {
		return len(some), io.EOF
	}
	return len(p), nil
}

// block returns a block, from the kept ones if possible.
func (o *Object) block(number int64) ([]byte, error) {
	if block, found := o.kept[number]; found {
		o.keep(number, block)
		return block, nil
	}
	block := make([]byte, min(blockSize, o.Size-number*blockSize))
	if err := o.fill(block, number*blockSize); err != nil {
		return nil, err
	}
	o.keep(number, block)
	return block, nil
}

// keep keeps a block, as the most recently used one.
func (o *Object) keep(number int64, block []byte) {
	for i, other := range o.order {
		if other == number {
			o.order = append(o.order[:i], o.order[i+1:]...)
			break
		}
	}
	o.kept[number] = block
	o.order = append(o.order, number)
	if len(o.order) > blocks {
		delete(o.kept, o.order[0])
		o.order = o.order[1:]
	}
}
