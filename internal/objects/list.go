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

	// IsFolder says that there are keys below this one, KEY/…. Only Find sets it.
	IsFolder bool

	// answered: from an answer about the object. Listings may have another size.
	answered bool
}

// List yields the objects whose keys begin with the key of prefix, in the order
// of their keys, without those that only mark a folder. It reads pages of a
// thousand.
func (s *Store) List(ctx context.Context, prefix Location) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for page, err := range pages(ctx, s.connection, prefix, "") {
			if err != nil {
				yield(Info{}, err)
				return
			}
			for _, o := range page.Contents {
				if isMarker(aws.ToString(o.Key)) {
					continue
				}
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
	for page, err := range pages(ctx, s.connection, folder, "/") {
		if err != nil {
			return nil, nil, err
		}
		for _, o := range page.Contents {
			if key := aws.ToString(o.Key); !isMarker(key) {
				files[key[len(folder.Key):]] = infoOf(folder.Bucket, o.Key, o.Size, o.ETag, o.LastModified)
			}
		}
		for _, p := range page.CommonPrefixes {
			folders = append(folders, strings.TrimPrefix(aws.ToString(p.Prefix), folder.Key))
		}
	}
	return files, folders, nil
}

// isMarker reports whether an object marks a folder: consoles create keys with a
// slash at the end, and Hadoop keys with this ending.
func isMarker(key string) bool {
	return key == "" || strings.HasSuffix(key, "/") || strings.HasSuffix(key, "_$folder$")
}

func infoOf(bucket string, key *string, size *int64, etag *string, modified *time.Time) Info {
	return Info{Location: Location{bucket, aws.ToString(key)}, Size: aws.ToInt64(size), ETag: aws.ToString(etag), ModTime: aws.ToTime(modified).UTC()}
}

func pages(ctx context.Context, c *connection, prefix Location, delimiter string) iter.Seq2[*s3.ListObjectsV2Output, error] {
	in := &s3.ListObjectsV2Input{Bucket: &prefix.Bucket, Prefix: optional(prefix.Key), Delimiter: optional(delimiter)}
	list := func(client *s3.Client, ctx context.Context, in *s3.ListObjectsV2Input, region ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
		page, err := client.ListObjectsV2(ctx, in, region...)
		if err == nil {
			err = checkPage(page, prefix)
		}
		return page, err
	}
	return listing(ctx, c, request{"list", "s3:ListBucket", prefix, 0}, in, list, func(page *s3.ListObjectsV2Output) (*bool, []*string) {
		in.ContinuationToken = page.NextContinuationToken
		return page.IsTruncated, []*string{page.NextContinuationToken}
	})
}

// listing yields the pages of a listing. next moves the input to the next page: it returns
// whether there is one, and where it begins.
func listing[In, Out any](ctx context.Context, c *connection, r request, in *In, op operation[In, Out], next func(*Out) (more *bool, begins []*string)) iter.Seq2[*Out, error] {
	return func(yield func(*Out, error) bool) {
		seen := marks{}
		for {
			page, err := send(ctx, c, r, in, op)
			if !yield(page, err) || err != nil {
				return
			}
			more, begins := next(page)
			if !aws.ToBool(more) {
				return
			}
			if err := seen.add(begins...); err != nil {
				yield(nil, c.judge(r, "", err))
				return
			}
		}
	}
}

// checkPage checks that all keys of a page are below the prefix.
func checkPage(page *s3.ListObjectsV2Output, prefix Location) error {
	for _, o := range page.Contents {
		if !strings.HasPrefix(aws.ToString(o.Key), prefix.Key) {
			return wrongAnswer("the store listed keys that do not begin with the prefix")
		}
	}
	for _, p := range page.CommonPrefixes {
		if !strings.HasPrefix(aws.ToString(p.Prefix), prefix.Key) {
			return wrongAnswer("the store listed prefixes that do not begin with the prefix")
		}
	}
	return nil
}

// marks are where the pages of a listing ended.
type marks map[string]bool

// add adds the end of a page, after which the next page begins. A listing that goes
// back to where it was would never end.
func (m marks) add(ends ...*string) error {
	var end strings.Builder
	for _, e := range ends {
		end.WriteString(aws.ToString(e))
		end.WriteByte(0) // no key contains it
	}
	switch {
	case strings.Trim(end.String(), "\x00") == "":
		return wrongAnswer("the store said that the listing goes on, and not where")
	case m[end.String()]:
		return wrongAnswer("the listing repeats itself: the store sent the same continuation token twice")
	}
	m[end.String()] = true
	return nil
}

// optional returns nil for an empty string, so that it is not sent.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
