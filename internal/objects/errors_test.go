package objects_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// What a store refuses fails at once, and says what to check. Nothing that it
// says is a secret.
func TestRefusals(t *testing.T) {
	_, proxy, store := stores(t)
	refuse := func(status int, code, text string) func(*http.Request) s3test.Fault {
		return func(*http.Request) s3test.Fault {
			return s3test.Fault{Kind: s3test.Refuse, Status: status, Code: code, Text: text}
		}
	}
	const where = "(bucket lists, region us-east-1, endpoint ENDPOINT)"
	for _, c := range []struct {
		name   string
		env    map[string]string
		fault  func(*http.Request) s3test.Fault
		bucket string
		want   string
	}{
		{"wrong secret", map[string]string{"AWS_SECRET_ACCESS_KEY": "CanaryWrong"}, nil, bucket,
			"the secret key does not match the access key " + where + "; check AWS_SECRET_ACCESS_KEY or AWS_PROFILE"},
		{"unknown access key", map[string]string{"AWS_ACCESS_KEY_ID": "nobody"}, nil, bucket,
			"the access key does not exist " + where + "; check AWS_ACCESS_KEY_ID or AWS_PROFILE, and s3_endpoint where the store is not AWS"},
		{"no credentials", map[string]string{"AWS_ACCESS_KEY_ID": ""}, nil, bucket,
			"there are no credentials for S3; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile in AWS_PROFILE, or run where a role is attached"},
		{"missing bucket", nil, nil, "gone",
			"the bucket does not exist (bucket gone, region us-east-1, endpoint ENDPOINT); check its name, and s3_endpoint where the store is not AWS"},
		{"no permission to list", nil, refuse(403, "AccessDenied", "Access Denied"), bucket,
			"the credentials may not list it " + where + "; allow s3:ListBucket on arn:aws:s3:::lists"},
		{"clock skew", nil, refuse(403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large."), bucket,
			"this machine's clock is too far off " + where + "; set the clock (NTP)"},
		{"expired credentials", nil, refuse(400, "ExpiredToken", "The provided token has expired."), bucket,
			"the credentials have expired " + where + "; get new ones and run the same command to resume"},
		{"wrong session token", nil, refuse(400, "InvalidToken", "The provided token is malformed or otherwise invalid."), bucket,
			"the session token is not valid " + where + "; check AWS_SESSION_TOKEN, which belongs to one pair of keys"},
		{"encryption key", nil, refuse(400, "KMS.DisabledException", "key is disabled"), bucket,
			"the encryption key cannot be used (KMS.DisabledException) " + where + "; check s3_kms_key, and that kms:GenerateDataKey and kms:Decrypt are allowed"},
		{"another region that is not said", nil, refuse(301, "PermanentRedirect", "use the other endpoint"), bucket,
			"the bucket is in another region " + where + "; set AWS_REGION to the bucket's"},
		{"something else", nil, refuse(400, "InvalidRequest", "This is\n not <![CDATA[done]]>."), bucket,
			"the store refuses to list it (InvalidRequest, HTTP 400): This is not done. " + where},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			proxy.Do(c.fault)
			fresh := through(t, proxy)
			_, _, err := fresh.ListFolder(t.Context(), objects.Location{Bucket: c.bucket, Key: "in/"})
			want := "s3://" + c.bucket + "/in/: " + strings.ReplaceAll(c.want, "ENDPOINT", proxy.URL)
			var refused *objects.RefusedError
			if !errors.As(err, &refused) || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			for _, secret := range []string{s3test.SecretKey, "CanaryWrong"} {
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("%v holds a secret", err)
				}
			}
		})
	}
	proxy.Do(nil)
	if _, _, err := store.ListFolder(t.Context(), at("in/")); err != nil {
		t.Errorf("without a fault: %v", err)
	}
}

// Stores that lack something are named for it, each by its own sentence, before
// anything is tried again. They are emulated: versitygw lacks none of it.
func TestStoresThatLackSomething(t *testing.T) {
	_, proxy, _ := stores(t)
	write := func(size int) func(*objects.Store) error {
		return func(store *objects.Store) error {
			_, err := store.Put(t.Context(), at("a"), objects.ContentOf(make([]byte, size), ""))
			return err
		}
	}
	list := func(store *objects.Store) error {
		_, _, err := store.ListFolder(t.Context(), at("in/"))
		return err
	}
	read := func(store *objects.Store) error {
		_, _, err := store.ReadFile(t.Context(), at("in/a.csv"))
		return err
	}
	without := func(header string) func(*http.Request) s3test.Fault {
		return func(r *http.Request) s3test.Fault {
			if r.Header.Get(header) != "" {
				return answer(501, "NotImplemented")
			}
			return s3test.Fault{}
		}
	}
	multipart := func(f s3test.Fault) func(*http.Request) s3test.Fault {
		return func(r *http.Request) s3test.Fault {
			if r.Method == "POST" && strings.HasPrefix(r.URL.RawQuery, "uploads") {
				return f
			}
			return s3test.Fault{}
		}
	}
	page := func(*http.Request) s3test.Fault {
		return s3test.Fault{Kind: s3test.Answer, Status: 200, Type: "text/html; charset=utf-8", Text: "<!doctype html><title>Console</title>"}
	}
	foreign := func(kind string) func(*http.Request) s3test.Fault {
		return func(*http.Request) s3test.Fault {
			return s3test.Fault{Kind: s3test.Answer, Status: 404, Type: kind, Text: "404 page not found"}
		}
	}
	look := func(store *objects.Store) error {
		_, err := store.Stat(t.Context(), at("in/a.csv"))
		return err
	}
	const notS3 = "the bucket lists does not exist there, or ENDPOINT is not an S3 store; check the bucket's name, and s3_endpoint"
	const another = "; use a store that does, or a folder"
	const pieces = "the store does not support uploads in pieces, in which files of more than 8 MiB are sent" + another + ", or make smaller parts with rows_per_part"
	const console = "the answer is a web page, not one of S3; check s3_endpoint: the console of a store has another address or port than its S3 interface"
	for _, c := range []struct {
		name  string
		fault func(*http.Request) s3test.Fault
		try   func(*objects.Store) error
		want  string
	}{
		{"checksums of whole objects", without("X-Amz-Checksum-Sha256"), write(1),
			"the store does not support checksums of what it is sent (x-amz-checksum-sha256, x-amz-checksum-crc32c)" + another},
		{"checksums of pieces", without("X-Amz-Checksum-Crc32c"), write(objects.WholeSize + 1),
			"the store does not support checksums of what it is sent (x-amz-checksum-sha256, x-amz-checksum-crc32c)" + another},
		{"uploads in pieces", multipart(answer(501, "NotImplemented")), write(objects.WholeSize + 1), pieces},
		{"uploads in pieces, by another word", multipart(answer(405, "MethodNotAllowed")), write(objects.WholeSize + 1), pieces},
		{"metadata", func(*http.Request) s3test.Fault { return s3test.Fault{Kind: s3test.Forget} }, write(1),
			"the store does not keep the metadata of objects, which has their checksum (x-amz-meta-leadetl-sha256)" + another},
		{"S3: a page in place of a list", page, list, console},
		{"S3: a page in place of an object", page, read, console},
		{"S3: a page after a write", page, write(1), console},
		{"S3: a web server, listed", foreign("text/plain"), list, notS3},
		{"S3: a web server without a type, listed", foreign("application/octet-stream"), list, notS3},
		{"S3: a web server, looked at", foreign("text/html"), look, notS3},
		{"S3: a web server, read", foreign("text/html"), read, notS3},
		{"listing", func(*http.Request) s3test.Fault { return answer(501, "NotImplemented") }, list,
			"the store refuses to list it (NotImplemented, HTTP 501)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			proxy.Do(c.fault)
			defer proxy.Do(nil)
			var log bytes.Buffer
			store := objects.New(t.Context(), objects.Options{Endpoint: proxy.URL, PathStyle: true, GiveUpAfter: 200 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
			err := c.try(store)
			var refused *objects.RefusedError
			if !errors.As(err, &refused) || errors.Is(err, objects.ErrUnavailable) || !strings.Contains(err.Error(), ": "+strings.ReplaceAll(c.want, "ENDPOINT", proxy.URL)) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if log.Len() > 0 {
				t.Errorf("it says: %s", &log)
			}
		})
	}
}

// A bucket of another region is asked there, once the store says which.
func TestRegionIsFollowed(t *testing.T) {
	_, proxy, _ := stores(t)
	t.Setenv("AWS_REGION", "eu-central-1")
	store := through(t, proxy)
	if _, _, err := store.ListFolder(t.Context(), at("in/")); err != nil {
		t.Error(err)
	}
	before := proxy.Seen()
	if _, _, err := store.ListFolder(t.Context(), at("in/")); err != nil || proxy.Seen() != before+1 {
		t.Errorf("the second time: %v, %d requests", err, proxy.Seen()-before)
	}
}

// So is one that many ask for at once.
func TestRegionIsFollowedByAll(t *testing.T) {
	_, proxy, _ := stores(t)
	t.Setenv("AWS_REGION", "eu-central-1")
	store := through(t, proxy)
	p := pool.New().WithErrors()
	for range 16 {
		p.Go(func() error {
			_, _, err := store.ListFolder(t.Context(), at("in/"))
			return err
		})
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}

// A store that does not answer is given up after a while, and then at once.
func TestUnavailable(t *testing.T) {
	_, proxy, _ := stores(t)
	store := objects.New(t.Context(), objects.Options{Endpoint: proxy.URL, PathStyle: true, GiveUpAfter: 300 * time.Millisecond})
	down := func(*http.Request) s3test.Fault {
		return s3test.Fault{Kind: s3test.Refuse, Status: 503, Code: "SlowDown"}
	}
	proxy.Do(down)
	_, _, err := store.ListFolder(t.Context(), at("in/"))
	if !errors.Is(err, objects.ErrUnavailable) || !strings.Contains(err.Error(), "SlowDown, HTTP 503") {
		t.Fatalf("%v, want %v", err, objects.ErrUnavailable)
	}
	before := proxy.Seen()
	if _, _, err := store.ListFolder(t.Context(), at("in/")); !errors.Is(err, objects.ErrUnavailable) || proxy.Seen() > before+2 {
		t.Errorf("once it is given up: %v after %d requests", err, proxy.Seen()-before)
	}
	proxy.Do(nil)
	if _, _, err := store.ListFolder(t.Context(), at("in/")); err != nil {
		t.Errorf("when it is back: %v", err)
	}
}

// The log says for how long a store is tried again, only where it is.
func TestTriesAreLogged(t *testing.T) {
	for failing, want := range map[time.Duration]string{
		time.Second: "", 3 * time.Second: "for_another=2s", 4900 * time.Millisecond: "for_another=1s", 6 * time.Second: "",
	} {
		var log bytes.Buffer
		store := objects.New(t.Context(), objects.Options{GiveUpAfter: 5 * time.Second, Log: slog.New(slog.NewTextHandler(&log, nil))})
		gone := store.IsDown(failing, objects.ErrUnavailable)
		if gone != (failing > 5*time.Second) || want == "" && log.Len() > 0 || !strings.Contains(log.String(), want) {
			t.Errorf("after %s: given up %v, it says: %s", failing, gone, &log)
		}
	}
}

// A host that is not known is tried again, and named.
func TestUnknownHost(t *testing.T) {
	store := objects.New(t.Context(), objects.Options{})
	err := store.Judge(at("in/"), &net.DNSError{Err: "no such host", Name: "s3.example", IsNotFound: true})
	const want = "(the host s3.example is not known; check s3_endpoint, "
	if !errors.Is(err, objects.ErrUnavailable) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Who interrupts does not wait for a store that is down.
func TestInterruptedWhileDown(t *testing.T) {
	_, proxy, _ := stores(t)
	ctx, interrupt := context.WithCancel(t.Context())
	store := objects.New(ctx, objects.Options{Endpoint: proxy.URL, PathStyle: true})
	proxy.Do(func(*http.Request) s3test.Fault {
		interrupt()
		return s3test.Fault{Kind: s3test.Reset}
	})
	_, err := store.Put(context.Background(), at("a"), objects.ContentOf([]byte("a"), ""))
	if !errors.Is(err, context.Canceled) || !errors.Is(err, objects.ErrUnavailable) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}
