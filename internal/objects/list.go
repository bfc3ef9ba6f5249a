package objects

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Info is what is known about an object without reading it.
type Info struct {
	Location
	Size    int64
	ETag    string // as the store sent it, with quotes
	ModTime time.Time
	// SHA256 is the checksum (hex) that this package stored when it wrote the
	// object. Listings do not have it.
	SHA256 string
	// SeenAt is the time of the answer by the store's clock; zero in listings.
	SeenAt time.Time
}

// List yields the objects whose keys begin with the key of prefix, in the order
// of their keys. It reads pages of a thousand.
func (s *Store) List(ctx context.Context, prefix Location) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for page, err := range s.pages(ctx, prefix, "") {
			if err != nil {
				yield(Info{}, err)
				return
			}
			for _, o := range page.Contents {
				if !yield(infoOf(prefix.Bucket, o.Key, o.Size, o.ETag, o.LastModified), nil) {
					return
				}
			}
		}
	}
}

// ListFolder lists the direct contents of a folder: its objects by name, and the
// names of its subfolders, which end in a slash.
func (s *Store) ListFolder(ctx context.Context, folder Location) (files map[string]Info, folders []string, err error) {
	files = map[string]Info{}
	for page, err := range s.pages(ctx, folder, "/") {
		if err != nil {
			return nil, nil, err
		}
		for _, o := range page.Contents {
			// Consoles create an object with the folder's own key.
			if name := strings.TrimPrefix(aws.ToString(o.Key), folder.Key); name != "" {
				files[name] = infoOf(folder.Bucket, o.Key, o.Size, o.ETag, o.LastModified)
			}
		}
		for _, p := range page.CommonPrefixes {
			folders = append(folders, strings.TrimPrefix(aws.ToString(p.Prefix), folder.Key))
		}
	}
	return files, folders, nil
}

func infoOf(bucket string, key *string, size *int64, etag *string, modified *time.Time) Info {
	return Info{Location: Location{bucket, aws.ToString(key)}, Size: aws.ToInt64(size), ETag: aws.ToString(etag), ModTime: aws.ToTime(modified).UTC()}
}

func (s *Store) pages(ctx context.Context, prefix Location, delimiter string) iter.Seq2[*s3.ListObjectsV2Output, error] {
	return func(yield func(*s3.ListObjectsV2Output, error) bool) {
		in := &s3.ListObjectsV2Input{Bucket: &prefix.Bucket, Prefix: optional(prefix.Key), Delimiter: optional(delimiter)}
		for {
			var page *s3.ListObjectsV2Output
			err := s.do(ctx, request{"list", "s3:ListBucket", prefix, 0}, func(ctx context.Context, c *s3.Client, region func(*s3.Options)) (err error) {
				page, err = c.ListObjectsV2(ctx, in, region)
				return err
			})
			if !yield(page, err) || err != nil || !aws.ToBool(page.IsTruncated) {
				return
			}
			in.ContinuationToken = page.NextContinuationToken
		}
	}
}

// optional returns nil for an empty string, so that it is not sent.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
