package objects

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// KeepsVersions reports whether a bucket keeps, or has kept, the earlier
// versions of objects that are replaced or removed. A store that does not know
// versions keeps none.
func (s *Store) KeepsVersions(ctx context.Context, at Location) (bool, error) {
	out, err := send(ctx, s.connection, request{"look up the versioning of", "s3:GetBucketVersioning", at, 0}, &s3.GetBucketVersioningInput{Bucket: &at.Bucket}, (*s3.Client).GetBucketVersioning)
	var refused *RefusedError
	if errors.Is(err, errNotImplemented) || errors.As(err, &refused) && refused.Code == "VersioningNotConfigured" {
		return false, nil
	}
	return err == nil && out.Status != "", err
}

// RemoveOldVersions removes for good the versions of objects below a folder that
// are not the present ones, and the marks of removed objects.
func (s *Store) RemoveOldVersions(ctx context.Context, folder Location) error {
	in := &s3.ListObjectVersionsInput{Bucket: &folder.Bucket, Prefix: optional(folder.Key)}
	next := func(page *s3.ListObjectVersionsOutput) (*bool, []*string) {
		in.KeyMarker, in.VersionIdMarker = page.NextKeyMarker, page.NextVersionIdMarker
		return page.IsTruncated, []*string{in.KeyMarker, in.VersionIdMarker}
	}
	for page, err := range listing(ctx, s.connection, request{"list the versions of", "s3:ListBucketVersions", folder, 0}, in, (*s3.Client).ListObjectVersions, next) {
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
	}
	return nil
}

func (s *Store) removeVersion(ctx context.Context, folder Location, key, version *string) error {
	at := Location{folder.Bucket, aws.ToString(key)}
	_, err := send(ctx, s.connection, request{"remove a version of", "s3:DeleteObjectVersion", at, 0},
		&s3.DeleteObjectInput{Bucket: &at.Bucket, Key: &at.Key, VersionId: version}, (*s3.Client).DeleteObject)
	if isGone(err) {
		return nil
	}
	return err
}
