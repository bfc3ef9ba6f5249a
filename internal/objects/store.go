// Package objects reads and writes objects in S3 and compatible stores.
//
// The one thing to know before using it: while the store does not answer, every
// call is repeated, with growing pauses, until Options.GiveUpAfter. A refusal
// fails at once. So callers need not repeat a call: an error is final, is
// ErrUnavailable, or tells the user what to check.
package objects

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
)

// Store is an object store. It is safe for concurrent use.
type Store struct {
	*connection
	unconditional atomic.Bool // the store does not support conditional writes
	partly        atomic.Bool // a multipart upload was begun
}

// connection sends requests to a store, and knows whether it answers.
type connection struct {
	options Options
	until   context.Context // when it ends, nothing is repeated
	machine *Machine

	connecting sync.Mutex
	client     *s3.Client // nil until it is first needed
	from       setting    // of its endpoint

	mu        sync.Mutex
	regions   map[string]string // of buckets outside the configured region
	downSince time.Time         // first failure since the last answer; zero when the store answers
	warnedAt  time.Time
	gaveUp    time.Time // when a request was given up, not counting those that close the work after it
	silent    bool      // its last try ended without an answer
	missed    time.Time // when an object that must exist was given up

	reached atomic.Bool // the store has answered
}

// New makes a store that connects when it is first needed. When ctx has ended,
// failed requests are not repeated; requests in flight continue.
func New(ctx context.Context, o Options) *Store {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.GiveUpAfter, o.LateFor = cmp.Or(o.GiveUpAfter, DefaultGiveUpAfter), cmp.Or(o.LateFor, time.Minute)
	c := &connection{options: o, until: ctx, machine: o.Machine, regions: map[string]string{}, from: settingOf(o.Endpoint, o.Endpoint)}
	if c.machine == nil {
		c.machine = c.thisMachine()
	}
	return &Store{connection: c}
}

// answerWithin is how long a store may be silent, at most.
const answerWithin = time.Minute

// connect reads the configuration and finds credentials.
func (c *connection) connect(ctx context.Context) (*s3.Client, error) {
	c.connecting.Lock()
	defer c.connecting.Unlock()
	if c.client != nil {
		return c.client, nil
	}
	settings, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(c.machine.HTTP), config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, &RefusedError{Problem: "the AWS configuration cannot be read", Advice: "check AWS_PROFILE and the files in ~/.aws", Err: err}
	}
	if _, err := settings.Credentials.Retrieve(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &RefusedError{Problem: "there are no credentials for S3",
			Advice: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile in AWS_PROFILE, or run where a role is attached", Err: err}
	}
	client := s3.NewFromConfig(settings, func(o *s3.Options) {
		o.Region = cmp.Or(o.Region, "us-east-1") // the store's answer corrects a wrong region
		o.UsePathStyle = c.options.PathStyle
		if c.options.Endpoint != "" {
			o.BaseEndpoint = aws.String(strings.TrimSuffix(c.options.Endpoint, "/"))
		}
		// We compute checksums ourselves, once. The SDK would send its own as
		// trailers, which other stores do not support.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.DisableLogOutputChecksumValidationSkipped = true
		o.APIOptions = append(o.APIOptions, refuseWebPages)
		// With the SDK's token bucket, retries end when many requests fail, just
		// when they are needed. So the SDK retries only once, which corrects a
		// wrong clock. All other retries are made by do.
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff, o.RateLimiter = 2, backoff.Initial, ratelimit.None
		})
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	from := settingOf(c.options.Endpoint, aws.ToString(client.Options().BaseEndpoint))
	if from.endpoint != "" && !isEndpoint(from.endpoint) {
		return nil, &RefusedError{Problem: from.name + " must be an address such as https://s3.example", Advice: "correct it"}
	}
	c.client, c.from = client, from
	return client, nil
}

// setting is an endpoint, and the name of the setting that it comes from.
type setting struct{ name, endpoint string }

// String is the endpoint, with the setting unless that is the option.
func (s setting) String() string {
	if s.endpoint == "" || s.name == option {
		return s.endpoint
	}
	return s.endpoint + " from " + s.name
}

// option is the flag that sets Options.Endpoint.
const option = "s3_endpoint"

// settingOf returns the setting that the SDK took an endpoint from, if given, the
// option's, is empty. Source: AWS SDKs reference guide, service-specific endpoints.
func settingOf(given, endpoint string) setting {
	if given == "" && endpoint != "" {
		for _, name := range []string{"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"} {
			if os.Getenv(name) == endpoint {
				return setting{name, endpoint}
			}
		}
		return setting{"endpoint_url of the AWS profile", endpoint}
	}
	return setting{option, endpoint}
}

// endpoint returns where requests go, and the setting that says so; empty for AWS.
func (c *connection) endpoint() setting {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.from
}

// inRegion sends a call to the region of its bucket.
func (c *connection) inRegion(bucket string) func(*s3.Options) {
	return func(o *s3.Options) {
		c.mu.Lock()
		defer c.mu.Unlock()
		o.Region = cmp.Or(c.regions[bucket], o.Region)
	}
}

// region returns the region that requests for a bucket go to, for messages.
func (c *connection) region(bucket string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.regions[bucket]; r != "" {
		return r
	}
	if c.client != nil {
		return c.client.Options().Region
	}
	return ""
}

// moved records that a bucket is in another region than the one asked.
func (c *connection) moved(bucket, region string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.regions[bucket] = region
}

// EnvironmentEndpoint returns the endpoint and the setting that it comes from, if that
// is not the option: the user may not have it in mind.
func (c *connection) EnvironmentEndpoint() string {
	if e := c.endpoint(); e.name != option {
		return e.String()
	}
	return ""
}

// Log is the logger for warnings; it is never nil.
func (c *connection) Log() *slog.Logger { return c.options.Log }
