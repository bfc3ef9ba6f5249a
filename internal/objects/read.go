package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// checksumKey is the metadata key of an object's SHA-256 (hex).
const checksumKey = "leadetl-sha256"

// Stat reads an object's Info.
func (s *Store) Stat(ctx context.Context, at Location) (info Info, err error) {
	err = s.do(ctx, request{"look at", "s3:GetObject", at, 0}, func(ctx context.Context, c *s3.Client, region func(*s3.Options)) error {
		out, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &at.Bucket, Key: &at.Key}, region)
		if err != nil {
			return err
		}
		info = infoOf(at.Bucket, &at.Key, out.ContentLength, out.ETag, out.LastModified)
		info.SHA256 = out.Metadata[checksumKey]
		info.SeenAt, _ = awsmiddleware.GetServerTime(out.ResultMetadata)
		return nil
	})
	return info, err
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

// Open opens an object. For an Info from a listing, it reads nothing yet. For an
// Info with only a location, it reads the first block, whose answer has the
// rest. When ctx ends, reads fail.
func (s *Store) Open(ctx context.Context, info Info) (*Object, error) {
	ctx, cancel := context.WithCancel(ctx)
	o := &Object{Info: info, store: s, ctx: ctx, cancel: cancel, kept: map[int64][]byte{}}
	if info.ETag == "" {
		if err := o.discover(); err != nil {
			cancel()
			return nil, err
		}
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
	empty := false
	err := o.store.do(o.ctx, o.request(blockSize), func(ctx context.Context, c *s3.Client, region func(*s3.Options)) error {
		out, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: &o.Bucket, Key: &o.Key, Range: aws.String(fmt.Sprintf("bytes=0-%d", blockSize-1))}, region)
		if code, status := codeOf(err); code == "InvalidRange" || status == http.StatusRequestedRangeNotSatisfiable {
			empty = true
			return nil
		}
		if err != nil {
			return err
		}
		defer out.Body.Close()
		o.Info = infoOf(o.Bucket, &o.Key, out.ContentLength, out.ETag, out.LastModified)
		o.SHA256 = out.Metadata[checksumKey]
		o.SeenAt, _ = awsmiddleware.GetServerTime(out.ResultMetadata)
		if _, size, found := strings.Cut(aws.ToString(out.ContentRange), "/"); found {
			if o.Size, err = strconv.ParseInt(size, 10, 64); err != nil {
				return err
			}
		}
		block = make([]byte, min(o.Size, blockSize))
		_, err = io.ReadFull(out.Body, block)
		return err
	})
	if err == nil && empty {
		o.Info, err = o.store.Stat(o.ctx, o.Location)
	}
	if err == nil && len(block) > 0 {
		o.keep(0, block)
	}
	return err
}

func (o *Object) request(size int64) request {
	return request{"read", "s3:GetObject", o.Location, size}
}

// fill reads p from an offset. It resumes where a broken connection stopped.
func (o *Object) fill(p []byte, off int64) error {
	n, other := 0, false
	err := o.store.progress(o.ctx, o.request(int64(len(p))), func(ctx context.Context, c *s3.Client, region func(*s3.Options)) (bool, error) {
		before := n
		out, err := c.GetObject(ctx, &s3.GetObjectInput{
			Bucket: &o.Bucket, Key: &o.Key, IfMatch: optional(o.ETag),
			Range: aws.String(fmt.Sprintf("bytes=%d-%d", off+int64(n), off+int64(len(p))-1)),
		}, region)
		if err != nil {
			return false, err
		}
		defer out.Body.Close()
		if aws.ToString(out.ETag) != o.ETag { // the store ignores the condition
			other = true
			return false, nil
		}
		m, err := io.ReadFull(out.Body, p[n:])
		n += m
		return n > before, err
	})
	switch _, status := codeOf(err); {
	case err == nil && !other:
		return nil
	case other, status == http.StatusRequestedRangeNotSatisfiable || errors.Is(err, ErrChanged) || isGone(err):
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
