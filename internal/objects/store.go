// Package objects reads and writes the objects of S3 and of stores that speak
// its interface.
//
// The one thing to know before using it: every call is tried again, with
// growing pauses, for as long as Options.GiveUpAfter while the store does not
// answer, and fails at once where it refuses. So what fails has failed for
// good, is ErrUnavailable, or tells its user what to check.
package objects

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
)

// Store is an object store. It is safe for concurrent use.
type Store struct {
	options Options
	until   context.Context // when it ends, nothing is tried again

	connecting sync.Mutex
	client     *s3.Client // nil until it is first needed

	mu        sync.Mutex
	regions   map[string]string // of buckets that are not where the configuration says
	downSince time.Time         // first failure since the last answer; zero when the store answers
	warnedAt  time.Time

	reached       atomic.Bool // there was an answer
	unconditional atomic.Bool // the store does not know conditional writes
	partly        atomic.Bool // an upload in pieces was begun
}

// New is a store that is connected to when it is first needed. What fails is
// not tried again once ctx has ended; what is under way goes on.
func New(ctx context.Context, o Options) *Store {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.GiveUpAfter = cmp.Or(o.GiveUpAfter, DefaultGiveUpAfter)
	return &Store{options: o, until: ctx, regions: map[string]string{}}
}

// answerWithin is how long a store may take to begin an answer.
const answerWithin = time.Minute

// connect reads the configuration and finds credentials.
func (s *Store) connect(ctx context.Context) (*s3.Client, error) {
	s.connecting.Lock()
	defer s.connecting.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	transport := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout = answerWithin
		t.MaxIdleConnsPerHost = 32
	})
	c, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(transport), config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, &RefusedError{Problem: "the AWS configuration cannot be read", Advice: "check AWS_PROFILE and the files in ~/.aws", Err: err}
	}
	if _, err := c.Credentials.Retrieve(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &RefusedError{Problem: "there are no credentials for S3",
			Advice: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile in AWS_PROFILE, or run where a role is attached", Err: err}
	}
	s.client = s3.NewFromConfig(c, func(o *s3.Options) {
		o.Region = cmp.Or(o.Region, "us-east-1") // the store says so when it is another
		o.UsePathStyle = s.options.PathStyle
		if s.options.Endpoint != "" {
			o.BaseEndpoint = aws.String(strings.TrimSuffix(s.options.Endpoint, "/"))
		}
		// Checksums are ours, taken once. Those the SDK adds by itself come as
		// trailers that other stores do not know.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.DisableLogOutputChecksumValidationSkipped = true
		o.APIOptions = append(o.APIOptions, refuseWebPages)
		// The SDK's token bucket ends its retries in a storm of failures, just
		// when they are needed. It tries once more, which corrects a clock that
		// is off; the rest is do's.
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff, o.RateLimiter = 2, backoff.Initial, ratelimit.None
		})
	})
	return s.client, nil
}

// inRegion has a call go to the region where its bucket is.
func (s *Store) inRegion(bucket string) func(*s3.Options) {
	return func(o *s3.Options) {
		s.mu.Lock()
		defer s.mu.Unlock()
		o.Region = cmp.Or(s.regions[bucket], o.Region)
	}
}

// region is where a bucket is asked for, for messages.
func (s *Store) region(bucket string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.regions[bucket]; r != "" {
		return r
	}
	if s.client != nil {
		return s.client.Options().Region
	}
	return ""
}

// moved notes that a bucket is in another region than it was asked for in.
func (s *Store) moved(bucket, region string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.regions[bucket] = region
}

// Log takes what is to be said beside errors; it is never nil.
func (s *Store) Log() *slog.Logger { return s.options.Log }
