package objects

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// The reasons why a request was not done, besides *RefusedError. A missing
// object is fs.ErrNotExist.
var (
	// ErrUnavailable means that the store did not answer for too long.
	ErrUnavailable = errors.New("the store does not answer")
	// ErrChanged means that the object is no longer the expected version.
	ErrChanged = errors.New("the object has changed")
	// ErrNotS3 is in the RefusedError of an address that does not answer as S3
	// does.
	ErrNotS3 = errors.New("not an S3 store")
	// errNotImplemented is in the RefusedError of a store that does not support
	// the request.
	errNotImplemented = errors.New("the store does not support it")
	// errNoETag means that an answer does not say which version it has.
	errNoETag = errors.New("no ETag")
	// errNoUpload means that a multipart upload no longer exists.
	errNoUpload = errors.New("the upload is gone")
)

// RefusedError means that the store refuses a request, and will refuse it again
// until the user changes something.
type RefusedError struct {
	Location string // "" where it is not about an object
	Problem  string
	Advice   string
	Code     string // the store's own word; "" when nothing came back
	Err      error
}

func (e *RefusedError) Error() string {
	text := e.Problem
	if e.Location != "" {
		text = e.Location + ": " + text
	}
	if e.Advice != "" {
		text += "; " + e.Advice
	}
	return text
}

func (e *RefusedError) Unwrap() error { return e.Err }

// at adds the object's name to an error without one.
func at(r request, err error) error {
	var refused *RefusedError
	if errors.As(err, &refused) && refused.Location == "" {
		refused.Location = r.String()
	}
	return err
}

// again are the codes of temporary refusals: a repeated request may succeed.
// Source: Amazon S3 API reference, error responses.
var again = []string{
	"SlowDown", "RequestTimeout", "InternalError", "ServiceUnavailable", "OperationAborted", "ConditionalRequestConflict",
	"Throttling", "ThrottlingException", "TooManyRequests", "RequestLimitExceeded", "BandwidthLimitExceeded",
	"IncompleteBody", "BadDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch", // damaged in transit
	"PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "MovedPermanently", // once the region is known
}

// judge translates an error of the SDK into nil, fs.ErrNotExist, ErrChanged,
// ErrUnavailable or *RefusedError, each with the object's name. asked is the
// region that the request was sent to.
func (c *connection) judge(r request, asked string, err error) error {
	if err == nil {
		return nil
	}
	named := func(kind error) error { return fmt.Errorf("%s %s: %w", r.verb, r, kind) }
	code, status := codeOf(err)
	switch {
	case errors.Is(err, ErrChanged):
		return named(ErrChanged)
	case slices.Contains(again, code), status >= 500 && status != http.StatusNotImplemented, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout,
		status == http.StatusConflict && code == "", status == http.StatusMovedPermanently, status == http.StatusTemporaryRedirect:
		if isRedirect(code, status) && !isElsewhere(asked, err) {
			return c.refusal(r, code, status, err)
		}
		return fmt.Errorf("%s %s: %w (%s)", r.verb, r, ErrUnavailable, said(code, status))
	case code == "NoSuchBucket":
		return c.refusal(r, code, status, err)
	case code == "NoSuchUpload":
		return named(errNoUpload)
	case status == http.StatusNotFound && (code == "" || code == "NotFound") && (r.verb == "list" || isForeign(err)):
		return c.refusal(r, "", status, errors.Join(ErrNotS3, err))
	case code == "NoSuchKey", status == http.StatusNotFound && (code == "" || code == "NotFound"):
		return named(fs.ErrNotExist)
	case code == "PreconditionFailed", status == http.StatusPreconditionFailed:
		return named(ErrChanged)
	case code == "NotImplemented", status == http.StatusNotImplemented:
		return c.refusal(r, code, status, errors.Join(errNotImplemented, err))
	case status != 0 || code != "":
		return c.refusal(r, code, status, err)
	}
	return c.unanswered(r, err)
}

// unanswered judges an error that came without an answer from the store.
func (c *connection) unanswered(r request, err error) error {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var noTLS tls.RecordHeaderError
	var serialization *smithy.SerializationError
	var params smithy.InvalidParamsError
	var page *webPageError
	var wrong *wrongAnswerError
	first := !c.reached.Load()
	refused := &RefusedError{Location: r.String(), Err: err}
	switch {
	case errors.As(err, &page):
		refused.Problem, refused.Code = "the answer is a web page, not one of S3", "HTML"
		refused.Advice = "check " + c.endpoint().name + ": the console of a store has another address or port than its S3 interface"
	case errors.As(err, &wrong):
		refused.Problem, refused.Code = wrong.problem+" ("+c.where(r)+")", "WrongAnswer"
		refused.Advice = "check the store, and what is in front of it, such as a proxy or a cache"
	case errors.Is(err, errNoETag):
		refused.Problem, refused.Code = "the store sends no ETag with it, so a change while it is read would go unnoticed ("+c.where(r)+")", "NoETag"
		refused.Advice = "use another store, or copy it to this machine first"
	case errors.As(err, &dns) && dns.IsNotFound && first: // a name server may lack it only for a while
		return fmt.Errorf("%s %s: %w (the host %s is not known; check %s, the bucket's name and the region; use s3_path_style if buckets have no host names of their own)",
			r.verb, r, ErrUnavailable, dns.Name, c.endpoint().name)
	case errors.As(err, &certificate):
		refused.Problem = "the store's certificate is not trusted: " + certificate.Err.Error()
		refused.Advice = "set AWS_CA_BUNDLE to its authority's certificate file"
	case errors.As(err, &noTLS) && first:
		refused.Problem, refused.Advice = "the store does not speak TLS", "write "+c.endpoint().name+" with http://"
	case errors.As(err, &serialization), errors.As(err, &params):
		refused.Problem = "the request is not valid: " + err.Error()
	default:
		return fmt.Errorf("%s %s: %w (%s)", r.verb, r, ErrUnavailable, reason(err))
	}
	return refused
}

// webPageError means that the answer is a web page for browsers.
type webPageError struct{}

func (*webPageError) Error() string { return "the answer is a web page" }

// refuseWebPages turns a web page into an error. Consoles, proxies and login
// pages answer any request with one. A real object of that type has an ETag.
func refuseWebPages(stack *middleware.Stack) error {
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("RefuseWebPages", func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (out middleware.DeserializeOutput, md middleware.Metadata, err error) {
		out, md, err = next.HandleDeserialize(ctx, in)
		if answer, ok := out.RawResponse.(*smithyhttp.Response); err == nil && ok && answer.StatusCode < 300 &&
			strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") && answer.Header.Get("Etag") == "" && answer.Header.Get("X-Amz-Request-Id") == "" {
			err = &webPageError{}
		}
		return out, md, err
	}), middleware.After)
}

// reason says in a few words why there was no answer.
func reason(err error) string {
	var operation *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed): // closed for its silence
		return "no answer in time"
	case errors.As(err, &operation):
		return operation.Error()
	}
	for { // drop the SDK's wrappers, which repeat what is known
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// codeOf returns the store's error code and the HTTP status.
func codeOf(err error) (code string, status int) {
	var api smithy.APIError
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.Response != nil {
		status = response.HTTPStatusCode()
	}
	if status < 300 && code == "" {
		status = 0 // an answer that broke off does not count
	}
	return code, status
}

// isForeign reports whether an answer is a page or a text, as web servers send
// them where nothing is. The answer of S3 to HEAD has no body, but a type of XML.
func isForeign(err error) bool {
	var response *smithyhttp.ResponseError
	if !errors.As(err, &response) || response.Response == nil {
		return false
	}
	header := response.Response.Header
	return strings.HasPrefix(header.Get("Content-Type"), "text/") && !strings.HasPrefix(header.Get("Content-Type"), "text/xml") && header.Get("X-Amz-Request-Id") == ""
}

func said(code string, status int) string {
	switch {
	case status == 0:
		return code
	case code == "":
		return fmt.Sprint("HTTP ", status)
	}
	return fmt.Sprintf("%s, HTTP %d", code, status)
}

// expecting finds the region in a message. Source: Amazon S3, "the region
// 'us-east-1' is wrong; expecting 'eu-west-1'".
var expecting = regexp.MustCompile(`expecting ['"]([a-z0-9-]+)['"]`)

// regionOf returns the region that an error names for the bucket.
func regionOf(err error) string {
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.Response != nil {
		if region := response.Response.Header.Get("X-Amz-Bucket-Region"); region != "" {
			return region
		}
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		if found := expecting.FindStringSubmatch(api.ErrorMessage()); found != nil {
			return found[1]
		}
	}
	return ""
}

func isRedirect(code string, status int) bool {
	return strings.HasSuffix(code, "Redirect") || code == "AuthorizationHeaderMalformed" || status == http.StatusMovedPermanently || status == http.StatusTemporaryRedirect
}

// isElsewhere reports whether an error says that the bucket is in another region
// than the one the request was sent to.
func isElsewhere(asked string, err error) bool {
	region := regionOf(err)
	return region != "" && region != asked
}

// isGone reports whether an error says that the object is not there.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
