package objects

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Info is what is known of an object without reading it.
type Info struct {
	Location
	Size    int64
	ETag    string // as the store gives it, quotes included
	ModTime time.Time
	// SHA256 is the checksum (hex) it was written with by this package; listings
	// do not tell it.
	SHA256 string
	// SeenAt is when the store said this, by its own clock; zero in listings.
	SeenAt time.Time
}

// List hands out the objects whose keys begin with those of prefix, in the
// order of their keys, a page of a thousand at a time.
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

// ListFolder lists what is right in a folder: its objects by name, and the
// names of the folders in it, which end in a slash.
func (s *Store) ListFolder(ctx context.Context, folder Location) (files map[string]Info, folders []string, err error) {
	files = map[string]Info{}
	for page, err := range s.pages(ctx, folder, "/") {
		if err != nil {
			return nil, nil, err
		}
		for _, o := range page.Contents {
			// A key that is the folder's own is what consoles make of a folder.
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

// optional is nil for what is empty and not sent.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
