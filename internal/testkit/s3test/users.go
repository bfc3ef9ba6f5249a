package s3test

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// AddUser makes a user who may do nothing.
func (s *Server) AddUser(t testing.TB, accessKey, secretKey string) {
	t.Helper()
	c := exec.Command(s.program, "admin", "--access", AccessKey, "--secret", SecretKey, "--region", Region, "--endpoint-url", s.URL,
		"create-user", "--access", accessKey, "--secret", secretKey, "--role", "user")
	c.Env = os.Environ()
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("create-user: %v\n%s", err, out)
	}
}

// Statement is one of an IAM policy.
type Statement struct {
	Effect    string
	Principal map[string]string `json:",omitempty"`
	Action    any               // one, or a list
	Resource  string
}

// Policy is an IAM policy.
type Policy struct {
	Version   string
	Statement []Statement
}

// Allow gives a user the permissions of a policy for a bucket, and no others.
func (s *Server) Allow(t testing.TB, bucket, accessKey string, p Policy) {
	t.Helper()
	ours := Policy{Version: p.Version}
	for _, statement := range p.Statement {
		statement.Principal = map[string]string{"AWS": accessKey}
		ours.Statement = append(ours.Statement, statement)
	}
	text, err := json.Marshal(ours)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.owner().PutBucketPolicy(t.Context(), &s3.PutBucketPolicyInput{Bucket: &bucket, Policy: aws.String(string(text))}); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// BeginUpload leaves an unfinished upload.
func (s *Server) BeginUpload(t testing.TB, bucket, key string) {
	t.Helper()
	if _, err := s.owner().CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key}); err != nil {
		t.Fatal(err)
	}
}

// owner is a client that may do everything.
func (s *Server) owner() *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: &s.URL, Region: Region, UsePathStyle: true, Credentials: credentials.NewStaticCredentialsProvider(AccessKey, SecretKey, ""),
	})
}

// Versions are the versions of all objects in a bucket, and the marks of removed
// ones.
func (s *Server) Versions(t testing.TB, bucket string) (all []string, err error) {
	t.Helper()
	page, err := s.owner().ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: &bucket})
	if err != nil {
		return nil, err
	}
	for _, v := range page.Versions {
		all = append(all, aws.ToString(v.Key))
	}
	for _, mark := range page.DeleteMarkers {
		all = append(all, aws.ToString(mark.Key)+" is removed")
	}
	return all, nil
}
