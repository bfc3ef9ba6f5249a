package objects

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// KeepsVersions reports whether a bucket keeps, or has kept, the earlier
// versions of objects that are replaced or removed. A store that does not know
// versions keeps none.
func (s *Store) KeepsVersions(ctx context.Context, at Location) (bool, error) {
	var status types.BucketVersioningStatus
	err := s.do(ctx, request{"look up the versioning of", "s3:GetBucketVersioning", at, 0}, func(ctx context.Context, c *s3.Client, region func(*s3.Options)) error {
		out, err := c.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &at.Bucket}, region)
		if err == nil {
			status = out.Status
		}
		return err
	})
	var refused *RefusedError
	if errors.Is(err, errNotImplemented) || errors.As(err, &refused) && refused.Code == "VersioningNotConfigured" {
		return false, nil
	}
	return status != "", err
}

// RemoveOldVersions removes for good the versions of objects below a folder that
// are not the present ones, and the marks of removed objects.
func (s *Store) RemoveOldVersions(ctx context.Context, folder Location) error {
	r := request{"list the versions of", "s3:ListBucketVersions", folder, 0}
	in := &s3.ListObjectVersionsInput{Bucket: &folder.Bucket, Prefix: optional(folder.Key)}
	seen := marks{}
	for {
		var page *s3.ListObjectVersionsOutput
		err := s.do(ctx, r, func(ctx context.Context, c *s3.Client, region func(*s3.Options)) (err error) {
			page, err = c.ListObjectVersions(ctx, in, region)
			return err
		})
		if err != nil {
			return err
		}
		for _, v := range page.Versions {
			if aws.ToBool(v.IsLatest) {
				continue
			}
			if err := s.removeVersion(ctx, folder, v.Key, v.VersionId); err != nil {
				return err
			}
		}
		for _, mark := range page.DeleteMarkers {
			if err := s.removeVersion(ctx, folder, mark.Key, mark.VersionId); err != nil {
				return err
			}
		}
		if !aws.ToBool(page.IsTruncated) {
			return nil
		}
		if err := seen.add(page.NextKeyMarker, page.NextVersionIdMarker); err != nil {
			return s.judge(r, "", err)
		}
		in.KeyMarker, in.VersionIdMarker = page.NextKeyMarker, page.NextVersionIdMarker
	}
}

func (s *Store) removeVersion(ctx context.Context, folder Location, key, version *string) error {
	at := Location{folder.Bucket, aws.ToString(key)}
	err := s.do(ctx, request{"remove a version of", "s3:DeleteObjectVersion", at, 0}, func(ctx context.Context, c *s3.Client, region func(*s3.Options)) error {
		_, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &at.Bucket, Key: &at.Key, VersionId: version}, region)
		return err
	})
	if isGone(err) {
		return nil
	}
	return err
}
