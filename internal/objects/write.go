package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
)

// Content is what to write to an object. It may be read several times and
// concurrently.
type Content struct {
	io.ReaderAt
	Size   int64
	SHA256 [sha256.Size]byte
	Type   string // MIME type
	// Begun, if not nil, is called for every multipart upload: before each try to
	// begin it, without an id, and once its id is known. An error ends the write.
	Begun func(upload string) error
}

// ContentOf makes a Content of data.
func ContentOf(data []byte, mime string) Content {
	return Content{ReaderAt: bytes.NewReader(data), Size: int64(len(data)), SHA256: sha256.Sum256(data), Type: mime}
}

// condition is the condition of a write: the object must not exist (none), or
// must have a certain ETag. Without either, there is no condition.
type condition struct{ none, etag *string }

var ifAbsent = condition{none: aws.String("*")}

// ifMatch returns no condition if the store sent no ETag.
func ifMatch(etag string) condition { return condition{etag: optional(etag)} }

// maxConflicts is how often an object may change between a read and its
// replacement.
const maxConflicts = 5

// Put makes an object hold the content, and confirms that it does. An object
// with the same content counts as written, so a lost answer is not an error. Any
// other object is replaced, but only if it has not changed since Put read it. So
// the second of two writers knows what it replaces.
func (s *Store) Put(ctx context.Context, at Location, c Content) (Info, error) {
	asked := ifAbsent
	for range maxConflicts {
		etag, err := s.write(ctx, at, c, asked)
		if err != nil && !errors.Is(err, ErrChanged) && !errors.Is(err, fs.ErrNotExist) {
			return Info{}, err
		}
		info, statErr := s.Stat(ctx, at)
		switch {
		case err == nil && statErr == nil && info.SHA256 == "" && info.Size == c.Size && (etag == "" || etag == info.ETag):
			return Info{}, lacks(at, "the store does not keep the metadata of objects, which has their checksum (x-amz-meta-"+checksumKey+")", useAnother)
		case errors.Is(statErr, fs.ErrNotExist) && errors.Is(err, ErrChanged) && asked == ifAbsent:
			if err := s.awaitWritten(ctx, at, c); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return Info{}, err
			}
		case errors.Is(statErr, fs.ErrNotExist):
			asked = ifAbsent
		case statErr != nil:
			return Info{}, statErr
		case c.is(info):
			return info, nil
		case err == nil && etag != "" && etag == info.ETag && info.SHA256 == hex.EncodeToString(c.SHA256[:]):
			return Info{}, lacks(at, fmt.Sprintf("%d bytes were written, and the store says that it has %d", c.Size, info.Size), "use another store, or a folder")
		default:
			asked = ifMatch(info.ETag)
		}
	}
	return Info{}, fmt.Errorf("write %s: %w: another program writes to it", at, ErrChanged)
}

// awaitWritten waits for an object that the store refuses to create, because it exists, and does not show. It
// is fs.ErrNotExist if it can be created after all: another process has removed it.
func (s *Store) awaitWritten(ctx context.Context, at Location, c Content) error {
	exists := func() (bool, error) {
		if c.Size > wholeSize { // it would be sent again
			return true, nil
		}
		_, err := s.write(ctx, at, c, ifAbsent)
		if errors.Is(err, ErrChanged) {
			return true, nil
		}
		return false, err
	}
	return s.Await(ctx, exists, func() error {
		_, err := s.Stat(ctx, at)
		return err
	})
}

// Create writes an object that does not exist yet. If one exists, the error is
// fs.ErrExist, except when it has the same content: then an earlier try wrote it
// and the answer was lost.
func (s *Store) Create(ctx context.Context, at Location, c Content) error {
	if s.unconditional.Load() {
		return needsConditions(at)
	}
	_, err := s.put(ctx, at, c, ifAbsent)
	switch {
	case errors.Is(err, errNotImplemented):
		return needsConditions(at)
	case !errors.Is(err, ErrChanged):
		return err
	}
	info, err := s.Stat(ctx, at)
	if err == nil && !c.is(info) || errors.Is(err, fs.ErrNotExist) { // the store does not show it yet
		err = fmt.Errorf("create %s: %w", at, fs.ErrExist)
	}
	return err
}

func needsConditions(at Location) error {
	return lacks(at, "the store does not support conditional writes, which keep two processes apart", useAnother)
}

const useAnother = "use a store that does, or a folder"

// lacks is the error for a store that lacks a needed feature.
func lacks(at Location, problem, advice string) error {
	return &RefusedError{Location: at.String(), Problem: problem, Advice: advice}
}

// is reports whether an object holds the content.
func (c Content) is(info Info) bool {
	return info.Size == c.Size && info.SHA256 == hex.EncodeToString(c.SHA256[:])
}

// write sends the content under a condition. If the store
// does not support conditions, it sends it without one. It returns the ETag of
// the new object, empty if the store did not send one.
func (s *Store) write(ctx context.Context, at Location, c Content, asked condition) (etag string, err error) {
	if s.unconditional.Load() {
		asked = condition{}
	}
	etag, err = s.put(ctx, at, c, asked)
	if errors.Is(err, errNotImplemented) && asked != (condition{}) {
		if etag, err = s.put(ctx, at, c, condition{}); !errors.Is(err, errNotImplemented) {
			s.warnUnconditional()
		}
	}
	if errors.Is(err, errNotImplemented) {
		problem := "the store does not support checksums of what it is sent (x-amz-checksum-sha256, x-amz-checksum-crc32c)"
		if s.options.SSE+s.options.ACL != "" {
			problem += ", or not what s3_sse or s3_acl asks for"
		}
		err = lacks(at, problem, useAnother)
	}
	return etag, err
}

// warnUnconditional records that the store does not support conditional writes,
// and warns once.
func (s *Store) warnUnconditional() {
	if !s.unconditional.Swap(true) {
		s.options.Log.Warn("the store does not support conditional writes: objects are overwritten, and two machines that start a run on one dataset at the same moment do not notice each other")
	}
}

// put sends the content under a condition, whole or in pieces.
func (s *Store) put(ctx context.Context, at Location, c Content, asked condition) (etag string, err error) {
	if c.Size > wholeSize {
		return s.putPieces(ctx, at, c, asked)
	}
	return s.putWhole(ctx, at, c, asked)
}

func (s *Store) putWhole(ctx context.Context, at Location, c Content, asked condition) (etag string, err error) {
	err = s.do(ctx, request{"write", "s3:PutObject", at, c.Size}, func(ctx context.Context, client *s3.Client, region func(*s3.Options)) error {
		out, err := client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &at.Bucket, Key: &at.Key, Body: io.NewSectionReader(c, 0, c.Size), ContentLength: &c.Size, ContentType: optional(c.Type),
			ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(c.SHA256[:])), Metadata: c.metadata(),
			IfNoneMatch: asked.none, IfMatch: asked.etag,
			ServerSideEncryption: types.ServerSideEncryption(s.options.SSE), SSEKMSKeyId: optional(s.options.KMSKey), ACL: types.ObjectCannedACL(s.options.ACL),
		}, region, signedWith(c.SHA256))
		if err == nil {
			etag = aws.ToString(out.ETag)
		}
		return err
	})
	return etag, err
}

func (c Content) metadata() map[string]string {
	return map[string]string{checksumKey: hex.EncodeToString(c.SHA256[:])}
}

// signedWith saves reading the body a second time for its signature.
func signedWith(sum [sha256.Size]byte) func(*s3.Options) {
	known := middleware.FinalizeMiddlewareFunc("KnownPayloadHash", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
		return next.HandleFinalize(v4.SetPayloadHash(ctx, hex.EncodeToString(sum[:])), in)
	})
	return func(o *s3.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Finalize.Insert(known, (&v4.ComputePayloadSHA256{}).ID(), middleware.Before)
		})
	}
}

// Remove removes an object. It is not an error if it does not exist.
func (s *Store) Remove(ctx context.Context, at Location) error {
	_, err := send(ctx, s.connection, request{"remove", "s3:DeleteObject", at, 0}, &s3.DeleteObjectInput{Bucket: &at.Bucket, Key: &at.Key}, (*s3.Client).DeleteObject)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ReadFile reads a whole small object. If this package wrote it, its checksum must be
// right.
func (s *Store) ReadFile(ctx context.Context, at Location) ([]byte, Info, error) {
	o, err := s.Open(ctx, Info{Location: at})
	if err != nil {
		return nil, Info{}, err
	}
	defer o.Close()
	data, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size))
	if err == nil && o.SHA256 != "" && o.SHA256 != fmt.Sprintf("%x", sha256.Sum256(data)) {
		err = s.judge(o.request(o.Size), "", &wrongAnswerError{fmt.Sprintf("the store sent other bytes than were written: %d of them, with another checksum", len(data)), ErrChecksum})
	}
	return data, o.Info, err
}
