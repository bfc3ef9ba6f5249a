package objects_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/s3test"
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
			"the access key does not exist " + where + "; check AWS_ACCESS_KEY_ID or AWS_PROFILE, and --s3-endpoint where the store is not AWS"},
		{"no credentials", map[string]string{"AWS_ACCESS_KEY_ID": ""}, nil, bucket,
			"there are no credentials for S3; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile in AWS_PROFILE, or run where a role is attached"},
		{"missing bucket", nil, nil, "gone",
			"the bucket does not exist (bucket gone, region us-east-1, endpoint ENDPOINT); check its name, and --s3-endpoint where the store is not AWS"},
		{"no permission to list", nil, refuse(403, "AccessDenied", "Access Denied"), bucket,
			"the credentials may not list it " + where + "; allow s3:ListBucket on arn:aws:s3:::lists"},
		{"clock skew", nil, refuse(403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large."), bucket,
			"this machine's clock is too far off " + where + "; set the clock (NTP)"},
		{"expired credentials", nil, refuse(400, "ExpiredToken", "The provided token has expired."), bucket,
			"the credentials have expired " + where + "; get new ones and run the same command to resume"},
		{"wrong session token", nil, refuse(400, "InvalidToken", "The provided token is malformed or otherwise invalid."), bucket,
			"the session token is not valid " + where + "; check AWS_SESSION_TOKEN, which belongs to one pair of keys"},
		{"encryption key", nil, refuse(400, "KMS.DisabledException", "key is disabled"), bucket,
			"the encryption key cannot be used (KMS.DisabledException) " + where + "; check --s3-kms-key, and that kms:GenerateDataKey and kms:Decrypt are allowed"},
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
