package objects

import (
	"fmt"
	"regexp"
	"strings"
)

const scheme = "s3://"

// Is reports whether a URI names a location in an object store.
func Is(uri string) bool {
	return len(uri) >= len(scheme) && strings.EqualFold(uri[:len(scheme)], scheme)
}

// bucketName matches the names of buckets. Source: Amazon S3 user guide, bucket
// naming rules.
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// Location is a bucket with a key or a prefix of keys. Keys are used as written:
// nothing in them is decoded.
type Location struct{ Bucket, Key string }

// Parse reads s3://bucket/key; the key may be empty.
func Parse(uri string) (Location, error) {
	if !Is(uri) {
		return Location{}, fmt.Errorf("%s: not an S3 address; write s3://bucket/key", uri)
	}
	bucket, key, _ := strings.Cut(uri[len(scheme):], "/")
	if bucket == "" {
		return Location{}, fmt.Errorf("%s: has no bucket; write s3://bucket/key", uri)
	}
	if strings.ContainsAny(bucket, "*?[") {
		return Location{}, fmt.Errorf("%s: a bucket name cannot be a pattern; name each bucket", uri)
	}
	if !bucketName.MatchString(bucket) {
		return Location{}, &RefusedError{Location: uri, Problem: bucket + " cannot be the name of a bucket",
			Advice: "bucket names are 3 to 63 lower-case letters, digits, dots and hyphens"}
	}
	return Location{bucket, key}, nil
}

// ParseFolder reads s3://bucket/prefix as a folder: all keys below it begin
// with Key, which ends in a slash or is empty.
func ParseFolder(uri string) (Location, error) {
	l, err := Parse(uri)
	if err != nil {
		return l, err
	}
	if l.Key = strings.Trim(l.Key, "/"); l.Key != "" {
		l.Key += "/"
	}
	return l, nil
}

// String is the location as a URI.
func (l Location) String() string { return scheme + l.Bucket + "/" + l.Key }

// Below returns the object of this name in a folder.
func (l Location) Below(name string) Location { return Location{l.Bucket, l.Key + name} }
