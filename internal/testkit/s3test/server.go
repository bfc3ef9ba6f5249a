// Package s3test starts a real S3 server for tests, and a proxy in front of it
// that simulates the faults of networks and busy stores.
//
// The server is versitygw, a program of its own that keeps objects as files. A
// nested module pins it; it is built into the build cache when it is first
// needed, and with -short the tests that need it are skipped.
package s3test

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// The credentials and region of the server.
const (
	AccessKey = "leadetl-test"
	SecretKey = "CanaryOfTheSecretKey0000000000000000"
	Region    = "us-east-1"
)

// Server is a running server. Its buckets are the folders of Dir, and its
// objects the files in them.
type Server struct {
	URL string
	Dir string

	program string
}

// startedIn is the folder of the package under test. The compiler's paths do not
// help: go test -trimpath cuts them.
var startedIn, _ = os.Getwd()

// module is the folder of the nested module.
func module() string {
	for dir := startedIn; ; dir = filepath.Dir(dir) {
		found := filepath.Join(dir, "internal/testkit/testservers/versitygw")
		if _, err := os.Stat(found); err == nil || dir == filepath.Dir(dir) {
			return found
		}
	}
}

// program builds the server once a process.
var program = sync.OnceValues(func() (string, error) {
	var said strings.Builder
	build := exec.Command("go", "-C", module(), "tool", "-n", "versitygw")
	build.Stderr = &said
	path, err := build.Output()
	if err != nil {
		return said.String(), err
	}
	return strings.TrimSpace(string(path)), nil
})

// Program returns the path of the server. It builds it if it was not.
func Program(t testing.TB) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatalf("versitygw cannot be built: %v; its modules come from the module proxy\n%s", err, path)
	}
	return path
}

// Start starts a server with some empty buckets. It ends with the test.
func Start(t testing.TB, buckets ...string) *Server {
	t.Helper()
	return start(t, nil, buckets)
}

// StartVersioned is Start with buckets that keep the earlier versions of objects.
func StartVersioned(t testing.TB, buckets ...string) *Server {
	t.Helper()
	s := start(t, []string{"--versioning-dir", t.TempDir()}, buckets)
	for _, bucket := range buckets {
		on := &s3.PutBucketVersioningInput{Bucket: &bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}}
		if _, err := s.owner().PutBucketVersioning(t.Context(), on); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// At is a server that somebody else has started, with a new bucket. Its objects are not files.
func At(t testing.TB, url, bucket string) *Server {
	t.Helper()
	s := &Server{URL: url}
	if _, err := s.owner().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket}); err != nil {
		t.Fatal(err)
	}
	return s
}

func start(t testing.TB, flags, buckets []string) *Server {
	t.Helper()
	path := Program(t)
	s := &Server{Dir: t.TempDir(), program: path}
	for _, bucket := range buckets {
		if err := os.Mkdir(filepath.Join(s.Dir, bucket), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	address := freeAddress(t)
	s.URL = "http://" + address
	var said bytes.Buffer
	server := exec.Command(path, "--port", address, "--region", Region, "--quiet", "--iam-dir", t.TempDir(), "posix")
	server.Args = append(append(server.Args, flags...), s.Dir)
	server.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = server.Wait() // it is killed
	}()
	t.Cleanup(func() {
		_ = server.Process.Kill()
		<-gone
	})
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(time.Minute); ; {
		select {
		case <-gone:
			t.Fatalf("versitygw ended:\n%s", said.String())
		case <-ticker.C:
		}
		response, err := http.Get(s.URL)
		if err == nil {
			response.Body.Close()
			return s
		}
		if time.Now().After(end) {
			t.Fatalf("versitygw does not listen: %v", err)
		}
	}
}

func freeAddress(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Environ are the environment variables with the credentials for AWS programs.
// They hide the AWS settings of this machine.
func Environ() []string {
	return []string{
		"AWS_ACCESS_KEY_ID=" + AccessKey, "AWS_SECRET_ACCESS_KEY=" + SecretKey, "AWS_SESSION_TOKEN=", "AWS_REGION=" + Region, "AWS_PROFILE=",
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
	}
}

// Setenv gives a test the variables of Environ.
func Setenv(t *testing.T) {
	t.Helper()
	for _, variable := range Environ() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
}

// Uploads are the unfinished uploads to a bucket, as the server keeps them.
func (s *Server) Uploads(t testing.TB, bucket string) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(s.Dir, bucket, ".sgwtmp/multipart/*/*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}
