package objects

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/internal/checksum"
)

// Objects up to wholeSize are sent in one request, larger ones in pieces, some
// of them concurrently. S3 accepts 10,000 pieces.
const (
	wholeSize    = 8 << 20
	pieceSize    = 8 << 20
	maxPieces    = 10_000
	piecesAtOnce = 3
)

// putPieces sends the content as a multipart upload. The condition applies to
// its completion.
//
// The SDK's transfer manager (feature/s3/transfermanager v0.4.1) was tried. It
// passes the tests with a client of ours that repeats each request until
// Options.GiveUpAfter, in another region if needed. But that client needs as
// many lines as the pieces do here, and the manager prints to the standard
// logger when a completion fails.
func (s *Store) putPieces(ctx context.Context, at Location, c Content, asked condition) (etag string, err error) {
	s.partly.Store(true)
	for try := 1; ; try++ {
		upload, err := s.beginUpload(ctx, at, c)
		if err != nil {
			return "", err
		}
		pieces, err := s.sendPieces(ctx, at, c, upload)
		if err == nil {
			etag, err = s.complete(ctx, at, upload, pieces, asked)
		}
		if err == nil {
			return etag, nil
		}
		abortErr := s.Abort(ctx, at, upload)
		if !errors.Is(err, errNoUpload) {
			return "", errors.Join(err, abortErr)
		}
		// The upload no longer exists because it was completed and the answer was
		// lost, or because somebody aborted it.
		if info, statErr := s.Stat(ctx, at); statErr == nil && c.is(info) {
			return info.ETag, nil
		} else if try == maxConflicts {
			return "", err
		}
	}
}

func (s *Store) beginUpload(ctx context.Context, at Location, c Content) (upload string, err error) {
	begun := c.Begun
	if begun == nil {
		begun = func(string) error { return nil }
	}
	var unrecorded error
	err = s.do(ctx, request{"write", "s3:PutObject", at, 0}, func(ctx context.Context, client *s3.Client, region func(*s3.Options)) error {
		if unrecorded = begun(""); unrecorded != nil {
			return nil
		}
		out, err := client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
			Bucket: &at.Bucket, Key: &at.Key, ContentType: optional(c.Type), ChecksumAlgorithm: types.ChecksumAlgorithmCrc32c, Metadata: c.metadata(),
			ServerSideEncryption: types.ServerSideEncryption(s.options.SSE), SSEKMSKeyId: optional(s.options.KMSKey), ACL: types.ObjectCannedACL(s.options.ACL),
		}, region, func(o *s3.Options) { o.RetryMaxAttempts = 1 }) // Begun must hear of every try
		if err == nil {
			upload = aws.ToString(out.UploadId)
		}
		return err
	})
	var refused *RefusedError
	if errors.Is(err, errNotImplemented) || errors.As(err, &refused) && refused.Code == "MethodNotAllowed" {
		err = lacks(at, fmt.Sprintf("the store does not support uploads in pieces, in which files of more than %d MiB are sent", wholeSize>>20),
			useAnother+", or make smaller parts with --rows-per-part")
	}
	if err != nil || unrecorded != nil {
		return "", errors.Join(err, unrecorded)
	}
	if err := begun(upload); err != nil {
		return "", errors.Join(err, s.Abort(ctx, at, upload))
	}
	return upload, nil
}

func (s *Store) sendPieces(ctx context.Context, at Location, c Content, upload string) ([]types.CompletedPart, error) {
	size := max(pieceSize, (c.Size+maxPieces-1)/maxPieces)
	pieces := make([]types.CompletedPart, (c.Size+size-1)/size)
	// After a failure no more pieces are started. Those in flight are waited for:
	// if the upload were aborted before them, they would stay in the store.
	var failed atomic.Bool
	p := pool.New().WithErrors().WithFirstError().WithMaxGoroutines(piecesAtOnce)
	for i := range pieces {
		p.Go(func() (err error) {
			if failed.Load() {
				return nil
			}
			from := int64(i) * size
			if pieces[i], err = s.sendPiece(ctx, at, io.NewSectionReader(c, from, min(size, c.Size-from)), upload, int32(i+1)); err != nil {
				failed.Store(true)
			}
			return err
		})
	}
	return pieces, p.Wait()
}

// sendPiece sends a piece with a CRC-32C. The whole object has a SHA-256. A SHA-256 of
// each piece would double that cost, here and at the store.
func (s *Store) sendPiece(ctx context.Context, at Location, piece *io.SectionReader, upload string, number int32) (done types.CompletedPart, err error) {
	h := checksum.New()
	if _, err := io.Copy(h, piece); err != nil {
		return done, err
	}
	sum := base64.StdEncoding.EncodeToString(h.Sum(nil))
	err = s.do(ctx, request{"write", "s3:PutObject", at, piece.Size()}, func(ctx context.Context, client *s3.Client, region func(*s3.Options)) error {
		out, err := client.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: &at.Bucket, Key: &at.Key, UploadId: &upload, PartNumber: &number,
			Body: io.NewSectionReader(piece, 0, piece.Size()), ContentLength: aws.Int64(piece.Size()), ChecksumCRC32C: &sum,
		}, region, s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware))
		if err == nil {
			done = types.CompletedPart{PartNumber: &number, ETag: out.ETag, ChecksumCRC32C: &sum}
		}
		return err
	})
	return done, err
}

func (s *Store) complete(ctx context.Context, at Location, upload string, pieces []types.CompletedPart, asked condition) (etag string, err error) {
	out, err := send(ctx, s, request{"write", "s3:PutObject", at, 0}, &s3.CompleteMultipartUploadInput{
		Bucket: &at.Bucket, Key: &at.Key, UploadId: &upload, MultipartUpload: &types.CompletedMultipartUpload{Parts: pieces},
		IfNoneMatch: asked.none, IfMatch: asked.etag,
	}, (*s3.Client).CompleteMultipartUpload)
	if err != nil {
		return "", err
	}
	return aws.ToString(out.ETag), nil
}

// Abort aborts an upload. It is not an error if the upload no longer exists.
func (s *Store) Abort(ctx context.Context, at Location, upload string) error {
	_, err := send(ctx, s, request{"abort the upload of", "s3:AbortMultipartUpload", at, 0},
		&s3.AbortMultipartUploadInput{Bucket: &at.Bucket, Key: &at.Key, UploadId: &upload}, (*s3.Client).AbortMultipartUpload)
	if errors.Is(err, errNoUpload) || isGone(err) {
		return nil
	}
	return err
}

// SentInPieces reports whether a multipart upload was begun. If so, one may be
// left over whose id we never received.
func (s *Store) SentInPieces() bool { return s.partly.Load() }

// AbortUploads aborts the unfinished uploads to a folder whose names in the
// folder are ours. A store that cannot list uploads has none to abort.
func (s *Store) AbortUploads(ctx context.Context, folder Location, ours func(name string) bool) error {
	in := &s3.ListMultipartUploadsInput{Bucket: &folder.Bucket, Prefix: optional(folder.Key)}
	next := func(page *s3.ListMultipartUploadsOutput) (*bool, []*string) {
		in.KeyMarker, in.UploadIdMarker = page.NextKeyMarker, page.NextUploadIdMarker
		return page.IsTruncated, []*string{in.KeyMarker, in.UploadIdMarker}
	}
	for page, err := range listing(ctx, s, request{"list the unfinished uploads of", "s3:ListBucketMultipartUploads", folder, 0}, in, (*s3.Client).ListMultipartUploads, next) {
		if errors.Is(err, errNotImplemented) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, upload := range page.Uploads {
			key := aws.ToString(upload.Key)
			if ours(key[min(len(folder.Key), len(key)):]) {
				if err := s.Abort(ctx, Location{folder.Bucket, key}, aws.ToString(upload.UploadId)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
