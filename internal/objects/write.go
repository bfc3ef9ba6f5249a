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

// Content is what an object is to hold. It may be read several times, and from
// several places at once.
type Content struct {
	io.ReaderAt
	Size   int64
	SHA256 [sha256.Size]byte
	Type   string // MIME type
	// Begun, if it is not nil, is told of every upload in pieces: before each try
	// to begin it, without an id, and once its id is known. An error ends the write.
	Begun func(upload string) error
}

// ContentOf is the content that data is.
func ContentOf(data []byte, mime string) Content {
	return Content{ReaderAt: bytes.NewReader(data), Size: int64(len(data)), SHA256: sha256.Sum256(data), Type: mime}
}

// condition is what a write asks of the object that is there: none, any with a
// certain ETag, or, empty, nothing.
type condition struct{ none, etag *string }

var ifAbsent = condition{none: aws.String("*")}

// ifMatch is nothing where a store has no ETags.
func ifMatch(etag string) condition { return condition{etag: optional(etag)} }

// maxConflicts is how often an object may change between being looked at and
// being replaced.
const maxConflicts = 5

// Put makes an object hold the content, and confirms that it does. What is
// there already and the same is left as it is; so an answer that was lost is
// found to be a success. Anything else that is there is replaced, provided that
// it is still what was looked at: of two writers of different contents, the one
// that comes second knows what it replaces.
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
		case errors.Is(statErr, fs.ErrNotExist):
			asked = ifAbsent
		case statErr != nil:
			return Info{}, statErr
		case c.is(info):
			return info, nil
		default:
			asked = ifMatch(info.ETag)
		}
	}
	return Info{}, fmt.Errorf("write %s: %w: another program writes to it", at, ErrChanged)
}

// Create writes an object that is not there yet, and nothing else: where
// another is, it is fs.ErrExist. One that is there with the same content is the
// one that was written, and the answer was lost.
func (s *Store) Create(ctx context.Context, at Location, c Content) error {
	if s.unconditional.Load() {
		return s.needsConditions(at)
	}
	send := s.putWhole
	if c.Size > wholeSize {
		send = s.putPieces
	}
	_, err := send(ctx, at, c, ifAbsent)
	switch {
	case errors.Is(err, errNotImplemented):
		return s.needsConditions(at)
	case !errors.Is(err, ErrChanged):
		return err
	}
	info, err := s.Stat(ctx, at)
	if err == nil && !c.is(info) {
		err = fmt.Errorf("create %s: %w", at, fs.ErrExist)
	}
	return err
}

func (s *Store) needsConditions(at Location) error {
	return lacks(at, "the store does not support conditional writes, which keep two processes apart", useAnother)
}

const useAnother = "use a store that does, or a folder"

// lacks refuses a store that cannot do what is needed.
func lacks(at Location, problem, advice string) error {
	return &RefusedError{Location: at.String(), Problem: problem, Advice: advice}
}

// is reports whether an object holds the content.
func (c Content) is(info Info) bool {
	return info.Size == c.Size && info.SHA256 == hex.EncodeToString(c.SHA256[:])
}

// write sends the content, whole or in pieces, under a condition. Where the
// store does not know conditions it is sent without. The ETag is that of what
// was written, and empty where the store did not say.
func (s *Store) write(ctx context.Context, at Location, c Content, asked condition) (etag string, err error) {
	if s.unconditional.Load() {
		asked = condition{}
	}
	send := s.putWhole
	if c.Size > wholeSize {
		send = s.putPieces
	}
	etag, err = send(ctx, at, c, asked)
	if errors.Is(err, errNotImplemented) && asked != (condition{}) {
		if etag, err = send(ctx, at, c, condition{}); !errors.Is(err, errNotImplemented) {
			s.warnUnconditional()
		}
	}
	if errors.Is(err, errNotImplemented) {
		problem := "the store does not support checksums of what it is sent (x-amz-checksum-sha256, x-amz-checksum-crc32c)"
		if s.options.SSE+s.options.ACL != "" {
			problem += ", or not what --s3-sse or --s3-acl asks for"
		}
		err = lacks(at, problem, useAnother)
	}
	return etag, err
}

// warnUnconditional notes that the store does not know conditional writes, and
// says so once.
func (s *Store) warnUnconditional() {
	if !s.unconditional.Swap(true) {
		s.options.Log.Warn("the store does not support conditional writes: objects are overwritten, and two machines that start a run on one dataset at the same moment do not notice each other")
	}
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

// signedWith saves reading the body once more for its signature.
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

// Remove removes an object; one that is not there is as well.
func (s *Store) Remove(ctx context.Context, at Location) error {
	err := s.do(ctx, request{"remove", "s3:DeleteObject", at, 0}, func(ctx context.Context, c *s3.Client, region func(*s3.Options)) error {
		_, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &at.Bucket, Key: &at.Key}, region)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ReadFile reads a small object whole.
func (s *Store) ReadFile(ctx context.Context, at Location) ([]byte, Info, error) {
	o, err := s.Open(ctx, Info{Location: at})
	if err != nil {
		return nil, Info{}, err
	}
	defer o.Close()
	data := make([]byte, o.Size)
	if _, err := o.ReadAt(data, 0); err != nil && err != io.EOF {
		return nil, Info{}, err
	}
	return data, o.Info, nil
}
