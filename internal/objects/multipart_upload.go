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
		u := multipartUpload{s, at, c, ""}
		if u.id, err = u.begin(ctx); err != nil {
			return "", err
		}
		pieces, err := u.sendPieces(ctx)
		if err == nil {
			etag, err = u.complete(ctx, pieces, asked)
		}
		if err == nil {
			return etag, nil
		}
		abortErr := s.Abort(ctx, at, u.id)
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

// multipartUpload is an upload in pieces of one object.
type multipartUpload struct {
	*Store
	at Location
	Content
	id string // once it has begun
}

func (u multipartUpload) begin(ctx context.Context) (id string, err error) {
	at, begun := u.at, u.Begun
	if begun == nil {
		begun = func(string) error { return nil }
	}
	var unrecorded error
	err = u.do(ctx, request{"write", "s3:PutObject", at, 0}, func(ctx context.Context, client *s3.Client, region func(*s3.Options)) error {
		if unrecorded = begun(""); unrecorded != nil {
			return nil
		}
		out, err := client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
			Bucket: &at.Bucket, Key: &at.Key, ContentType: optional(u.Type), ChecksumAlgorithm: types.ChecksumAlgorithmCrc32c, Metadata: u.metadata(),
			ServerSideEncryption: types.ServerSideEncryption(u.options.SSE), SSEKMSKeyId: optional(u.options.KMSKey), ACL: types.ObjectCannedACL(u.options.ACL),
		}, region, func(o *s3.Options) { o.RetryMaxAttempts = 1 }) // Begun must hear of every try
		if err == nil {
			id = aws.ToString(out.UploadId)
		}
		return err
	})
	var refused *RefusedError
	if errors.Is(err, errNotImplemented) || errors.As(err, &refused) && refused.Code == "MethodNotAllowed" {
		err = lacks(at, fmt.Sprintf("the store does not support uploads in pieces, in which files of more than %d MiB are sent", wholeSize>>20),
			useAnother+", or make smaller parts with rows_per_part")
	}
	if err != nil || unrecorded != nil {
		return "", errors.Join(err, unrecorded)
	}
	if err := begun(id); err != nil {
		return "", errors.Join(err, u.Abort(ctx, at, id))
	}
	return id, nil
}

func (u multipartUpload) sendPieces(ctx context.Context) ([]types.CompletedPart, error) {
	size := max(pieceSize, (u.Size+maxPieces-1)/maxPieces)
	pieces := make([]types.CompletedPart, (u.Size+size-1)/size)
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
			if pieces[i], err = u.sendPiece(ctx, io.NewSectionReader(u, from, min(size, u.Size-from)), int32(i+1)); err != nil {
				failed.Store(true)
			}
			return err
		})
	}
	return pieces, p.Wait()
}

// sendPiece sends a piece with a CRC-32C. The whole object has a SHA-256. A SHA-256 of
// each piece would double that cost, here and at the store.
func (u multipartUpload) sendPiece(ctx context.Context, piece *io.SectionReader, number int32) (done types.CompletedPart, err error) {
	h := checksum.New()
	if _, err := io.Copy(h, piece); err != nil {
		return done, err
	}
	sum := base64.StdEncoding.EncodeToString(h.Sum(nil))
	err = u.do(ctx, request{"write", "s3:PutObject", u.at, piece.Size()}, func(ctx context.Context, client *s3.Client, region func(*s3.Options)) error {
		out, err := client.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: &u.at.Bucket, Key: &u.at.Key, UploadId: &u.id, PartNumber: &number,
			Body: io.NewSectionReader(piece, 0, piece.Size()), ContentLength: aws.Int64(piece.Size()), ChecksumCRC32C: &sum,
		}, region, s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware))
		if err == nil {
			done = types.CompletedPart{PartNumber: &number, ETag: out.ETag, ChecksumCRC32C: &sum}
		}
		return err
	})
	return done, err
}

func (u multipartUpload) complete(ctx context.Context, pieces []types.CompletedPart, asked condition) (etag string, err error) {
	out, err := send(ctx, u.connection, request{"write", "s3:PutObject", u.at, 0}, &s3.CompleteMultipartUploadInput{
		Bucket: &u.at.Bucket, Key: &u.at.Key, UploadId: &u.id, MultipartUpload: &types.CompletedMultipartUpload{Parts: pieces},
		IfNoneMatch: asked.none, IfMatch: asked.etag,
	}, (*s3.Client).CompleteMultipartUpload)
	if err != nil {
		return "", err
	}
	return aws.ToString(out.ETag), nil
}

// Abort aborts an upload. It is not an error if the upload no longer exists.
func (s *Store) Abort(ctx context.Context, at Location, upload string) error {
	_, err := send(ctx, s.connection, request{"abort the upload of", "s3:AbortMultipartUpload", at, 0},
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
	for page, err := range listing(ctx, s.connection, request{"list the unfinished uploads of", "s3:ListBucketMultipartUploads", folder, 0}, in, (*s3.Client).ListMultipartUploads, next) {
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
