package objects

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Options say how to reach a store and how to write objects there. Credentials
// and the region come from the usual AWS sources: environment, shared files,
// roles.
type Options struct {
	// Endpoint is the address of a store other than AWS; empty means AWS.
	Endpoint string
	// PathStyle puts the bucket into the path instead of the host's name.
	PathStyle bool
	// SSE is the encryption at rest to request: AES256, aws:kms or aws:kms:dsse;
	// empty means the bucket's default. KMSKey is the key for the latter two.
	SSE    string
	KMSKey string
	// ACL is a canned access list for written objects; if empty, none is sent.
	ACL string
	// GiveUpAfter is how long requests to a store that does not answer are
	// repeated.
	GiveUpAfter time.Duration
	// LateFor is how long an object that must exist may be missing, if GiveUpAfter is not
	// less; 0 is a minute.
	LateFor time.Duration
	// Log takes warnings; nil drops them.
	Log *slog.Logger
	// Machine is the one that a test simulates; nil is this one.
	Machine *Machine
}

// Machine is what a store needs of the machine that its process runs on.
type Machine struct {
	// Host is the name of the machine in leases.
	Host string
	// Processes names what the numbers of processes belong to; empty if that is not known.
	// Containers may have the name of their host, and numbers of their own.
	Processes string
	// HTTP makes the requests.
	HTTP aws.HTTPClient
	// Random returns numbers in [0,1), for the waits between tries.
	Random func() float64
}

// DefaultGiveUpAfter outlasts an outage of ten minutes.
const DefaultGiveUpAfter = 15 * time.Minute

// The values S3 knows. Source: Amazon S3 API reference, PutObject.
var (
	encryptions = []string{"AES256", "aws:kms", "aws:kms:dsse"}
	cannedACLs  = []string{"private", "public-read", "public-read-write", "authenticated-read", "aws-exec-read", "bucket-owner-read", "bucket-owner-full-control"}
)

// Validate returns all errors in the options, joined.
func (o Options) Validate() error {
	var errs []error
	if o.Endpoint != "" && !isEndpoint(o.Endpoint) {
		errs = append(errs, errors.New("the endpoint of the store must be an address such as https://s3.example"))
	}
	if o.SSE != "" && !slices.Contains(encryptions, o.SSE) {
		errs = append(errs, fmt.Errorf("encryption %q; it is one of %s", o.SSE, strings.Join(encryptions, ", ")))
	}
	if o.KMSKey != "" && !strings.HasPrefix(o.SSE, "aws:kms") {
		errs = append(errs, errors.New("a KMS key needs encryption aws:kms or aws:kms:dsse"))
	}
	if o.ACL != "" && !slices.Contains(cannedACLs, o.ACL) {
		errs = append(errs, fmt.Errorf("access list %q; it is one of %s", o.ACL, strings.Join(cannedACLs, ", ")))
	}
	if o.GiveUpAfter < 0 {
		errs = append(errs, fmt.Errorf("the time to give up the store is %s; it must not be negative, such as 15m", o.GiveUpAfter))
	}
	return errors.Join(errs...)
}

func isEndpoint(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil
}
